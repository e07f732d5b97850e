"""The addresses that we listen on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from monitor.doctor.model import Verdicts, ok, problem


@dataclass(frozen=True)
class PortLook:
    """An address and the setting that it comes from. `ours`: gpuwarden listens there already."""

    setting: str
    address: str
    state: Literal["free", "ours", "taken", "denied", "no-address", "error"]
    why: str = ""


def judge(facts: tuple[PortLook, ...]) -> Verdicts:
    """Given the addresses, return which cannot be listened on."""
    said = {"free": ok, "ours": ok}
    return tuple(
        said.get(each.state, problem)(f"ports.{each.state}", setting=each.setting, address=each.address, why=each.why)
        for each in facts
    )
