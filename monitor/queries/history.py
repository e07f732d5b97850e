"""Queries about the history: the figures of an entity, with the alerts about it, and the forecast of a disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from monitor.facts.base import Fact
from monitor.facts.findings import Severity
from monitor.history.forecast import DiskForecast, disk_forecast
from monitor.history.heatmap import HeatMap, NameRange
from monitor.history.model import SPAN_SECONDS, HistoryMetric, HistoryRange, HistorySubject, Point
from monitor.i18n import say
from monitor.present.alerts import LocalizedAlertEvent

MAX_MARKS_COUNT = 200
MAX_FORECASTS = 200

EventsAbout = Callable[[Mapping[str, str], float, int, str], tuple[LocalizedAlertEvent, ...]]


class RangeReader(Protocol):
    """Reads ranges of the history."""

    def read(self, subject: HistorySubject, name: str, span: float, until: float | None = None, /) -> HistoryRange: ...

    def recent(self, subject: HistorySubject, name: str, span: float, /) -> HistoryRange: ...


class HeatMapReader(RangeReader, Protocol):
    """Reads ranges, and the heat map."""

    def heat_map(self, span: float, until: float | None, nodes: NameRange, /) -> HeatMap: ...


class AlertMark(Fact, frozen=True, kw_only=True):
    """Transition of an alert in a chart. `what` is fired or resolved."""

    at: float
    what: str
    fingerprint: str
    title: str
    headline: str
    severity: Severity


class HistoryAnswer(HistoryRange, frozen=True, kw_only=True):
    """Figures of one entity, with the alerts about it, and the forecast of a disk."""

    alerts: tuple[AlertMark, ...] = ()
    forecast: DiskForecast | None = None


class HistoryQueries:
    """Queries about the history. `events_about` returns alert events with the given labels, newest first."""

    def __init__(self, reader: HeatMapReader, events_about: EventsAbout | None = None) -> None:
        self._reader = reader
        self._events_about = events_about
        self._forecasts: dict[str, tuple[HistoryRange, DiskForecast | None]] = {}  # open pages ask again and again

    def answer(self, subject: HistorySubject, name: str, span: float, until: float | None, lang: str) -> HistoryAnswer:
        """Figures for `span` seconds until now, or another time. Raise ValueError."""
        found = self._reader.read(subject, name, span, until)
        forecast = self.forecast(name) if subject is HistorySubject.DISK else None
        return HistoryAnswer(
            subject=subject, name=name, start=found.start, step_seconds=found.step_seconds, series=found.series,
            alerts=self._marks(subject, name, found, lang), forecast=forecast,
        )  # fmt: skip

    def heat_map(self, span: float, until: float | None, nodes: NameRange) -> HeatMap:
        """GPU utilisation of all nodes, or a range of them, for `span` seconds until now, or another time.

        Raise ValueError.
        """
        return self._reader.heat_map(span, until, nodes)

    def points(self, subject: HistorySubject, name: str, metric: HistoryMetric, span: float) -> tuple[Point, ...]:
        """Recent values as recorded here, oldest first."""
        return self._reader.recent(subject, name, span).points(metric)

    def forecast(self, disk: str) -> DiskForecast | None:
        """When a disk is full, as far as its history says."""
        found = self._reader.recent(HistorySubject.DISK, disk, SPAN_SECONDS)
        cached = self._forecasts.get(disk)
        if cached is not None and cached[0] is found:
            return cached[1]
        forecast = disk_forecast(found.points(HistoryMetric.USED))
        if len(self._forecasts) >= MAX_FORECASTS:
            self._forecasts = {}
        self._forecasts[disk] = found, forecast
        return forecast

    def _marks(self, subject: HistorySubject, name: str, found: HistoryRange, lang: str) -> tuple[AlertMark, ...]:
        labels = labels_of(subject, name)
        if self._events_about is None or not labels:
            return ()
        events = self._events_about(labels, found.start, MAX_MARKS_COUNT, lang)
        count = max((len(series.mean) for series in found.series), default=0)
        end = found.start + count * found.step_seconds
        return tuple(_mark(event, lang) for event in reversed(events) if not count or event.at <= end)


def labels_of(subject: HistorySubject, name: str) -> dict[str, str]:
    """Labels of the alerts about an entity; none of the whole cluster."""
    if subject is HistorySubject.GPU:
        node, _, gpu = name.rpartition("/")
        return {"node": node, "gpu": gpu}
    if subject is HistorySubject.DISK:
        node, _, mount = name.partition(":")
        return {"node": node, "mount": mount}
    if subject in (HistorySubject.POD, HistorySubject.JOB):
        namespace, _, own = name.partition("/")
        return {"namespace": namespace, subject.value: own}
    return {} if subject is HistorySubject.CLUSTER else {subject.value: name}


def _mark(event: LocalizedAlertEvent, lang: str) -> AlertMark:
    try:
        title = say(lang, f"rule.{event.rule}", {})
    except KeyError:
        title = event.rule
    return AlertMark(
        at=event.at, what=event.what, fingerprint=event.fingerprint, title=title, headline=event.headline,
        severity=event.severity,
    )  # fmt: skip
