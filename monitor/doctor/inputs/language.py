"""Time zones and how the terminal writes."""

from __future__ import annotations

import zoneinfo

from monitor.doctor.checks.language import LocaleFacts, ZoneFacts
from monitor.doctor.context import Visit

CHINESE = "显卡"


def zone(visit: Visit) -> ZoneFacts:
    """Look whether the time zone in which times are told is known here."""
    used = visit.config.daemon.alerts.timezone
    given = visit.environ.get("TZ", "").removeprefix(":")
    return ZoneFacts(used, _loads(used), given if given and not given.startswith("/") and not _loads(given) else None)


def _loads(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def locale(visit: Visit) -> LocaleFacts:
    """Look whether the terminal can write Chinese."""
    terminal, config = visit.request.terminal, visit.request.config
    try:
        CHINESE.encode(terminal.encoding)
        chinese = True
    except (UnicodeError, LookupError):
        chinese = False
    wanted = terminal.lang == "zh" or (config is not None and config.daemon.alerts.language == "zh")
    return LocaleFacts(terminal.encoding, chinese, wanted)
