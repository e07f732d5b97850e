"""Time series as SVG: stacked panels, each with its own scale from zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, GAP = 860, 110, 44
LEFT, RIGHT, TOP = 64, 28, 30
COLOURS = ("#1f6feb", "#bf5700", "#2da44e")
GREY = "#8b949e"

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """Lines over a common time axis; `dots` draws unconnected points."""

    title: str
    lines: Sequence[tuple[str, Points]]
    dots: bool = False


def svg(panels: Sequence[Panel], minutes: float, warm_up: float) -> str:
    """The plot of panels over minutes, with the warm-up shaded."""
    height = TOP + len(panels) * (HEIGHT + GAP)
    space = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg {space} viewBox="0 0 {WIDTH} {height}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, TOP + number * (HEIGHT + GAP), minutes, warm_up)
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, top: int, minutes: float, warm_up: float) -> list[str]:
    most = _round_up(max((value for _, points in panel.lines for _, value in points), default=1.0))
    bottom = top + HEIGHT
    parts = [
        f'<rect x="{LEFT}" y="{top}" width="{_x(warm_up, minutes) - LEFT:.1f}" height="{HEIGHT}" fill="#f0f2f5"/>',
        f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{escape(panel.title)}</text>',
    ]
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * HEIGHT
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{GREY}" stroke-width="0.5"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="{GREY}">{share * most:g}</text>')
    for number in range(6):
        at = minutes * number / 5
        x = _x(at, minutes)
        parts.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle" fill="{GREY}">{at:g} min</text>')
    for number, (name, points) in enumerate(panel.lines):
        colour = COLOURS[number % len(COLOURS)]
        at = WIDTH - RIGHT - 110 * (len(panel.lines) - number - 1)
        parts.append(f'<text x="{at}" y="{top - 8}" text-anchor="end" fill="{colour}">{escape(name)}</text>')
        places = [(_x(at, minutes), bottom - value / most * HEIGHT) for at, value in points]
        parts += _dots(places, colour) if panel.dots else _line(places, colour)
    return parts


def _line(places: Points, colour: str) -> list[str]:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return [f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'] if places else []


def _dots(places: Points, colour: str) -> list[str]:
    return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>' for x, y in places]


def _x(at: float, minutes: float) -> float:
    return LEFT + min(1.0, at / minutes) * (WIDTH - LEFT - RIGHT)


def _round_up(value: float) -> float:
    """The next round number: 1, 2, 4, 5 or 8 times a power of ten."""
    step = 1e-3
    while True:
        for factor in (1, 2, 4, 5, 8):
            if value <= factor * step:
                return factor * step
        step *= 10
