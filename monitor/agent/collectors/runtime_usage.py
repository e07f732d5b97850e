"""What fills the runtimes' directories besides images: writable layers, build cache, volumes."""

from __future__ import annotations

from monitor.agent.collectors import AbsentError
from monitor.agent.runtime import Runtimes, Survey
from monitor.facts import RuntimeUsageFact


class RuntimeUsageCollector:
    """Reads usage, which Docker computes by walking directories. Of several runtimes, each has `timeout` seconds."""

    name = "runtime_usage"

    def __init__(self, runtimes: Runtimes, timeout: float = 120.0) -> None:
        self._survey = Survey(self.name, runtimes, timeout)

    @property
    def warning(self) -> str | None:
        """Why the last result is incomplete, if it is."""
        return self._survey.warning

    def collect(self) -> tuple[RuntimeUsageFact, ...]:
        results = self._survey.query(lambda runtime: runtime.usage())
        if not results:
            raise AbsentError("no container runtime on this node")
        return results
