"""Thresholds of the kubelet, and the effective marks of policies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from monitor.cleanup.inputs import Planner, PlannerDeps
from monitor.cleanup.plan.watermarks import effective_marks, kubelet_high_ratio
from monitor.cleanup.policy import ImagePolicy, When
from monitor.facts.agents import AgentFact
from monitor.facts.storage import DiskFact, EvictionFact, KubeletFact
from tests.cleanup.builders import GIB, NOW, disk, snapshot

OWN, SHARED = disk(), disk(roles=("runtime", "kubelet"))
DEFAULT = ImagePolicy.when


def configured(high: float | None = None, *evictions: EvictionFact) -> KubeletFact:
    return KubeletFact(image_gc_high_ratio=high, eviction_hard=evictions)


def free(signal: str, ratio: float | None = None, gib: float | None = None) -> EvictionFact:
    size = None if gib is None else round(gib * GIB)
    return EvictionFact(signal=f"{signal}.available", available_ratio=ratio, available_bytes=size)


KUBELETS: list[tuple[str, KubeletFact | None, DiskFact | None, float]] = [
    ("not known", None, OWN, 0.85),
    ("nothing configured", KubeletFact(), OWN, 0.85),
    ("a configured threshold", KubeletFact(image_gc_high_ratio=0.7), OWN, 0.7),
    ("collects no garbage, and evicts as usual", KubeletFact(image_gc_high_ratio=1.0), OWN, 0.85),
    ("collects no garbage, and evicts nothing", configured(1.0), OWN, 1.0),
    ("evicts earlier", configured(None, free("imagefs", 0.25)), OWN, 0.75),
    ("evicts later", configured(None, free("imagefs", 0.05)), OWN, 0.85),
    ("evicts by bytes", configured(None, free("imagefs", gib=30)), OWN, 0.7),
    ("by more bytes than there are", configured(None, free("imagefs", gib=300)), OWN, 0.0),
    ("by bytes of a disk of unknown size", configured(None, free("imagefs", gib=30)), disk(size_bytes=None), 0.85),
    ("by bytes of no disk", configured(None, free("imagefs", gib=30)), None, 0.85),
    ("its own disk is another one", configured(None, free("nodefs", 0.4)), OWN, 0.85),
    ("its own disk is the same", configured(None, free("nodefs", 0.4)), SHARED, 0.6),
]


@pytest.mark.parametrize(("kubelet", "on", "expect"), [row[1:] for row in KUBELETS], ids=[row[0] for row in KUBELETS])
def test_where_the_kubelet_acts(kubelet: KubeletFact | None, on: DiskFact | None, expect: float) -> None:
    assert kubelet_high_ratio(snapshot(kubelet=kubelet), on) == pytest.approx(expect)


MARKS: list[tuple[str, When, float | None, tuple[float | None, float | None]]] = [
    ("as usual", DEFAULT, None, (0.80, 0.70)),
    ("the kubelet at the usual mark", DEFAULT, 0.85, (0.80, 0.70)),
    ("later than usual", DEFAULT, 0.95, (0.80, 0.70)),
    ("earlier than usual", DEFAULT, 0.70, (0.65, 0.55)),
    ("low is given, high is not", When(high=0.80, low=0.75, yield_to_kubelet=True), 0.70, (0.65, 0.60)),
    ("so early that nothing is left", DEFAULT, 0.05, (0.0, 0.0)),
    ("high is given", When(high=0.80, low=0.70), 0.70, (0.80, 0.70)),
    ("no low one", When(high=0.80, yield_to_kubelet=True), 0.70, (0.65, None)),
    ("there are none", When(cron="0 3 * * *"), 0.70, (None, None)),
]


@pytest.mark.parametrize(("when", "high", "expect"), [row[1:] for row in MARKS], ids=[row[0] for row in MARKS])
def test_which_marks_hold(when: When, high: float | None, expect: tuple[float | None, float | None]) -> None:
    found = effective_marks(when, snapshot(kubelet=KubeletFact(image_gc_high_ratio=high)), OWN)
    assert (found.high, found.low) == expect


@pytest.mark.parametrize(("high", "needed"), [(None, 10 * GIB), (0.70, 25 * GIB)])
def test_a_run_stops_at_the_mark_that_holds(high: float | None, needed: int) -> None:
    given = snapshot(disk=(disk(used=80),), kubelet=KubeletFact(image_gc_high_ratio=high))
    agent = AgentFact(target="a", node="n1", snapshot=given, received_at=NOW)
    cluster: Any = SimpleNamespace(poller=SimpleNamespace(facts=lambda: [agent]), fetch_agent=lambda _: agent)
    nothing: Any = None
    planner = Planner(PlannerDeps(cluster, nothing, None, lambda _: None, lambda _: None), lambda: NOW)
    reading = planner.disk_reading(ImagePolicy(name="p"), "n1")
    assert reading is not None
    assert reading.needed == pytest.approx(needed, abs=1)
