"""Cores of a node waiting for I/O over the last minutes, from the iowait counter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.facts.agents import AgentFact

WINDOW_SECONDS = 300.0  # the result covers the last one to two windows
MIN_WINDOW_SECONDS = 60.0

IoWaitSamples = dict[str, list[float]]  # node -> an earlier time and counter, a later time and counter


def update_samples(memory: Any, reports: Mapping[str, AgentFact]) -> tuple[IoWaitSamples, dict[str, float]]:
    """New samples, and the cores waiting by node."""
    before = memory if isinstance(memory, dict) else {}
    samples: IoWaitSamples = {}
    cores: dict[str, float] = {}
    for node, agent in reports.items():
        host = agent.snapshot.host if agent.snapshot else None
        waited = host.cpu_seconds_total.get("iowait") if host else None
        if agent.snapshot is None or waited is None:
            continue
        at = agent.snapshot.at
        samples[node] = sample = _next_sample(before.get(node), at, waited)
        if at - sample[0] >= MIN_WINDOW_SECONDS:
            cores[node] = (waited - sample[1]) / (at - sample[0])
    return samples, cores


def _next_sample(sample: Any, at: float, waited: float) -> list[float]:
    """The samples to keep; a counter or clock that went backwards starts anew."""
    if not isinstance(sample, list) or len(sample) != 4 or waited < sample[3] or at < sample[2]:
        return [at, waited, at, waited]
    return [sample[2], sample[3], at, waited] if at - sample[2] >= WINDOW_SECONDS else sample
