"""Containers and pod sandboxes of every runtime of the node."""

from __future__ import annotations

from itertools import chain

from monitor.agent.collectors import AbsentError
from monitor.agent.runtime import Runtimes, Survey
from monitor.facts import ContainerFact


class ContainersCollector:
    """Reads which containers there are. `patience` is how long each of several runtimes may take."""

    name = "containers"

    def __init__(self, runtimes: Runtimes, patience: float = 5.0) -> None:
        self._survey = Survey(self.name, runtimes, patience)

    @property
    def trouble(self) -> str | None:
        """Return which runtime the last reading is without, and why, or None if it is complete."""
        return self._survey.trouble

    def collect(self) -> tuple[ContainerFact, ...]:
        answers = self._survey.ask(lambda runtime: runtime.containers())
        if not answers:
            raise AbsentError("this node has no container runtime that can be asked")
        return tuple(chain.from_iterable(answers))
