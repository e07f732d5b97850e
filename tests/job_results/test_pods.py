"""What one pod says about the end of its job."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import ConditionFact, NodeFact, OwnerRef, PodFact
from monitor.job_results.model import PodEnd, TrackedPod
from monitor.job_results.pods import LOST_NODE_SECONDS, tracked_pod, vanished_pod
from tests.explain.builders import NOW, holding, looping, node, pod, running_container, waiting

ALIVE, LOST = node("n1"), node("n1", ready=None)
BEGAN, ENDED = NOW - 3600, NOW - 10


def ended(code: int, reason: str = "Error", **more: Any) -> Any:
    """Status of a container that ran for almost an hour."""
    fields: dict[str, Any] = {"state": "terminated", "exit_code": code, "started_at": BEGAN, "finished_at": ENDED}
    return waiting(reason, **(fields | more))


def over(*statuses: Any, phase: str = "Failed", **more: Any) -> PodFact:
    return holding("bert-0", "n1", 4, phase=phase, statuses=statuses, **more)


def disruption(reason: str, message: str | None = None) -> tuple[ConditionFact, ...]:
    return (ConditionFact(type="DisruptionTarget", status=True, reason=reason, message=message, since=ENDED),)


def facts_of(*pods: PodFact, nodes: tuple[NodeFact, ...] = (ALIVE,)) -> ClusterFacts:
    return make_cluster_facts(pods=pods, nodes=nodes)


DELETION: dict[str, Any] = {"deletion_at": ENDED + 20, "deletion_grace_seconds": 30.0}
FINISHED = [
    ("exit 0", over(ended(0, "Completed"), phase="Succeeded"), PodEnd.SUCCEEDED, "done"),
    ("exit 1", over(ended(1)), PodEnd.FAILED, "crash-error"),
    ("out of memory", over(ended(137, "OOMKilled")), PodEnd.FAILED, "crash-out-of-memory"),
    ("bad command", over(ended(128, "StartError", message='exec: "trian": executable file not found in $PATH')),
     PodEnd.FAILED, "start-no-start-file"),
    ("evicted", over(reason="Evicted", message="The node was low on resource: memory."), PodEnd.FAILED, "evicted"),
    ("deadline", over(ended(137), reason="DeadlineExceeded"), PodEnd.FAILED, "deadline"),
    ("preempted", over(ended(143), conditions=disruption("PreemptionByScheduler"), **DELETION),
     PodEnd.REMOVED, "preempted"),
    ("deleted", over(ended(137), **DELETION), PodEnd.REMOVED, "deleted"),
    ("deleted, and exits 0 then", over(ended(0), phase="Succeeded", **DELETION), PodEnd.REMOVED, "deleted"),
    ("failed, and is deleted then", over(ended(1), deletion_at=NOW + 60, deletion_grace_seconds=30.0),
     PodEnd.FAILED, "crash-error"),
    ("node removed", over(conditions=disruption("DeletionByPodGC")), PodEnd.FAILED, "node-lost"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "end", "cause"), [case[1:] for case in FINISHED], ids=[case[0] for case in FINISHED])
def test_a_finished_pod_says_how_it_ended(given: PodFact, end: PodEnd, cause: str) -> None:
    found = tracked_pod(given, facts_of(given), None, NOW)
    assert (found.end, found.why and found.why.cause, found.seen_over_at) == (end, cause, NOW)
    assert found.gpus == 4


def test_the_end_of_a_pod_is_seen_once_and_keeps_its_time() -> None:
    given = over(ended(1))
    first = tracked_pod(given, facts_of(given), None, NOW)
    again = tracked_pod(given, facts_of(given), first, NOW + 60)
    assert again == first
    assert (first.started_at, first.finished_at) == (BEGAN, ENDED)


def test_a_container_that_could_not_start_did_not_run() -> None:
    given = over(ended(128, "StartError"))
    assert tracked_pod(given, facts_of(given), None, NOW).started_at is None


RUNNING = holding("bert-0", "n1", 4, statuses=(running_container(),))
LEAVING = replace(RUNNING, deletion_at=NOW + 30, deletion_grace_seconds=30.0)
VANISHED = [
    ("deleted", LEAVING, (ALIVE,), PodEnd.REMOVED, "deleted"),
    ("deleted at once", RUNNING, (ALIVE,), PodEnd.REMOVED, "deleted"),
    ("preempted", replace(LEAVING, conditions=disruption("PreemptionByScheduler")), (ALIVE,), PodEnd.REMOVED,
     "preempted"),
    ("drained", replace(LEAVING, conditions=disruption("EvictionByEvictionAPI")), (ALIVE,), PodEnd.REMOVED,
     "evicted-by-api"),
    ("tainted", replace(LEAVING, conditions=disruption("DeletionByTaintManager")), (ALIVE,), PodEnd.REMOVED,
     "evicted-by-taint"),
    ("the node is silent", replace(LEAVING, conditions=disruption("DeletionByTaintManager")), (LOST,), PodEnd.REMOVED,
     "node-lost"),
    ("the node is gone", RUNNING, (node("n2"),), PodEnd.REMOVED, "node-lost"),
    ("finished, then deleted", over(ended(1)), (ALIVE,), PodEnd.FAILED, "crash-error"),
    ("while the daemon was down", None, (ALIVE,), PodEnd.REMOVED, "unseen"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("last", "nodes", "end", "cause"), [case[1:] for case in VANISHED], ids=[case[0] for case in VANISHED]
)
def test_a_pod_that_is_gone_says_why(
    last: PodFact | None, nodes: tuple[NodeFact, ...], end: PodEnd, cause: str
) -> None:
    before = tracked_pod(RUNNING, facts_of(RUNNING), None, NOW)
    found = vanished_pod(before, last, facts_of(nodes=nodes), NOW + 5)
    assert (found.end, found.why and found.why.cause, found.present) == (end, cause, False)
    assert found.started_at == before.started_at


def test_a_deletion_that_was_seen_before_a_restart_is_remembered() -> None:
    before = tracked_pod(LEAVING, facts_of(LEAVING), None, NOW)
    assert before.end is None
    found = vanished_pod(before, None, facts_of(), NOW + 600)
    assert found.why is not None
    assert found.why.cause == "deleted"


@pytest.mark.parametrize(("after", "end"), [(0.0, None), (LOST_NODE_SECONDS, PodEnd.REMOVED)])
def test_a_pod_deleted_on_a_silent_node_is_lost_after_its_grace_period(after: float, end: PodEnd | None) -> None:
    assert LEAVING.deletion_at is not None
    found = tracked_pod(LEAVING, facts_of(LEAVING, nodes=(LOST,)), None, LEAVING.deletion_at + after)
    assert (found.end, found.why and found.why.cause) == (end, "node-lost")


STUCK = [
    ("pull", waiting("ImagePullBackOff", 'Back-off pulling image "lab/x": manifest unknown'), "pull-not-found"),
    ("loop of a bad command", looping(128, reason="StartError", message='exec: "trian": executable file not found'),
     "start-no-start-file"),
    ("loop of a program that fails", looping(1), None),
    ("creating", waiting("ContainerCreating"), None),
]  # fmt: skip


@pytest.mark.parametrize(("status", "cause"), [case[1:] for case in STUCK], ids=[case[0] for case in STUCK])
def test_what_cannot_start_says_why_and_since_when(status: Any, cause: str | None) -> None:
    given = holding("bert-0", "n1", 1, phase="Pending", statuses=(status,))
    found = tracked_pod(given, facts_of(given), None, NOW)
    assert (found.why and found.why.cause, found.stuck_at) == (cause, NOW if cause else None)
    assert tracked_pod(given, facts_of(given), found, NOW + 9).stuck_at == found.stuck_at


@pytest.mark.parametrize(
    ("owner", "controller", "owned"),
    [
        (None, None, False),
        (OwnerRef(kind="Job", name="bert", uid="j1", api_version="batch/v1"), "j1", True),
        (OwnerRef(kind="Job", name="bert", uid="j1", api_version="batch.volcano.sh/v1alpha1"), None, True),
        (OwnerRef(kind="PyTorchJob", name="bert", uid="j1"), None, True),
    ],
)
def test_only_jobs_of_kubernetes_say_themselves_how_they_end(
    owner: OwnerRef | None, controller: str | None, owned: bool
) -> None:
    given = pod(owner=owner)
    found = tracked_pod(given, facts_of(given), None, NOW)
    assert (found.controller, found.owned) == (controller, owned)


def test_a_reported_pod_stays_as_it_was_reported() -> None:
    given = over(ended(1))
    reported = TrackedPod(
        uid=given.uid, name=given.name, created_at=0.0, end=PodEnd.FAILED, seen_over_at=1.0, reported=True
    )
    assert tracked_pod(given, facts_of(given), reported, NOW) == reported
