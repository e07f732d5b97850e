"""Explanations that are not worked out anew for everybody who looks: in a large cluster each looks at all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from monitor.facts.cluster import ClusterView
from monitor.present.findings import FindingView
from monitor.queries.cluster import PodExplanation
from monitor.web.context import ClusterBackend

QUIET = 10.0  # an answer is good for so many times as long as it took
MOST = 200

Question = tuple[str, str | None, str]


class CachedQueries:
    """Asks for an explanation again only when that takes little of a core, however many pages are open."""

    def __init__(self, asked: ClusterBackend, now: Callable[[], float] = time.monotonic) -> None:
        self._asked = asked
        self._now = now
        self._known: dict[Question, tuple[float, PodExplanation]] = {}  # until when an answer is good
        self._lock = threading.Lock()

    def view(self) -> ClusterView:
        return self._asked.view()

    def findings(self, lang: str) -> tuple[FindingView, ...] | None:
        return self._asked.findings(lang)

    def why(self, name: str, namespace: str | None, lang: str) -> PodExplanation:
        """Return why a pod or job is as it is, or lately was."""
        question = (name, namespace, lang)
        with self._lock:  # who asks the same waits for the answer
            known = self._known.get(question)
            began = self._now()
            if known is not None and began < known[0]:
                return known[1]
            answer = self._asked.why(name, namespace, lang)
            ended = self._now()
            if len(self._known) >= MOST:
                fresh = {each: kept for each, kept in self._known.items() if ended < kept[0]}
                self._known = fresh if len(fresh) < MOST else {}
            self._known[question] = (ended + QUIET * (ended - began), answer)
            return answer
