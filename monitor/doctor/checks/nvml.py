"""The NVIDIA driver of this node."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.doctor.model import Verdicts, ok, problem, warning


@dataclass(frozen=True)
class NvmlFacts:
    """The driver as its library shows it.

    `missing` says why there is none, `broken` why it does not work. `refused` and `lost` are cards that it counts and
    does not hand out. `on_bus` is how many cards are on the PCI bus; None if that cannot be seen.
    """

    missing: str | None = None
    broken: str | None = None
    driver: str | None = None
    cards: int = 0
    refused: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    on_bus: int | None = None


def judge(facts: NvmlFacts) -> Verdicts:
    """Given the driver, return what is wrong with it, or with how it is seen from here."""
    if facts.missing is not None:
        if facts.on_bus:
            return (problem("nvml.missing", count=facts.on_bus, why=facts.missing),)
        return (ok("nvml.no-cards", why=facts.missing),)
    if facts.broken is not None:
        return (problem("nvml.broken", why=facts.broken),)
    wrong = []
    if facts.refused:
        wrong.append(problem("nvml.refused", cards=_numbers(facts.refused)))
    if facts.lost:
        wrong.append(problem("nvml.lost", cards=_numbers(facts.lost)))
    seen = facts.cards + len(facts.refused) + len(facts.lost)
    if facts.on_bus is not None and seen < facts.on_bus:
        wrong.append(warning("nvml.fewer", count=seen, bus=facts.on_bus))
    return tuple(wrong) or (ok("nvml.ok", driver=facts.driver or "?", count=facts.cards),)


def _numbers(cards: tuple[int, ...]) -> str:
    return ", ".join(map(str, cards))
