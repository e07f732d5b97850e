"""What fills the runtimes' directories beside images: writable layers, build cache, volumes."""

from __future__ import annotations

from monitor.agent.collectors import AbsentError
from monitor.agent.runtime import Runtimes, Survey
from monitor.facts import RuntimeUsageFact


class RuntimeUsageCollector:
    """Reads usage, which Docker finds out by walking directories. `patience` is each runtime's, of several."""

    name = "runtime_usage"

    def __init__(self, runtimes: Runtimes, patience: float = 120.0) -> None:
        self._survey = Survey(self.name, runtimes, patience)

    @property
    def trouble(self) -> str | None:
        """Return which runtime the last reading is without, and why, or None if it is complete."""
        return self._survey.trouble

    def collect(self) -> tuple[RuntimeUsageFact, ...]:
        answers = self._survey.ask(lambda runtime: runtime.usage())
        if not answers:
            raise AbsentError("this node has no container runtime that can be asked")
        return answers
