"""Classes of XIDs, the driver's error codes. Each class is a cause of gpu-fault with its own advice.

The action of a code is that of NVIDIA's catalogue. A few codes have a class of their own, because more can be said
about them than what to do; all others have the class of their action.
"""

from __future__ import annotations

from monitor.facts.nvidia.actions import ErrorAction
from monitor.facts.nvidia.xids import NVLINK5_CODES, XidMeaning, catalog, xid_meaning

UNKNOWN_CAUSE = "xid-unknown"
_BY_CODE = {
    **dict.fromkeys((48, 64, 95, 140), "xid-memory"),  # memory is unreliable: reset the GPU
    **dict.fromkeys((62, 119, 120, 143), "xid-driver"),  # firmware or driver: reset the GPU, else reboot
    **dict.fromkeys((74, 136, 155), "xid-nvlink"),
    79: "xid-off-bus",
    94: "xid-memory-contained",
}
_BY_ACTION = {
    ErrorAction.NONE: None,
    ErrorAction.RESTART_JOB: "xid-application",
    ErrorAction.RESET_GPU: "xid-reset",
    ErrorAction.REBOOT_NODE: "xid-reboot",
    ErrorAction.CONTACT_VENDOR: "xid-vendor",
    ErrorAction.UPDATE_SOFTWARE: "xid-software",
    ErrorAction.CHECK_POWER: "xid-power",
}


def cause_of(code: int, message: str | None) -> tuple[str | None, XidMeaning | None]:
    """Cause of an XID, None if there is nothing to do about it, and its meaning, None if it is unknown."""
    meaning = xid_meaning(code, message)
    if meaning is None:
        return UNKNOWN_CAUSE, None
    if meaning.code in NVLINK5_CODES and meaning.action is ErrorAction.RESET_GPU:
        return "xid-nvlink", meaning
    return _BY_CODE.get(meaning.code, _BY_ACTION[meaning.action]), meaning


def codes_of_cause(cause: str | None) -> tuple[int, ...]:
    """Codes of the catalogue that have a cause whatever their lines say."""
    return tuple(code for code in catalog() if cause_of(code, None)[0] == cause)
