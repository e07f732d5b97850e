"""SXids, the error codes of NVSwitches, by class.

Source: NVIDIA Fabric Manager user guide, appendix D, state of 2025-10.
"""

from __future__ import annotations

# Errors that the switch survives.
NON_FATAL: tuple[int, ...] = (
    11004, 11012, 11021, 11022, 11023, 12021, 12023, 12028, 15008, 15011, 19049, 19055, 19057, 19059, 19062,
    19065, 19068, 19071, 19084, 20001, 20012, 22013, 24001, 24002, 24003,
)  # fmt: skip
# The GPUs on the link report XID 74 and have to be reset.
FATAL: tuple[int, ...] = (
    11001, 11009, 11013, 11018, 11019, 11020, 12001, 12002, 12022, 12024, 12025, 12026, 12027, 12030, 12031,
    12032, 14017, 15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054, 19056, 19058, 19060, 19061,
    19063, 19064, 19066, 19067, 19069, 19070, 20034, 22012, 24004, 24005, 24006, 24007,
)  # fmt: skip
# Only a reboot of the host recovers the switch.
ALWAYS_FATAL: tuple[int, ...] = (
    10001, 10002, 10003, 10004, 10005, 12020, 20009, 22003, 22011, 23001, 23002, 23003, 23004, 23005, 23006,
    23007, 23008, 23009, 23010, 23011, 23012, 23013, 23014, 23015, 23016, 23017,
)  # fmt: skip
