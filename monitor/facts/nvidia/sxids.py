"""What to do about an SXid, the error code of an NVSwitch."""

from __future__ import annotations

from monitor.facts.nvidia.actions import ErrorAction, strongest
from monitor.facts.nvidia.sxid_rows import ALWAYS_FATAL, FATAL, NON_FATAL

_CLASSES = (
    (NON_FATAL, ErrorAction.NONE),
    (FATAL, ErrorAction.RESET_GPU),
    (ALWAYS_FATAL, ErrorAction.REBOOT_NODE),
)
_BY_CODE = {code: action for codes, action in _CLASSES for code in codes}


def sxid_action(code: int, *, fatal: bool | None = None) -> ErrorAction:
    """Action by the class of a code. `fatal` is what the line says about this occurrence; the worse of both counts.

    A code outside the table is judged by the line alone; without either the vendor has to be asked.
    """
    known = _BY_CODE.get(code)
    stated = None if fatal is None else (ErrorAction.RESET_GPU if fatal else ErrorAction.NONE)
    actions = [action for action in (known, stated) if action is not None]
    return strongest(actions) if actions else ErrorAction.CONTACT_VENDOR
