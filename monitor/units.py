"""Durations, sizes and ratios as people write them: `30m`, `50GiB`, `80%`."""

from __future__ import annotations

import re

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"": 1, "B": 1}
_BYTES |= {f"{p}B": 1000**i for i, p in enumerate(("k", "M", "G", "T", "P"), 1)} | {"KB": 1000}
_BYTES |= {f"{p}iB": 1024**i for i, p in enumerate(("K", "M", "G", "T", "P"), 1)}
_BYTES |= {f"{p}i": 1024**i for i, p in enumerate(("K", "M", "G", "T", "P"), 1)}  # as Kubernetes writes them
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def parse_duration(value: object) -> float:
    """Given `90`, `30s`, `1h30m` or `7d`, return seconds. Raise ValueError that says what to write."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        return float(value)
    if isinstance(value, str):
        parts = _DURATION.findall(value)
        if parts and "".join(n + u for n, u in parts) == value.replace(" ", ""):
            return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    raise ValueError(f"{value!r} is not a duration; write for example 30s, 15m, 1h30m or 7d")


def parse_size(value: object) -> int:
    """Given `1024`, `50GiB` or `59GB`, return bytes. Raise ValueError that says what to write."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())) and match[2] in _BYTES:
        return round(float(match[1]) * _BYTES[match[2]])
    raise ValueError(f"{value!r} is not a size; write for example 500MB, 50GiB or 2TiB")


def parse_ratio(value: object) -> float:
    """Given `80%` or `0.8`, return 0.8. Raise ValueError that says what to write."""
    ratio = -1.0
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        ratio = float(value)
    elif isinstance(value, str) and (match := _PERCENT.fullmatch(value.strip())):
        ratio = float(match[1]) / 100
    if not 0 <= ratio <= 1:
        raise ValueError(f"{value!r} is not a ratio; write for example 80% or 0.8")
    return ratio
