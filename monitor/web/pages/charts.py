"""Small charts of the last hours, as SVG without inline script or style."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from markupsafe import Markup

from monitor.history.model import Point
from monitor.i18n.figures import duration

MINUTE, HOUR = 60.0, 3600.0
SPANS = (10 * MINUTE, HOUR, 6 * HOUR, 24 * HOUR)  # the shortest that contains all points is used
WIDTH_PIXELS, HEIGHT_PIXELS = 240, 44
MAX_STEPS = 120
MAX_GAP_COUNT = 2  # steps between points that are still connected


@dataclass(frozen=True)
class Chart:
    """A line with a title and its last value as text. `top` is the maximum of the scale; None: that of the values."""

    title: str
    points: Sequence[Point]
    top: float | None = None
    last: str = ""


def draw(now: float, lang: str, *charts: Chart) -> Markup:
    """Charts of the last hours; those without values are omitted."""
    return Markup("").join(_draw(chart, now, lang) for chart in charts)


def _draw(chart: Chart, now: float, lang: str) -> Markup:
    first = next((at for at, value in chart.points if value is not None), now)
    span = next((span for span in SPANS if now - first <= span), SPANS[-1])
    steps = min(MAX_STEPS, int(span / MINUTE))
    averages = _averages(chart.points, now, span, steps)
    values = [value for _, value in averages if value is not None]
    if not values:
        return Markup("")
    top = chart.top if chart.top is not None else max(values) * 1.1 or 1.0
    lines = Markup("").join(_line(segment, top, steps) for segment in _segments(averages))
    frame = Markup(
        '<figure class="chart"><figcaption><span>{} · {}</span><b>{}</b></figcaption>'
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<line class="base" x1="0" y1="{}" x2="{}" y2="{}"/>{}</svg></figure>'
    )
    width, height = WIDTH_PIXELS, HEIGHT_PIXELS
    label, length = f"{chart.title}: {chart.last}", duration(span, lang)
    return frame.format(chart.title, length, chart.last, width, height, label, height, width, height, lines)


def _averages(points: Sequence[Point], now: float, span: float, steps: int) -> list[Point]:
    """Mean of each step, None where no value is known. Steps are aligned, so that a chart changes once per step."""
    length = span / steps
    start = (now // length + 1) * length - span
    values: dict[int, list[float]] = {}
    first = steps
    for at, value in points:
        step = min(steps - 1, int((min(now, at + MINUTE) - start) / length))  # a point is valid for one minute
        if value is not None and step >= 0:
            values.setdefault(step, []).append(value)
            first = min(first, step)
    return [(step, mean(values[step]) if step in values else None) for step in range(first, steps)]


def _segments(points: Sequence[Point]) -> Iterator[list[tuple[float, float]]]:
    """Connected points: a gap of one step is bridged, a longer one is left open."""
    segment: list[tuple[float, float]] = []
    for step, value in points:
        if value is None:
            continue
        if segment and step - segment[-1][0] > MAX_GAP_COUNT:
            yield segment
            segment = []
        segment.append((step, value))
    if segment:
        yield segment


def _line(points: list[tuple[float, float]], top: float, steps: int) -> Markup:
    if len(points) == 1:
        points = [(points[0][0] - 1, points[0][1]), points[0]]
    height = HEIGHT_PIXELS
    coordinates = [
        ((step + 1) / steps * WIDTH_PIXELS, height - 1 - min(1.0, max(0.0, value / top)) * (height - 3))
        for step, value in points
    ]
    path = " ".join(f"{x:.0f},{y:.1f}" for x, y in coordinates)
    area = f"{coordinates[0][0]:.0f},{height} {path} {coordinates[-1][0]:.0f},{height}"
    return Markup('<polygon class="area" points="{}"/><polyline class="line" points="{}"/>').format(area, path)
