"""The history over HTTP: figures of one GPU, node, disk, pod, job, user or queue over time, and those of all nodes.

Needs the role viewer.
"""

from __future__ import annotations

from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.base.units import parse_duration
from monitor.history.heatmap import HeatMap, NameRange
from monitor.history.model import CLUSTER, MAX_NAME_CHARS, HistorySubject
from monitor.queries.history import HistoryAnswer
from monitor.web.responses import language_of, respond

DEFAULT_SPAN = "1h"
MAX_TIME_CHARS = 20


class HistoryBackend(Protocol):
    """Queries about the history."""

    def answer(
        self, subject: HistorySubject, name: str, span: float, until: float | None, lang: str, /
    ) -> HistoryAnswer:
        """Figures for `span` seconds until now, or another time. Raise ValueError."""
        ...

    def heat_map(self, span: float, until: float | None, nodes: NameRange, /) -> HeatMap:
        """GPU utilisation of all nodes, or a range of them, over the same time. Raise ValueError."""
        ...


def history_routes(history: HistoryBackend) -> list[Route]:
    """Routes of the history."""

    def read(request: Request) -> Response:
        return respond(lambda: _answer(history, request))

    def read_nodes(request: Request) -> Response:
        return respond(lambda: _heat_map(history, request))

    return [Route("/v1/history", read), Route("/v1/history/nodes", read_nodes)]


def _answer(history: HistoryBackend, request: Request) -> HistoryAnswer:
    """Raise ValueError for invalid parameters."""
    query = request.query_params
    subject = parse_subject(query.get("subject", ""))
    name = CLUSTER if subject is HistorySubject.CLUSTER else query.get("name", "")
    if not 0 < len(name) <= MAX_NAME_CHARS:
        raise ValueError(f"name is that of a {subject}, at most {MAX_NAME_CHARS} characters")
    return history.answer(subject, name, *_span_and_until(request), language_of(request))


def _heat_map(history: HistoryBackend, request: Request) -> HeatMap:
    """Raise ValueError for invalid parameters."""
    first, last = request.query_params.get("first"), request.query_params.get("last")
    if any(name is not None and not 0 < len(name) <= MAX_NAME_CHARS for name in (first, last)):
        raise ValueError(f"first and last are names of nodes, at most {MAX_NAME_CHARS} characters")
    return history.heat_map(*_span_and_until(request), NameRange(first, last))


def _span_and_until(request: Request) -> tuple[float, float | None]:
    """Raise ValueError."""
    query = request.query_params
    span, until = parse_duration(query.get("span", DEFAULT_SPAN)), query.get("until")
    return span, None if until is None else parse_time(until)


def parse_subject(text: str) -> HistorySubject:
    """A subject of the history. Raise ValueError."""
    try:
        return HistorySubject(text)
    except ValueError:
        raise ValueError(f"subject is one of {', '.join(HistorySubject)}") from None


def parse_time(text: str) -> float:
    """A Unix time in seconds. Raise ValueError."""
    if not text.isdecimal() or len(text) > MAX_TIME_CHARS:
        raise ValueError("until is a Unix time in seconds")
    return float(text)
