"""Small charts of the last hours, as SVG that needs neither script nor style of its own. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from markupsafe import Markup

from monitor.i18n.figures import duration
from monitor.report.history import Point

MINUTE, HOUR = 60.0, 3600.0
SPANS = (10 * MINUTE, HOUR, 6 * HOUR, 24 * HOUR)  # the shortest that holds all that is known
WIDTH, HEIGHT = 240, 44
STEPS = 120  # that are drawn at most; there may be many more


@dataclass(frozen=True)
class Chart:
    """A line: what it is of, where its top is, and how the last value is written."""

    title: str
    points: Sequence[Point]
    top: float | None = None  # None: as high as its highest value
    last: str = ""


def draw(now: float, lang: str, *charts: Chart) -> Markup:
    """Return charts of the last hours; nothing of one of which nothing is known."""
    return Markup("").join(_draw(chart, now, lang) for chart in charts)


def _draw(chart: Chart, now: float, lang: str) -> Markup:
    first = next((at for at, value in chart.points if value is not None), now)
    span = next((each for each in SPANS if now - first <= each), SPANS[-1])
    steps = min(STEPS, int(span / MINUTE))
    known = _steps(chart.points, now, span, steps)
    values = [value for _, value in known if value is not None]
    if not values:
        return Markup("")
    top = chart.top if chart.top is not None else max(values) * 1.1 or 1.0
    lines = Markup("").join(_line(stretch, top, steps) for stretch in _stretches(known))
    frame = Markup(
        '<figure class="chart"><figcaption><span>{} · {}</span><b>{}</b></figcaption>'
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<line class="base" x1="0" y1="{}" x2="{}" y2="{}"/>{}</svg></figure>'
    )
    told, length = f"{chart.title}: {chart.last}", duration(span, lang)
    return frame.format(chart.title, length, chart.last, WIDTH, HEIGHT, told, HEIGHT, WIDTH, HEIGHT, lines)


def _steps(points: Sequence[Point], now: float, span: float, steps: int) -> list[Point]:
    """Return the mean of every step; None where nothing is known. Steps do not move with every second that passes."""
    length = span / steps
    start = (now // length + 1) * length - span
    sums: dict[int, list[float]] = {}
    first = steps
    for at, value in points:
        place = min(steps - 1, int((min(now, at + MINUTE) - start) / length))  # a value is that of the minute after it
        if value is not None and place >= 0:
            sums.setdefault(place, []).append(value)
            first = min(first, place)
    return [(place, mean(sums[place]) if place in sums else None) for place in range(first, steps)]


def _stretches(points: Sequence[Point]) -> Iterator[list[tuple[float, float]]]:
    """Yield what is drawn in one line: a gap of one step is none, a longer one stays open."""
    line: list[tuple[float, float]] = []
    for place, value in points:
        if value is None:
            continue
        if line and place - line[-1][0] > 2:
            yield line
            line = []
        line.append((place, value))
    if line:
        yield line


def _line(points: list[tuple[float, float]], top: float, steps: int) -> Markup:
    if len(points) == 1:
        points = [(points[0][0] - 1, points[0][1]), points[0]]
    places = [
        ((place + 1) / steps * WIDTH, HEIGHT - 1 - min(1.0, max(0.0, value / top)) * (HEIGHT - 3))
        for place, value in points
    ]
    path = " ".join(f"{x:.0f},{y:.1f}" for x, y in places)
    area = f"{places[0][0]:.0f},{HEIGHT} {path} {places[-1][0]:.0f},{HEIGHT}"
    return Markup('<polygon class="area" points="{}"/><polyline class="line" points="{}"/>').format(area, path)
