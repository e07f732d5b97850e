"""Default classes of XIDs, the driver's error codes. Sources disagree, so the classes are configurable.

Each class is a cause of gpu-fault with its own advice. Unlisted codes are reported as unknown.
"""

from __future__ import annotations

APPLICATION = (13, 31, 43, 45, 68, 69, 109)  # a bug in the program, or it was killed: restart the job
MEMORY_CONTAINED = (63, 94)  # memory retired, or only the program using it is affected: reset when convenient
MEMORY = (48, 64, 95)  # memory is unreliable: reset the GPU
NVLINK = (74,)
OFF_BUS = (79,)  # the GPU does not respond: reboot
DRIVER = (62, 119, 120, 140, 143)  # firmware or driver: reset the GPU, else reboot
IGNORED = (92,)
