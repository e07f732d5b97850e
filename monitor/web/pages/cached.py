"""Cached answers of expensive queries: in a large cluster, one explanation examines all pods and nodes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Generic, TypeVar

from monitor.explain.fits.model import FitsRequest
from monitor.facts.cluster import ClusterView
from monitor.present.findings import LocalizedFinding
from monitor.queries.cluster import PodExplanation, WantedName
from monitor.queries.fits import FitsAnswer
from monitor.web.context import ClusterBackend

VALIDITY_FACTOR = 10.0  # of the time it took to compute
MAX_ANSWERS = 200

T = TypeVar("T")


class TimedCache(Generic[T]):
    """Recomputes an answer only as often as takes a small share of a core, for any number of open pages."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._answers: dict[tuple[str | None, ...], tuple[float, T]] = {}  # with the time until which each is valid
        self._lock = threading.Lock()

    def get(self, key: tuple[str | None, ...], compute: Callable[[], T]) -> T:
        """The answer to a question, possibly from the cache."""
        with self._lock:  # concurrent requests share one computation
            cached = self._answers.get(key)
            started = self._now()
            if cached is not None and started < cached[0]:
                return cached[1]
            answer = compute()
            ended = self._now()
            if len(self._answers) >= MAX_ANSWERS:
                valid = {key: entry for key, entry in self._answers.items() if ended < entry[0]}
                self._answers = valid if len(valid) < MAX_ANSWERS else {}
            self._answers[key] = (ended + VALIDITY_FACTOR * (ended - started), answer)
            return answer


class CachedQueries:
    """Queries about the cluster, with cached explanations."""

    def __init__(self, cluster: ClusterBackend, now: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._explanations = TimedCache[tuple[PodExplanation, ...]](now)
        self._fits = TimedCache[FitsAnswer](now)

    def view(self) -> ClusterView:
        return self._cluster.view()

    def overview(self) -> ClusterView:
        return self._cluster.overview()

    def findings(self, lang: str) -> tuple[LocalizedFinding, ...] | None:
        return self._cluster.findings(lang)

    def why(self, names: Sequence[WantedName], lang: str) -> tuple[PodExplanation, ...]:
        """Explain the states of pods or jobs, possibly from the cache."""
        key = (lang, *chain.from_iterable(names))
        return self._explanations.get(key, lambda: self._cluster.why(names, lang))

    def fits(self, request: FitsRequest, lang: str) -> FitsAnswer:
        """Whether a job would fit, possibly from the cache."""
        return self._fits.get((repr(request), lang), lambda: self._cluster.fits(request, lang))
