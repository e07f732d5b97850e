"""A history with a clock of its own, and short constructors."""

from __future__ import annotations

from pathlib import Path

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState, GpuView
from monitor.history.model import HistoryMetric, HistoryRange, HistorySubject
from monitor.history.reader import HistoryReader
from monitor.history.recorder import HistoryRecorder
from monitor.history.store import FILE, HistoryStore
from tests.report.builders import gpu, holder, view
from tests.support.clock import FakeClock

MINUTE, HOUR, DAY = 60, 3600, 86400
START = 1_763_251_200.0  # 2025-11-16 00:00 UTC


def busy(load: float | None, index: int = 0, node: str = "n1") -> GpuView:
    return gpu(GpuState.BUSY, holder(), node=node, index=index, load=load)


class Rig:
    """A recorder on a database file, and its clock."""

    def __init__(self, folder: Path, at: float = START) -> None:
        self.path = str(folder / FILE)
        self.clock = FakeClock(at)
        self.start()

    def start(self) -> None:
        """Start as after the end of the process."""
        self.recorder = HistoryRecorder(HistoryStore(self.path), self.clock.time, self.clock.monotonic)
        self.reader = HistoryReader(self.recorder, now=self.clock.time)

    def see(self, *gpus: GpuView, after: float = 0.0, agents: tuple[AgentFact, ...] = ()) -> None:
        self.clock.advance(after)
        self.recorder.record(view(*gpus), agents)

    def see_view(self, seen: ClusterView, *agents: AgentFact) -> None:
        self.recorder.record(seen, agents)

    def run(self, seconds: float, load: float | None, every: float = MINUTE) -> None:
        """Record a GPU of this load at the end of each interval."""
        for _ in range(round(seconds / every)):
            self.see(busy(load), after=every)

    def read(
        self, span: float = HOUR, subject: HistorySubject = HistorySubject.GPU, name: str = "n1/0"
    ) -> HistoryRange:
        return self.reader.read(subject, name, span)

    def loads(self, span: float = HOUR) -> list[tuple[float, float | None]]:
        """Known utilization of the GPU by time."""
        return [point for point in self.read(span).points(HistoryMetric.UTILIZATION) if point[1] is not None]
