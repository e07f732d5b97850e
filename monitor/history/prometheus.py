"""Ranges from a Prometheus server, or one that speaks its API."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import msgspec

from monitor.base.endpoint import Endpoint
from monitor.base.http import RequestError, get
from monitor.base.threads import run_parallel
from monitor.history.model import (
    METRICS,
    MINUTE_SECONDS,
    UNITS,
    HistoryMetric,
    HistoryRange,
    HistorySeries,
    HistorySubject,
)
from monitor.history.promql import expressions

REQUEST_WORKERS = 7  # requests to the server at the same time
RETRY_AFTER_SECONDS = 30.0  # meanwhile, the daemon's own history is shown at once

Values = tuple[float | None, ...]


@dataclass(frozen=True)
class PrometheusSettings:
    """A server, and the labels that select the series of this cluster on it."""

    endpoint: Endpoint
    token: str | None = field(default=None, repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)


class _Series(msgspec.Struct):
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct):
    result: list[_Series] = []


class _Answer(msgspec.Struct):
    data: _Data


class PrometheusHistory:
    """Reads ranges with `query_range`. Thread-safe."""

    def __init__(self, settings: PrometheusSettings) -> None:
        self._settings = settings
        self._retry_at = 0.0  # monotonic

    def read(self, subject: HistorySubject, name: str, start: int, step: int, count: int) -> HistoryRange:
        """The figures that the server has. Raise RequestError, for a while also without asking again."""
        if time.monotonic() < self._retry_at:
            raise RequestError(f"{self._settings.endpoint.host} has just failed", retryable=True)
        known = expressions(subject, name, self._settings.labels)
        wanted = [(metric, how) for metric in METRICS[subject] if metric in known for how in ("avg", "max")]
        calls = [partial(self._values, known[metric], how, start, step, count) for metric, how in wanted]
        found: dict[tuple[HistoryMetric, str], Values] = {}
        for key, outcome in zip(wanted, self._outcomes(calls), strict=True):
            if outcome.value is None:
                self._retry_at = time.monotonic() + RETRY_AFTER_SECONDS
                error = outcome.error or f"{self._settings.endpoint.host}: no complete answer in time"
                raise RequestError(str(error), retryable=True)
            found[key] = outcome.value
        series = tuple(
            HistorySeries(metric=metric, unit=UNITS[metric], mean=found[metric, "avg"], max=found[metric, "max"])
            for metric in METRICS[subject]
            if any(value is not None for value in found.get((metric, "avg"), ()))
        )
        return HistoryRange(subject=subject, name=name, start=start, step_seconds=step, series=series)

    def _outcomes(self, calls: list[Any]) -> list[Any]:
        return run_parallel(calls, 2 * self._settings.endpoint.timeout, REQUEST_WORKERS, "prometheus")

    def _values(self, expression: str, how: str, start: int, step: int, count: int) -> Values:
        """One value per step; that of a step is at its end. Raise RequestError."""
        query = f"{how}_over_time(({expression})[{step}s:{MINUTE_SECONDS}s])"
        wanted = {"query": query, "start": start + step, "end": start + count * step, "step": step}
        endpoint, headers = self._settings.endpoint, {"Accept": "application/json"}
        if self._settings.token is not None:
            headers["Authorization"] = f"Bearer {self._settings.token}"
        url = f"{endpoint.url.rstrip('/')}/api/v1/query_range?{urlencode(wanted)}"
        reply = get(replace(endpoint, url=url), headers)
        try:
            result = msgspec.json.decode(reply.body, type=_Answer).data.result
            points = {int(at): float(value) for at, value in result[0].values[: count + 1]} if result else {}
        except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, OverflowError):
            raise RequestError(
                f"{endpoint.host} answers something else than a Prometheus server", retryable=False
            ) from None
        return tuple(_finite(points.get(start + (number + 1) * step)) for number in range(count))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
