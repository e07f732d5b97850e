"""Time zones and languages: whether times can be told, and Chinese be written."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.doctor.model import Verdicts, ok, problem, warning


@dataclass(frozen=True)
class ZoneFacts:
    """`zone` is the one that is used, `loads` whether it is known; `given` what TZ asks for, if that is unknown."""

    zone: str
    loads: bool
    given: str | None = None


@dataclass(frozen=True)
class LocaleFacts:
    """How the terminal writes. `chinese` is whether it can write Chinese, `wanted` whether anybody wants it to."""

    encoding: str
    chinese: bool
    wanted: bool


def judge_zone(facts: ZoneFacts) -> Verdicts:
    """Given the time zone, return whether times can be told in it."""
    if not facts.loads:
        return (problem("zone.unknown", zone=facts.zone),)
    if facts.given is not None:
        return (warning("zone.given", given=facts.given, zone=facts.zone),)
    return (ok("zone.ok", zone=facts.zone),)


def judge_locale(facts: LocaleFacts) -> Verdicts:
    """Given how the terminal writes, return whether Chinese can be read in it."""
    if facts.chinese:
        return (ok("locale.ok", encoding=facts.encoding),)
    if facts.wanted:
        return (warning("locale.no-chinese", encoding=facts.encoding),)
    return (ok("locale.not-wanted", encoding=facts.encoding),)
