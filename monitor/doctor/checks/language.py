"""Time zone data, and Chinese output of the terminal."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass

from monitor.doctor.context import DoctorContext
from monitor.doctor.model import Check, Verdicts, ok, problem, warning

CHINESE = "显卡"


@dataclass(frozen=True)
class ZoneFacts:
    """The configured time zone, whether it is known, and the value of TZ if that is unknown."""

    zone: str
    loads: bool
    given: str | None = None


@dataclass(frozen=True)
class LocaleFacts:
    """The terminal's encoding, whether it can represent Chinese, and whether Chinese output is configured."""

    encoding: str
    chinese: bool
    wanted: bool


def judge_zone(facts: ZoneFacts) -> Verdicts:
    """Whether times can be shown in the configured time zone."""
    if not facts.loads:
        return (problem("zone.unknown", zone=facts.zone),)
    if facts.given is not None:
        return (warning("zone.given", given=facts.given, zone=facts.zone),)
    return (ok("zone.ok", zone=facts.zone),)


def judge_locale(facts: LocaleFacts) -> Verdicts:
    """Whether the terminal shows Chinese, if that is wanted."""
    if facts.chinese:
        return (ok("locale.ok", encoding=facts.encoding),)
    if facts.wanted:
        return (warning("locale.no-chinese", encoding=facts.encoding),)
    return (ok("locale.not-wanted", encoding=facts.encoding),)


def read_zone(context: DoctorContext) -> ZoneFacts:
    """Look up the configured time zone and TZ."""
    zone = context.config.daemon.zone
    given = context.request.environ.get("TZ", "").removeprefix(":")
    return ZoneFacts(zone, _loads(zone), given if given and not given.startswith("/") and not _loads(given) else None)


def _loads(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def read_locale(context: DoctorContext) -> LocaleFacts:
    """Encode Chinese text as the terminal would."""
    terminal, config = context.request.terminal, context.request.config
    try:
        CHINESE.encode(terminal.encoding)
        chinese = True
    except (UnicodeError, LookupError):
        chinese = False
    wanted = terminal.lang == "zh" or (config is not None and config.daemon.alerts.language == "zh")
    return LocaleFacts(terminal.encoding, chinese, wanted)


CHECKS = (Check("language.zone", read_zone, judge_zone), Check("language.locale", read_locale, judge_locale))
