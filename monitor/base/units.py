"""Parses and formats durations, sizes and ratios: `30m`, `50GiB`, `80%`."""

from __future__ import annotations

import re
from reprlib import Repr

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"": 1, "B": 1}
_BYTES |= {f"{p}B": 1000**i for i, p in enumerate(("k", "M", "G", "T", "P"), 1)} | {"KB": 1000}
_BYTES |= {f"{p}iB": 1024**i for i, p in enumerate(("K", "M", "G", "T", "P"), 1)}
_BYTES |= {f"{p}i": 1024**i for i, p in enumerate(("K", "M", "G", "T", "P"), 1)}  # as Kubernetes writes them
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_MAX_SECONDS = 100 * 365 * 86400  # waiting for several centuries overflows in the operating system
_MAX_BYTES = 2**63 - 1
_MAX_DURATION_CHARS = 100
_REPR = Repr()
_REPR.maxstring = 120


def quoted(value: object) -> str:
    """A value from a file as quoted in messages: short, scalars as written."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    return _REPR.repr(value)


def parse_duration(value: object) -> float:
    """Seconds of `90`, `30s`, `1h30m` or `7d`. Raise ValueError that says what to write."""
    seconds = -1.0
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = value
    elif isinstance(value, str) and len(value) <= _MAX_DURATION_CHARS:
        parts = _DURATION.findall(value)
        if parts and "".join(number + unit for number, unit in parts) == value.replace(" ", ""):
            seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not 0 <= seconds <= _MAX_SECONDS:
        raise ValueError(f"{quoted(value)} is not a duration; write for example 30s, 15m, 1h30m or 7d")
    return float(seconds)


def parse_size(value: object) -> int:
    """Bytes of `1024`, `50GiB` or `59GB`. Raise ValueError that says what to write."""
    size = -1.0
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())) and match[2] in _BYTES:
        size = float(match[1]) * _BYTES[match[2]]
    if not 0 <= size <= _MAX_BYTES:
        raise ValueError(f"{quoted(value)} is not a size; write for example 500MB, 50GiB or 2TiB")
    return round(size)


def parse_ratio(value: object) -> float:
    """Ratio of `80%` or `0.8`. Raise ValueError that says what to write."""
    ratio = -1.0
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        ratio = value
    elif isinstance(value, str) and (match := _PERCENT.fullmatch(value.strip())):
        ratio = float(match[1]) / 100
    if not 0 <= ratio <= 1:
        raise ValueError(f"{quoted(value)} is not a ratio; write for example 80% or 0.8")
    return float(ratio)


def format_size(size: int) -> str:
    """Bytes as `59.0 GiB`: one decimal, in the largest unit that gives at least 1."""
    if size < 1024:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1023.95:  # 1024.0 is shown as 1.0 of the next unit
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} PiB"


def format_duration(seconds: float) -> str:
    """Seconds as `350ms`, `2.5s`, `15m`, `1h30m` or `7d3h`: the two largest non-zero units."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 59.95:  # 60.0s is shown as 1m
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    parts = []
    rest = round(seconds)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, length)
        parts.append((count, unit))
    first = next(index for index, (count, _) in enumerate(parts) if count)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count)


def format_ratio(ratio: float) -> str:
    """0.8 as `80%`."""
    return f"{ratio * 100:.0f}%"
