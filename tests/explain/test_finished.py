# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

from typing import Any

import pytest

from monitor.explain.pod import explain_pod
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import ConditionFact, ContainerStatusFact, PodFact
from tests.explain.builders import NOW, Case, check, english, names, pod, running_container, waiting


def ended(**more: Any) -> PodFact:
    return pod(**({"node": "gpu-01", "phase": "Failed"} | more))


def stopped(code: int, ago: float = 100, **more: Any) -> ContainerStatusFact:
    return waiting("Error", state="terminated", exit_code=code, finished_at=NOW - ago, **more)


def disrupted(reason: str, message: str, *, status: bool = True) -> PodFact:
    """A pod whose program was asked to stop, with the condition that says why."""
    condition = ConditionFact(type="DisruptionTarget", status=status, reason=reason, message=message)
    return ended(statuses=(stopped(143),), conditions=(condition,))


ALLOCATE = "Pod Allocate failed due to "
CASES = [
    Case("done", ended(phase="Succeeded"), "done", says=("without an error",)),
    Case(
        "devices are not there",
        ended(
            reason="UnexpectedAdmissionError",
            message=ALLOCATE
            + "requested number of devices unavailable for nvidia.com/gpu. Requested: 2, Available: 1, which is unexpected",
        ),
        "device-plugin",
        says=(
            "gpu-01 could not allocate 2 GPUs to it: only 1 were available",
            "If this keeps happening, restart the GPU device plugin",
        ),
    ),
    Case(
        "devices are ill",
        ended(
            reason="UnexpectedAdmissionError",
            message=ALLOCATE
            + "no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected",
        ),
        "device-plugin",
        says=("reports them as unhealthy", "kubectl cordon gpu-01"),
    ),
    Case(
        "a card was lost",
        ended(
            reason="UnexpectedAdmissionError",
            message=ALLOCATE
            + "device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = error creating nvml.Device 5: nvml: GPU is lost",
        ),
        "device-plugin",
        says=("reports them as unhealthy",),
    ),
    Case(
        "the plug-in failed",
        ended(reason="UnexpectedAdmissionError", message=ALLOCATE + "rpc error: EOF"),
        "device-plugin",
        says=("could not allocate its devices",),
    ),
    Case(
        "the node was full when it came",
        ended(reason="OutOfcpu", message="Node didn't have enough resource: cpu"),
        "node-refused",
    ),
    Case(
        "the node's labels changed",
        ended(reason="NodeAffinity", message="Predicate NodeAffinity failed"),
        "admission-affinity",
    ),
    Case(
        "thrown out for the disk",
        ended(
            reason="Evicted", message="The node was low on resource: ephemeral-storage. Container main was using 60Gi"
        ),
        "evicted",
        says=("its disk was nearly full",),
    ),
    Case(
        "thrown out for memory",
        ended(reason="Evicted", message="The node was low on resource: memory."),
        "evicted",
        says=("short of memory",),
        silent=("disk was",),
    ),
    Case("preempted", ended(reason="Preempting", message="Preempted in order to admit critical pod"), "preempted"),
    Case(
        "too long",
        ended(reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline"),
        "deadline",
    ),
    Case("shut down", ended(reason="Shutdown", message="Node is shutting, evicting pods"), "node-lost"),
    Case("its own error", ended(statuses=(stopped(1),)), "crash-error", says=("exit code 1",)),
    Case(
        "the first that failed is the reason",
        ended(statuses=(stopped(143, ago=50, name="side"), stopped(139))),
        "crash-segfault",
    ),
    Case(
        "a sidecar that was restarted does not fail a pod",
        ended(statuses=(stopped(1, ago=500, name="proxy", init=True, sidecar=True), stopped(139))),
        "crash-segfault",
    ),
    Case(
        "a sidecar that had to be killed did not fail it",
        ended(statuses=(stopped(137, ago=50, name="proxy", init=True, sidecar=True), stopped(1))),
        "crash-error",
        silent=("proxy",),
    ),
    Case(
        "preempted, by its condition",
        disrupted("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"),
        "preempted",
        says=("A pod with a higher priority preempted it on gpu-01.", "preempting to accommodate"),
    ),
    Case(
        "drained",
        disrupted("EvictionByEvictionAPI", "Eviction API: evicting"),
        "evicted-by-api",
        says=("evicted through the Kubernetes API from gpu-01",),
        silent=("exit code",),
    ),
    Case(
        "a taint",
        disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"),
        "evicted-by-taint",
        says=("gpu-01 has a NoExecute taint",),
    ),
    Case("its node is gone", disrupted("DeletionByPodGC", "PodGC: node no longer exists"), "node-lost"),
    Case(
        "the kubelet needs memory",
        disrupted("TerminationByKubelet", "The node was low on resource: memory. Threshold quantity: 100Mi"),
        "evicted",
        says=("short of memory",),
    ),
    Case(
        "the kubelet shuts down",
        disrupted("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown."),
        "node-lost",
    ),
    Case(
        "a disruption that did not happen",
        disrupted("EvictionByEvictionAPI", "Eviction API: evicting", status=False),
        "crash-terminated",
    ),
    Case("a new reason", disrupted("DeletionByMoonlight", "?"), "crash-terminated"),
    Case(
        "could not even start",
        ended(statuses=(waiting("StartError", 'exec: "/x": permission denied', state="terminated", exit_code=128),)),
        "start-not-executable",
    ),
    Case("nothing says why", ended(message="gone"), "failed", says=("It failed: gone",)),
    Case(
        "a container that ended well is not why",
        ended(statuses=(running_container(state="terminated", exit_code=0),)),
        "failed",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_finished(case: Case) -> None:
    check(case, "finished")


def test_a_share_that_cannot_be_allocated_keeps_its_unit() -> None:
    message = (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for aliyun.com/gpu-mem. "
        "Requested: 10, Available: 4, which is unexpected"
    )
    refused = pod(phase="Failed", node="gpu-01", reason="UnexpectedAdmissionError", message=message)
    explanation = explain_pod(refused, make_cluster_facts(pods=[refused]), NOW)
    assert "could not allocate 10 GiB of GPU memory to it: only 4 were available" in english(explanation)
