"""Human-readable durations, sizes and numbers."""

from __future__ import annotations

import re

from monitor.base.units import format_duration

_UNITS = {
    "en": ("s", "min", "h", "d"),
    "zh": ("秒", "分钟", "小时", "天"),
}
_LENGTHS = (1, 60, 3600, 86400)
_BRIEF_UNITS = {"zh": {"ms": "毫秒", "s": "秒", "m": "分", "h": "小时", "d": "天"}}


def duration(seconds: float, lang: str) -> str:
    """`3 min` or `2 h 5 min`: at most two units, more would not help the reader."""
    rest = max(0, round(seconds))
    parts: list[tuple[int, str]] = []
    for unit, length in zip(reversed(_UNITS[lang]), reversed(_LENGTHS), strict=True):
        count, rest = divmod(rest, length)
        if count or parts:
            parts.append((count, unit))
    shown = [f"{count} {unit}" for count, unit in parts[:2] if count]
    return " ".join(shown) or f"0 {_UNITS[lang][0]}"


def brief_duration(seconds: float, lang: str) -> str:
    """`4m2s`, for cells of tables."""
    units = _BRIEF_UNITS.get(lang, {})
    return re.sub(r"ms|[smhd]", lambda unit: units.get(unit[0], unit[0]), format_duration(seconds))


def size(amount: float) -> str:
    """Bytes as `59 GiB`, with one decimal below 100."""
    value, unit = float(amount), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1023.5 or unit == "TiB":
            break
        value /= 1024
    return f"{number(round(value, 1) if value < 100 else round(value))} {unit}"


def percent(ratio: float) -> str:
    """0.8 as `80%`."""
    return f"{ratio * 100:.0f}%"


def number(value: float) -> str:
    """A number without trailing zeros."""
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else f"{round(value)}"
