"""What each XID means: the driver's codes for what went wrong, by class. Sources disagree, so it is configuration.

Each class is a cause of gpu-fault, and its advice says what to do. What is in no class is said as it is.
"""

from __future__ import annotations

APPLICATION = (13, 31, 43, 45, 68, 69, 109)  # a program's mistake, or a program that was killed: restart the job
MEMORY_CONTAINED = (
    63,
    94,
)  # memory was taken out of use, or only the program that had it is hit: reset when convenient
MEMORY = (48, 64, 95)  # memory cannot be trusted: reset the card
NVLINK = (74,)
OFF_BUS = (79,)  # the card does not answer at all: reboot
DRIVER = (62, 119, 120, 140, 143)  # firmware or driver: reset the card, reboot if that does not help
IGNORED = (92,)
