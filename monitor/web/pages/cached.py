"""Cached explanations: in a large cluster, one explanation examines all pods and nodes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from monitor.facts.cluster import ClusterView
from monitor.present.findings import LocalizedFinding
from monitor.queries.cluster import PodExplanation
from monitor.web.context import ClusterBackend

VALIDITY_FACTOR = 10.0  # of the time it took to compute
MAX_EXPLANATIONS = 200

Key = tuple[str, str | None, str]


class CachedQueries:
    """Recomputes an explanation only as often as takes a small share of a core, for any number of open pages."""

    def __init__(self, cluster: ClusterBackend, now: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._now = now
        self._explanations: dict[Key, tuple[float, PodExplanation]] = {}  # with the time until which it is valid
        self._lock = threading.Lock()

    def view(self) -> ClusterView:
        return self._cluster.view()

    def findings(self, lang: str) -> tuple[LocalizedFinding, ...] | None:
        return self._cluster.findings(lang)

    def why(self, name: str, namespace: str | None, lang: str) -> PodExplanation:
        """Explain the state of a pod or job, possibly from the cache."""
        key = (name, namespace, lang)
        with self._lock:  # concurrent requests share one computation
            cached = self._explanations.get(key)
            started = self._now()
            if cached is not None and started < cached[0]:
                return cached[1]
            explanation = self._cluster.why(name, namespace, lang)
            ended = self._now()
            if len(self._explanations) >= MAX_EXPLANATIONS:
                valid = {key: entry for key, entry in self._explanations.items() if ended < entry[0]}
                self._explanations = valid if len(valid) < MAX_EXPLANATIONS else {}
            self._explanations[key] = (ended + VALIDITY_FACTOR * (ended - started), explanation)
            return explanation
