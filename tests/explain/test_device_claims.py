"""Pods that wait for ResourceClaims, or whose devices are not prepared, in both languages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.cluster.devices import DeviceIndex
from monitor.explain.fit import fit_all
from monitor.explain.model import Explanation
from monitor.explain.pod import explain_pod
from monitor.facts.devices import DeviceFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import ConditionFact, EventFact, NodeFact, PodFact
from monitor.present.explanation import render_explanation
from tests.explain.builders import GPU, NOW
from tests.support.resource_claims import (
    claim_json,
    class_json,
    device_facts,
    gpu_json,
    pod_fact,
    pod_json,
    request_json,
    slice_json,
)

ALL_FULL = (
    "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: 0/2 nodes are "
    "available: 2 Preemption is not helpful for scheduling."
)
SLICES = [slice_json(*(gpu_json(i, name) for i in range(2)), node=name) for name in ("n1", "n2")]
NODES = [
    NodeFact(uid=name, name=name, ready=True, capacity={"pods": 110.0}, allocatable={"pods": 110.0, "cpu": 64.0})
    for name in ("n1", "n2")
]
HELD = [claim_json(f"held-{name}", "gpu-0", "gpu-1", pods=[f"train-{name}"], node=name) for name in ("n1", "n2")]


def event(reason: str, message: str) -> EventFact:
    return EventFact(
        uid=f"event-{reason}", kind="Pod", name="job", namespace="team", involved_uid="uid-job", reason=reason,
        type="Warning", message=message, first_at=NOW - 60, last_at=NOW - 5,
    )  # fmt: skip


def waiting(item: dict[str, Any], message: str | None = ALL_FULL, age: float = 600.0) -> PodFact:
    """The pod, rejected by the scheduler with the message."""
    conditions = (
        ConditionFact(type="PodScheduled", status=False, reason="Unschedulable", message=message, since=NOW - age),
    )
    return msgspec.structs.replace(
        pod_fact(item), created_at=NOW - age, conditions=conditions if message is not None else ()
    )


def explained(
    pod: PodFact, devices: DeviceFacts, *events: EventFact, nodes: list[NodeFact] | None = None
) -> Explanation:
    """The explanation of a pod, with pods and nodes joined as in the view."""
    index = DeviceIndex(GPU, devices)
    joined = [index.node(node, None) for node in NODES]
    facts = make_cluster_facts(pods=[index.pod(pod)], nodes=joined, events=events, devices=devices)
    return explain_pod(facts.pod_by_uid[pod.uid], facts, NOW)


def english(answer: Explanation) -> str:
    return "\n".join(render_explanation(answer, "en"))


def job(claim: str | None = "job-gpu", **more: Any) -> dict[str, Any]:
    return pod_json("job", claim, node=None, **more)


TEMPLATE_EVENT = event(
    "FailedResourceClaimCreation",
    'PodResourceClaim gpu: resource claim template "single-gpu": resourceclaimtemplate.resource.k8s.io "single-gpu" '
    "not found",
)
REFUSED_EVENT = event(
    "FailedResourceClaimCreation",
    'PodResourceClaim gpu: failed to create ResourceClaim: resourceclaims.resource.k8s.io "job-gpu-" is forbidden: '
    "exceeded quota: gpus",
)
WAITS_FOR_CONTROLLER = "0/2 nodes are available: waiting for resource claim controller to create the resourceclaim"
H300 = "device.attributes['gpu.nvidia.com'].productName == 'H300'"

SHARING = msgspec.structs.replace(waiting(job("shared", template=None)), node_selector={"zone": "b"})

CASES: list[tuple[str, PodFact, DeviceFacts, tuple[EventFact, ...], tuple[str, ...]]] = [
    (
        "the template is missing",
        waiting(job(None), None),
        device_facts([], SLICES),
        (TEMPLATE_EVENT,),
        ("ResourceClaimTemplate single-gpu does not exist in team", "kubectl get resourceclaimtemplates -n team"),
    ),
    (
        "the claim may not be created",
        waiting(job(None), WAITS_FOR_CONTROLLER),
        device_facts([], SLICES),
        (REFUSED_EVENT,),
        ("has not been created from the template single-gpu", "exceeded quota: gpus"),
    ),
    (
        "the controller does not run",
        waiting(job(None), None),
        device_facts([], SLICES),
        (),
        ("has not been created from the template single-gpu", "kube-controller-manager"),
    ),
    (
        "the named claim is missing",
        waiting(job("shared", template=None), None),
        device_facts([], SLICES),
        (),
        ("ResourceClaim shared does not exist in team",),
    ),
    (
        "the claim is being deleted",
        waiting(job(), None),
        device_facts([claim_json("job-gpu", deletionTimestamp="2025-11-16T02:10:00Z")], SLICES),
        (),
        ("ResourceClaim job-gpu is being deleted",),
    ),
    (
        "the scheduler knows the claim, and the watch does not yet",
        waiting(job("shared", template=None), "0/2 nodes are available: 2 cannot allocate all claims."),
        device_facts([], SLICES),
        (),
        ("The devices of its resource claims cannot be allocated",),
    ),
    (
        "the class is missing",
        waiting(job(), "0/2 nodes are available: request gpu: device class h200 does not exist."),
        device_facts([claim_json("job-gpu", requests=[request_json(1, "h200")])], SLICES),
        (),
        ("DeviceClass h200, which its ResourceClaim job-gpu asks for, does not exist",),
    ),
    (
        "the driver offers nothing",
        waiting(job()),
        device_facts([claim_json("job-gpu")], []),
        (),
        ("No node offers a device of class gpu.nvidia.com", "driver gpu.nvidia.com has published none"),
    ),
    (
        "more than a node has",
        waiting(job()),
        device_facts([claim_json("job-gpu", requests=[request_json(4)])], SLICES),
        (),
        ("asks for 4 devices of class gpu.nvidia.com, and no node has more than 2",),
    ),
    (
        "all are taken",
        waiting(job()),
        device_facts([claim_json("job-gpu"), *HELD], SLICES),
        (),
        ("needs 1 of the 4 devices of class gpu.nvidia.com", "in the cluster: 0", "train-n1 (2), team/train-n2 (2)"),
    ),
    (
        "enough are free, but not on one node",
        waiting(job()),
        device_facts(
            [
                claim_json("job-gpu", requests=[request_json(2)]),
                claim_json("one", "gpu-0", pods=["a"], node="n1"),
                claim_json("two", "gpu-1", pods=["b"], node="n2"),
            ],
            SLICES,
        ),
        (),
        ("needs 2 of the 4 devices", "in the cluster: 2"),
    ),
    (
        "none matches the selector",
        waiting(job()),
        device_facts([claim_json("job-gpu", requests=[request_json(1, selectors=[H300])]), HELD[0]], SLICES),
        (),
        ("are free (2 of 4)", "productName == 'H300'", "kubectl get resourceslices -o yaml"),
    ),
    (
        "the shared claim is in use on a node that has no room",
        SHARING,
        device_facts([claim_json("shared", "gpu-0", pods=["first"])], SLICES),
        (),
        ("ResourceClaim shared is in use by first on n1, so it can only run there",),
    ),
]


@pytest.mark.parametrize(("name", "pod", "devices", "events", "texts"), CASES, ids=[case[0] for case in CASES])
def test_a_pod_that_waits_for_a_claim(
    name: str, pod: PodFact, devices: DeviceFacts, events: tuple[EventFact, ...], texts: tuple[str, ...]
) -> None:
    answer = explained(pod, devices, *events)
    assert (answer.status.value, answer.cause) == ("pending", "device-claim"), name
    said = english(answer)
    assert [text for text in texts if text not in said] == [], said
    assert "does the scheduler run" not in said
    chinese = "\n".join(render_explanation(answer, "zh"))
    assert "资源声明" in chinese or "DeviceClass" in chinese or "设备" in chinese
    assert "{" not in chinese.replace("{...}", "")


def test_a_reason_that_claims_do_not_explain_is_left_to_the_nodes() -> None:
    pod = waiting(job(), "0/2 nodes are available: 2 Insufficient cpu.")
    pod = msgspec.structs.replace(pod, requests={"cpu": 128.0})
    assert "CPU" in english(explained(pod, device_facts([claim_json("job-gpu")], SLICES)))


def test_a_fresh_pod_is_not_accused() -> None:
    answer = explained(waiting(job(None), None, age=5.0), device_facts([], SLICES))
    assert "has not been created" not in english(answer)


def test_without_the_right_to_read_claims_the_scheduler_is_quoted() -> None:
    answer = explained(waiting(job()), device_facts(known=False))
    assert answer.cause == "device-claim"
    assert "cannot be allocated" in english(answer)


PREPARE = "Failed to prepare dynamic resources: prepare dynamic resources: "
STARTING = pod_fact(pod_json("job", "job-gpu"))
CREATING = msgspec.structs.replace(STARTING, phase="Pending", statuses=(), started_at=NOW - 60, created_at=NOW - 60)
PREPARATIONS = [
    (
        f"{PREPARE}NodePrepareResources failed for ResourceClaim job-gpu: error preparing devices: GPU is lost",
        ("DRA driver gpu.nvidia.com on n1 cannot prepare gpu-1, which ResourceClaim job-gpu holds", "GPU is lost"),
    ),
    (
        f"{PREPARE}NodePrepareResources: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
        ("DRA driver gpu.nvidia.com on n1 cannot prepare gpu-1", "DeadlineExceeded"),
    ),
    (
        f"{PREPARE}DRA driver gpu.nvidia.com is not registered",
        ("DRA driver gpu.nvidia.com is not registered with the kubelet of n1",),
    ),
]


@pytest.mark.parametrize(("message", "texts"), PREPARATIONS)
def test_a_failed_preparation_names_the_driver_and_its_error(message: str, texts: tuple[str, ...]) -> None:
    devices = device_facts([claim_json("job-gpu", "gpu-1", pods=["job"])], SLICES)
    answer = explained(CREATING, devices, event("FailedPrepareDynamicResources", message))
    assert (answer.status.value, answer.cause) == ("creating", "start-dra-prepare")
    said = english(answer)
    assert [text for text in texts if text not in said] == [], said
    assert "normal" not in said
    assert "DRA 驱动" in "\n".join(render_explanation(answer, "zh"))


def test_a_condition_of_the_device_tells_that_it_is_not_ready() -> None:
    claim = claim_json("job-gpu", "gpu-1", pods=["job"])
    condition = {
        "type": "Ready", "status": "False", "reason": "Lost", "message": "the GPU has fallen off the bus",
        "lastTransitionTime": "2025-11-16T02:20:00Z",
    }  # fmt: skip
    claim["status"]["devices"] = [
        {"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-1", "conditions": [condition]}
    ]
    answer = explained(CREATING, device_facts([claim], SLICES))
    assert answer.cause == "start-dra-prepare"
    assert "fallen off the bus" in english(answer)


def test_classes_with_unknown_drivers_are_not_judged() -> None:
    devices = device_facts([claim_json("job-gpu")], SLICES, [class_json(expression="device.allowMultipleAllocations")])
    assert "cannot be allocated" in english(explained(waiting(job()), devices))


PLUGIN = msgspec.structs.replace(
    waiting(job(), "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."), requests={GPU: 1.0}, device_claims=()
)


@pytest.mark.parametrize(
    ("extended", "finds_room"), [(None, False), ("nvidia.com/gpu", True)], ids=["only claims", "extended resource"]
)
def test_gpus_that_only_claims_reach_are_no_room_for_other_pods(extended: str | None, finds_room: bool) -> None:
    devices = device_facts([], SLICES, [class_json(extended=extended)])
    index = DeviceIndex(GPU, devices)
    facts = make_cluster_facts(pods=[PLUGIN], nodes=[index.node(node, None) for node in NODES], devices=devices)
    assert [fit.fits for fit in fit_all(PLUGIN, facts)] == [finds_room, finds_room]


def test_gpus_of_a_device_plugin_are_no_room_for_a_claim() -> None:
    devices = device_facts([claim_json("job-gpu")], SLICES[:1])
    index = DeviceIndex(GPU, devices)
    with_plugin = msgspec.structs.replace(NODES[1], capacity={GPU: 8.0}, allocatable={GPU: 8.0, "pods": 110.0})
    pod = index.pod(pod_fact(job()))
    nodes = [index.node(node, None) for node in (NODES[0], with_plugin)]
    facts = make_cluster_facts(pods=[pod], nodes=nodes, devices=devices)
    assert [fit.fits for fit in fit_all(pod, facts)] == [True, False]
