"""Grouped bar charts as SVG that work on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 720, 300, 90
LINE, GAP, TOP = 20, 12, 46
OURS, OTHERS = "#2f81f7", "#8b949e"
INK = "#6e7781"  # sufficient contrast on white and on black


@dataclass(frozen=True)
class Bar:
    """One figure. `ours` is highlighted."""

    label: str
    value: float
    ours: bool = True


@dataclass(frozen=True)
class Plot:
    """Groups of bars with one unit; each group has a heading and its own scale: only ratios within it count."""

    title: str
    unit: str
    groups: Sequence[tuple[str, Sequence[Bar]]]


def svg(plot: Plot) -> str:
    """A plot as SVG."""
    parts, y = [_text(12, 22, plot.title, 15, "bold")], TOP
    for heading, bars in plot.groups:
        if heading:
            parts.append(_text(12, y + 13, heading, 12, "bold"))
            y += LINE
        longest = max((bar.value for bar in bars), default=0.0) or 1.0
        for bar in bars:
            parts.append(_bar(bar, bar.value / longest, y, plot.unit))
            y += LINE
        y += GAP
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
        f'font-family="sans-serif" role="img" aria-label="{escape(plot.title, {chr(34): "&quot;"})}">\n{body}\n</svg>\n'
    )


def _bar(bar: Bar, share: float, y: int, unit: str) -> str:
    length = max(1.0, share * (WIDTH - LEFT - RIGHT))
    colour = OURS if bar.ours else OTHERS
    return (
        f"{_text(LEFT - 8, y + 13, bar.label, 12, anchor='end')}\n"
        f'<rect x="{LEFT}" y="{y + 2}" width="{length:.1f}" height="{LINE - 6}" rx="2" fill="{colour}"/>\n'
        f"{_text(LEFT + length + 6, y + 13, f'{_figure(bar.value)} {unit}', 12)}"
    )


def _text(x: float, y: float, text: str, size: int, weight: str = "normal", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{INK}">{escape(text)}</text>'
    )


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
