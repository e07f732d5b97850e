"""Evidence of a resize that waits or fails, beside the diagnosis of a running pod."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.kube import ConditionFact
from tests.explain.builders import Case, check, names, node, pod, running_container


def resizing(kind: str, reason: str, message: str, *, status: bool = True) -> dict[str, Any]:
    condition = ConditionFact(type=f"PodResize{kind}", status=status, reason=reason, message=message)
    return {"node": "gpu-01", "phase": "Running", "statuses": (running_container(),), "conditions": (condition,)}


HERE = {"nodes": [node("gpu-01")]}
NO_ROOM = "Node didn't have enough resource: cpu, requested: 64000, used: 40000, capacity: 96000"
NEVER = "Node didn't have enough capacity: cpu, requested: 900000, capacity: 96000"
CASES = [
    Case(
        "deferred",
        pod(**resizing("Pending", "Deferred", NO_ROOM)),
        "running",
        says=(f"Its resize waits until gpu-01 has room: {NO_ROOM}",),
        facts=HERE,
    ),
    Case(
        "infeasible",
        pod(**resizing("Pending", "Infeasible", NEVER)),
        "running",
        says=(f"Its resize is not possible on gpu-01: {NEVER}",),
        facts=HERE,
    ),
    Case(
        "the kubelet fails",
        pod(**resizing("InProgress", "Error", "failed to update the cgroup")),
        "running",
        says=("could not apply its resize: failed to update the cgroup",),
        facts=HERE,
    ),
    Case("at work", pod(**resizing("InProgress", "", "")), "running", silent=("resize",), facts=HERE),
    Case("over", pod(**resizing("Pending", "Deferred", "", status=False)), "running", silent=("resize",), facts=HERE),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_resize(case: Case) -> None:
    check(case, "running")
