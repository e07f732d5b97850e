from __future__ import annotations

from monitor.facts.queues import QueueFact
from tests.explain.builders import Case, check, node, pod

ROOM = [node("gpu-01")]


def test_a_gate_of_somebody_else() -> None:
    check(
        Case(
            "some other gate",
            pod(gpus=1, scheduling_gates=("example.com/hold",)),
            "unschedulable-other",
            says=("scheduling gate example.com/hold",),
            facts={"nodes": ROOM},
        )
    )


def test_a_pod_of_the_default_scheduler_is_not_held_by_a_volcano_queue_of_that_name() -> None:
    closed = QueueFact(uid="q", kind="VolcanoQueue", name="nlp", state="closed")
    mine = pod(gpus=1, age=5, labels={"volcano.sh/queue-name": "nlp"})
    check(Case("default", mine, "unschedulable-other", facts={"nodes": ROOM, "queues": [closed]}))
