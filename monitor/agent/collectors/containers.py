"""Containers and pod sandboxes of every runtime of the node."""

from __future__ import annotations

from itertools import chain

from monitor.agent.collectors import AbsentError
from monitor.agent.runtime import Runtimes, Survey
from monitor.facts import ContainerFact


class ContainersCollector:
    """Lists containers. On a node with several runtimes, each has `timeout` seconds."""

    name = "containers"

    def __init__(self, runtimes: Runtimes, timeout: float = 5.0) -> None:
        self._survey = Survey(self.name, runtimes, timeout)

    @property
    def warning(self) -> str | None:
        """Why the last result is incomplete, if it is."""
        return self._survey.warning

    def collect(self) -> tuple[ContainerFact, ...]:
        results = self._survey.query(lambda runtime: runtime.containers())
        if not results:
            raise AbsentError("no container runtime on this node")
        return tuple(chain.from_iterable(results))
