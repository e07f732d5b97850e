"""Clocks: whether ours is kept right, and the others agree with it."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.doctor.model import Verdicts, listed, not_checked, ok, problem, warning

OFF = 3.0  # seconds; dates in HTTP have no fractions, and an answer takes a while
FAR_OFF = 60.0


@dataclass(frozen=True)
class ClockFacts:
    """`synchronised` None if nobody knows. Offsets are how far the others are ahead of us."""

    synchronised: bool | None
    api: float | None = None
    agents: tuple[tuple[str, float], ...] = ()


def judge(facts: ClockFacts) -> Verdicts:
    """Given the clocks, return which are wrong."""
    wrong = []
    if facts.synchronised is False:
        wrong.append(warning("clock.not-synchronised"))
    if facts.api is not None and abs(facts.api) > OFF:
        say = problem if abs(facts.api) > FAR_OFF else warning
        wrong.append(say("clock.api", seconds=round(abs(facts.api), 1)))
    off = [(node, offset) for node, offset in facts.agents if abs(offset) > OFF]
    if off:
        most = max(abs(offset) for _, offset in off)
        say = problem if most > FAR_OFF else warning
        names = listed([node for node, _ in off])
        wrong.append(say("clock.agents", count=len(off), names=names, seconds=round(most, 1)))
    if wrong:
        return tuple(wrong)
    if facts.synchronised is None and facts.api is None and not facts.agents:
        return (not_checked("clock.unknown"),)
    return (ok("clock.ok"),)
