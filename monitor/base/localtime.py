"""Time zones by name, and times in them."""

from __future__ import annotations

import os
from datetime import datetime
from zoneinfo import ZoneInfo

_MAX_BYTES = 128 * 1024
_SECONDS = "%Y-%m-%d %H:%M:%S"
UTC_NAMES = ("Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu")  # as distributions link them
_MINUTES = "%Y-%m-%d %H:%M %Z"
_FORM_MINUTES = "%Y-%m-%dT%H:%M"


def zone(name: str) -> ZoneInfo:
    """Time zone of this name. Raise ValueError with a message for users."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is not a time zone: write one such as Asia/Shanghai or UTC") from error


def local_timezone(path: str = "/etc/localtime", zones: str = "/usr/share/zoneinfo") -> str:
    """Name of this machine's time zone, from TZ or /etc/localtime; UTC if it is unknown."""
    _, is_link, linked = os.path.realpath(path).rpartition("/zoneinfo/")
    for name in (os.environ.get("TZ", "").removeprefix(":"), linked if is_link else _name_of_copy(path, zones)):
        try:
            if name:
                return "UTC" if name in UTC_NAMES else str(zone(name))
        except ValueError:
            continue
    return "UTC"


def _name_of_copy(path: str, zones: str) -> str:
    """Name of the time zone whose file was copied here, as administrators often do; empty if there is none."""
    try:
        rules = _read(path)
        listed = _read(os.path.join(zones, "zone.tab")).decode("utf-8", "replace").splitlines()
        names = [line.split("\t")[2] for line in listed if line.count("\t") >= 2 and not line.startswith("#")]
        return next((name for name in names if _read(os.path.join(zones, name)) == rules), "")
    except OSError:
        return ""


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_MAX_BYTES)


def format_local(at: float, timezone: str, form: str) -> str:
    """Seconds since the epoch in the time zone; `?` for a time of a broken clock."""
    try:
        return datetime.fromtimestamp(at, ZoneInfo(timezone)).strftime(form)
    except (ValueError, OverflowError, OSError):
        return "?"


def local_instant(at: float, timezone: str) -> str:
    """`2026-01-31 08:15:00 CST`."""
    return format_local(at, timezone, f"{_SECONDS} %Z")


def local_seconds(at: float, timezone: str) -> str:
    """`2026-01-31 08:15:00`, for a column whose title names the time zone."""
    return format_local(at, timezone, _SECONDS)


def local_minute(at: float, timezone: str) -> str:
    """`2026-01-31 08:15 CST`."""
    return format_local(at, timezone, _MINUTES)


def form_minute(at: float, timezone: str) -> str:
    """`2026-01-31T08:15`, as forms of browsers write it."""
    return format_local(at, timezone, _FORM_MINUTES)


def parse_form_minute(text: str, timezone: str) -> float:
    """Seconds since the epoch of such a time. Raise ValueError."""
    if not text.isascii():
        raise ValueError("not a time")
    return datetime.strptime(text, _FORM_MINUTES).replace(tzinfo=ZoneInfo(timezone)).timestamp()
