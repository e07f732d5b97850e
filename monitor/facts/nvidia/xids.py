"""Meaning of an XID: what to do about it, by NVIDIA's catalogue and by the words of the line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from monitor.facts.nvidia.actions import ErrorAction, FollowUp, action_of, follow_up_of, strongest
from monitor.facts.nvidia.nvlink5_rows import NVLINK5_UNITS
from monitor.facts.nvidia.xid_rows import XID_ROWS

PREEMPTIVE_REMOVAL_CODE = 45
RECOVERY_ACTION_CODE = 154
NVLINK5_CODES = frozenset(range(144, 151))
DECIDED_BY_LINE = NVLINK5_CODES | {RECOVERY_ACTION_CODE}
_MAX_SEARCHED_CHARS = 1000
_ORIGIN = re.compile(r"caused by previous Xid (\d{1,4})", re.ASCII)
_RECOVERY = re.compile(r"recovery action changed from 0x[0-9a-fA-F]{1,8} \([^()]{0,80}\) to 0x([0-9a-fA-F]{1,8})")
# Pairs of words in parentheses; older drivers print only the first word, in brackets.
_NVLINK5_WORDS = re.compile(r"[(\[]0x([0-9a-fA-F]{1,8})(?: 0x([0-9a-fA-F]{1,8}))?")
_RECOVERY_ACTIONS = {
    0: ErrorAction.NONE,
    1: ErrorAction.RESET_GPU,
    2: ErrorAction.REBOOT_NODE,
    3: ErrorAction.RESTART_JOB,  # drain peer-to-peer traffic: the jobs on its NVLinks have to end
    4: ErrorAction.RESET_GPU,  # drain, then reset
}


@dataclass(frozen=True)
class XidMeaning:
    """What an XID means. `code` is the one to act on; of 45 it is the origin, if the line names one."""

    code: int
    name: str
    action: ErrorAction
    then: FollowUp | None = None


@cache
def catalog() -> dict[int, XidMeaning]:
    """NVIDIA's catalogue: the meaning of each code without the line."""
    return {code: XidMeaning(code, name, action_of(now), follow_up_of(then)) for code, name, now, then in XID_ROWS}


@cache
def codes_of(*actions: ErrorAction) -> tuple[int, ...]:
    """Codes of the catalogue with one of these actions, without those that only the line decides."""
    return tuple(code for code, known in catalog().items() if known.action in actions and code not in DECIDED_BY_LINE)


def xid_meaning(code: int, message: str | None = None) -> XidMeaning | None:
    """Meaning of an XID with the message of its line; None if the catalogue or the line does not say what to do."""
    text = (message or "")[:_MAX_SEARCHED_CHARS]
    known = catalog().get(code)
    if known is None:
        return None
    if code == PREEMPTIVE_REMOVAL_CODE and (origin := _ORIGIN.search(text)) is not None:
        return _origin_meaning(int(origin.group(1)), known)
    if code == RECOVERY_ACTION_CODE:
        return _recovery_meaning(known, text)
    return _nvlink5_meaning(known, text) if code in NVLINK5_CODES else known


def _origin_meaning(origin: int, removal: XidMeaning) -> XidMeaning:
    """Meaning of a removal that names its origin. Nothing to add if the origin's own line says what to do."""
    known = catalog().get(origin, removal)
    return XidMeaning(origin, known.name, ErrorAction.NONE) if origin in DECIDED_BY_LINE else known


def _recovery_meaning(known: XidMeaning, text: str) -> XidMeaning | None:
    requested = _RECOVERY.search(text)
    action = _RECOVERY_ACTIONS.get(int(requested.group(1), 16)) if requested is not None else None
    return XidMeaning(known.code, known.name, action) if action is not None else None


def _nvlink5_meaning(known: XidMeaning, text: str) -> XidMeaning | None:
    """The row of the line's unit, information and status; else what the line says about its severity."""
    words = _NVLINK5_WORDS.search(text)
    rows = _nvlink5_rows(known.code, text, words) if words is not None else []
    if rows:
        action = strongest([action_of(now) for _, now, _ in rows])
        then = next((step for _, now, step in rows if action_of(now) is action), "")
        return XidMeaning(known.code, rows[0][0], action, follow_up_of(then))
    if re.search(r"\bNon-?fatal\b", text, re.IGNORECASE):
        return XidMeaning(known.code, known.name, ErrorAction.NONE)
    fatal = re.search(r"\bFatal\b", text, re.IGNORECASE)
    return XidMeaning(known.code, known.name, ErrorAction.RESET_GPU, FollowUp.CONTACT_VENDOR) if fatal else None


def _nvlink5_rows(code: int, text: str, words: re.Match[str]) -> list[tuple[str, str, str]]:
    """Unit and resolutions of the rows that match a line, preferably of the unit that the line names."""
    info, status = int(words.group(1), 16), int(words.group(2) or "0", 16)
    spoken, found = set(text.split()), []
    for unit_code, unit, old_mask, old_value, new_mask, new_value, resolutions in NVLINK5_UNITS:
        if unit_code != code or not (info & old_mask == old_value or info & new_mask == new_value):
            continue
        named = not spoken.isdisjoint(unit.split("/"))
        for row_status, now, then in resolutions:
            if status == row_status or (_is_one_bit(row_status) and status & row_status):
                found.append(((named, status == row_status), (unit, now, then)))
    best = max((rank for rank, _ in found), default=None)
    return [row for rank, row in found if rank == best]


def _is_one_bit(status: int) -> bool:
    return status > 0 and status & (status - 1) == 0
