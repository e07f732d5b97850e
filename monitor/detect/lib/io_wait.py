"""How many cores of a node wait for I/O, over the last minutes: from a counter that only ever grows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.facts.agents import AgentFact

WINDOW_SECONDS = 300.0  # the figure is that of the last one to two windows
MIN_WINDOW_SECONDS = 60.0

IoWaitSamples = dict[str, list[float]]  # node -> an earlier time and counter, a later time and counter


def update_samples(memory: Any, reports: Mapping[str, AgentFact]) -> tuple[IoWaitSamples, dict[str, float]]:
    """Given what was remembered and what agents say, return what to remember, and the cores that wait, by node."""
    before = memory if isinstance(memory, dict) else {}
    marks: IoWaitSamples = {}
    cores: dict[str, float] = {}
    for node, agent in reports.items():
        host = agent.snapshot.host if agent.snapshot else None
        waited = host.cpu_seconds_total.get("iowait") if host else None
        if agent.snapshot is None or waited is None:
            continue
        at = agent.snapshot.at
        marks[node] = mark = _next_sample(before.get(node), at, waited)
        if at - mark[0] >= MIN_WINDOW_SECONDS:
            cores[node] = (waited - mark[1]) / (at - mark[0])
    return marks, cores


def _next_sample(mark: Any, at: float, waited: float) -> list[float]:
    """Return the marks to go on with. A counter or a clock that went back has begun anew."""
    if not isinstance(mark, list) or len(mark) != 4 or waited < mark[3] or at < mark[2]:
        return [at, waited, at, waited]
    return [mark[2], mark[3], at, waited] if at - mark[2] >= WINDOW_SECONDS else mark
