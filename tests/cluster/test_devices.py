"""Dynamic Resource Allocation in the view: holders, requests, capacity and free GPUs, beside the device plugin."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ClusterContext, ViewChanges, ViewInputs
from monitor.facts import PodDeviceFact
from monitor.facts.cluster import ClusterView, GpuState, Identity
from monitor.facts.devices import NO_DEVICES, DeviceFacts
from monitor.facts.kube import PodFact
from tests.cluster.builders import GPU, NOW, agent, card, node, process
from tests.support.resource_claims import (
    claim_json,
    class_json,
    device_facts,
    gpu_json,
    mig_json,
    pod_fact,
    pod_json,
    request_json,
    slice_json,
)

SLICE = slice_json(*(gpu_json(index) for index in range(4)))
CARDS = tuple(card(index) for index in range(4))
TRAIN = pod_fact(pod_json("train", "train-gpu"))
NO_PLUGIN = node(capacity={"cpu": 64.0}, allocatable={"cpu": 64.0})


def nobody(_pod: PodFact) -> Identity:
    return Identity()


def around(devices: DeviceFacts) -> ClusterContext:
    return ClusterContext(pods_known=True, devices=devices)


def inputs(devices: DeviceFacts, *pods: PodFact, **fields: Any) -> ViewInputs:
    given: dict[str, Any] = {"agents": (agent(*CARDS),), "nodes": (NO_PLUGIN,), "pods": pods}
    return ViewInputs(around=around(devices), **(given | fields))


def view(devices: DeviceFacts, *pods: PodFact, **fields: Any) -> ClusterView:
    return ViewBuilder(identify=nobody).build(inputs(devices, *pods, **fields), NOW).view()


def held(seen: ClusterView) -> dict[int, list[str | None]]:
    return {gpu.index: [holder.pod for holder in gpu.holders] for gpu in seen.gpus if gpu.holders}


def test_a_claimed_gpu_has_its_pod_as_holder_and_is_not_free() -> None:
    claim = claim_json("train-gpu", "gpu-1", "gpu-2", pods=["train"])
    seen = view(device_facts([claim], [SLICE]), TRAIN)
    assert held(seen) == {1: ["train"], 2: ["train"]}
    assert [gpu.state for gpu in seen.gpus] == [GpuState.FREE, GpuState.BUSY, GpuState.BUSY, GpuState.FREE]
    assert seen.gpus[1].holders[0].by == ("resource-claim",)
    assert [pod.requested_gpus for pod in seen.pods] == [2.0]
    (n1,) = seen.nodes
    assert (n1.capacity, n1.allocatable, n1.requested, n1.free, n1.cards) == (4, 4, 2, 2, 4)
    assert n1.disagreements == ()
    assert seen.free[0].free == 2


def test_the_kubelet_tells_the_holder_where_claims_cannot_be_read() -> None:
    told = PodDeviceFact(
        resource="gpu.nvidia.com", device_id="gpu-3", pool="n1", claim="train-gpu", source="pod-resources",
        pod_name="train", namespace="team", container="train",
    )  # fmt: skip
    seen = view(device_facts([], [SLICE]), TRAIN, agents=(agent(*CARDS, devices=(told,)),))
    assert held(seen) == {3: ["train"]}
    assert seen.gpus[3].holders[0].by == ("pod-resources",)


def test_a_claim_adds_to_what_the_device_plugin_gives() -> None:
    """Two GPUs of the node are the device plugin's, two the DRA driver's."""
    mixed = msgspec.structs.replace(TRAIN, requests={GPU: 1.0})
    claim = claim_json("train-gpu", "gpu-3", pods=["train"])
    seen = view(device_facts([claim], [slice_json(gpu_json(2), gpu_json(3))]), mixed, nodes=(node(gpus=2),))
    assert [pod.requested_gpus for pod in seen.pods] == [2.0]
    assert (seen.nodes[0].capacity, seen.nodes[0].requested) == (4, 2)


CAPACITIES = [
    ("only DRA", {}, {}, 4, 4, 4),
    ("both offer the same GPUs", {GPU: 4.0}, {GPU: 4.0}, 4, 4, 4),
    ("the device plugin was removed, the kubelet remembers it", {GPU: 4.0}, {GPU: 0.0}, 4, 4, 4),
    ("each offers GPUs of its own", {GPU: 2.0}, {GPU: 2.0}, 2, 4, 4),
    ("a driver that offers too few", {}, {}, 3, 3, 3),
]


@pytest.mark.parametrize(("name", "capacity", "allocatable", "offered", "total", "free"), CAPACITIES)
def test_no_gpu_counts_twice(
    name: str, capacity: dict[str, float], allocatable: dict[str, float], offered: int, total: int, free: int
) -> None:
    slices = [slice_json(*(gpu_json(index) for index in range(offered)))]
    seen = view(device_facts([], slices), nodes=(node(capacity=capacity, allocatable=allocatable),))
    (n1,) = seen.nodes
    assert (n1.capacity, n1.allocatable, n1.free) == (total, total, free), name
    assert n1.disagreements == ()


def test_without_an_agent_gpus_that_both_offer_count_once() -> None:
    seen = view(device_facts([], [SLICE]), nodes=(node(gpus=4),), agents=())
    assert (seen.nodes[0].capacity, len(seen.gpus)) == (4, 4)


def test_a_tainted_device_is_not_allocatable() -> None:
    broken = gpu_json(
        3, taints=[{"key": "gpu.nvidia.com/xid", "effect": "NoExecute", "timeAdded": "2025-11-16T02:00:00Z"}]
    )
    seen = view(device_facts([], [slice_json(gpu_json(0), gpu_json(1), gpu_json(2), broken)]))
    assert (seen.nodes[0].capacity, seen.nodes[0].allocatable, seen.nodes[0].free) == (4, 3, 3)


def test_pods_that_share_a_claim_have_a_part_each() -> None:
    pods = [pod_fact(pod_json(name, "shared", template=None)) for name in ("one", "two")]
    claim = claim_json("shared", "gpu-0", pods=["one", "two"])
    seen = view(device_facts([claim], [SLICE]), *pods)
    assert held(seen) == {0: ["one", "two"]}
    assert [pod.requested_gpus for pod in seen.pods] == [0.5, 0.5]
    assert (seen.nodes[0].requested, seen.nodes[0].free, seen.nodes[0].disagreements) == (1, 3, ())


def test_a_pod_that_waits_asks_for_the_gpus_of_its_claim() -> None:
    waits = pod_fact(pod_json("train", "train-gpu", node=None))
    claims = {
        "of a class": claim_json("train-gpu", requests=[request_json(2)]),
        "of a class that another name has": claim_json("train-gpu", requests=[request_json(2, "big-cards")]),
        "none of MIG": claim_json("train-gpu", requests=[request_json(2, "mig.nvidia.com")]),
        "none of another device": claim_json("train-gpu", requests=[request_json(2, "dranet.networking.k8s.io")]),
        "none for monitoring": claim_json("train-gpu", requests=[request_json(2, adminAccess=True)]),
    }
    mig = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"
    classes = [class_json(), class_json("big-cards"), class_json("mig.nvidia.com", mig)]
    asked = {
        name: view(device_facts([claim], [SLICE], classes), waits).pods[0].requested_gpus
        for name, claim in claims.items()
    }
    assert list(asked.values()) == [2.0, 2.0, 0.0, 0.0, 0.0]


def test_a_mig_device_holds_its_gpu() -> None:
    claim = claim_json("train-gpu", "gpu-1-mig-19-0-1", pods=["train"])
    seen = view(device_facts([claim], [slice_json(gpu_json(0), gpu_json(1), mig_json(0, 1))]), TRAIN)
    assert held(seen) == {1: ["train"]}
    assert seen.nodes[0].capacity == 2  # the MIG device is part of a GPU that counts


def test_access_for_monitoring_holds_nothing() -> None:
    claim = claim_json("train-gpu", "gpu-0", pods=["train"], admin=True)
    seen = view(device_facts([claim], [SLICE]), TRAIN)
    assert (held(seen), seen.nodes[0].free, seen.pods[0].requested_gpus) == ({}, 4, 0.0)


def test_an_old_generation_of_a_pool_does_not_count() -> None:
    old = slice_json(*(gpu_json(index) for index in range(4)), generation=1)
    seen = view(device_facts([], [old, slice_json(gpu_json(0), gpu_json(1), generation=2)]))
    assert seen.nodes[0].capacity == 2


def test_devices_other_than_gpus_do_not_count() -> None:
    channels = slice_json(
        {"name": "channel-0", "attributes": {"type": {"string": "channel"}}}, driver="compute-domain.nvidia.com"
    )
    claim = claim_json("train-gpu", "channel-0", pods=["train"], driver="compute-domain.nvidia.com")
    seen = view(device_facts([claim], [channels]), TRAIN)
    assert (seen.nodes[0].capacity, seen.pods[0].requested_gpus, held(seen)) == (0, 0.0, {})


def test_a_process_that_outlives_its_claim_is_a_zombie_and_a_foreign_one_an_orphan() -> None:
    ended = msgspec.structs.replace(TRAIN, phase="Succeeded")
    processes = (process(1, 0, pod_uid=TRAIN.uid), process(2, 1))
    report = agent(*CARDS[:3], card(3, memory_used_bytes=40 << 30), processes=processes)
    claim = claim_json("other", "gpu-3", pods=["nobody"])
    seen = view(device_facts([claim], [SLICE]), ended, agents=(report,))
    assert [gpu.state for gpu in seen.gpus] == [GpuState.ZOMBIE, GpuState.ORPHAN, GpuState.FREE, GpuState.GHOST]


def test_a_claim_keeps_its_gpu_from_others_after_its_pod_is_gone() -> None:
    """Pods and claims come from different watches: at first the pod may only not be known yet."""
    builder = ViewBuilder(identify=nobody)
    for devices, age, state in (
        (device_facts([claim_json("train-gpu", "gpu-1", pods=["train"])], [SLICE]), 0, GpuState.BUSY),
        (None, 5, GpuState.BUSY),
        (None, 600, GpuState.PHANTOM),
        (device_facts([], [SLICE]), 601, GpuState.FREE),
    ):
        report = agent(*CARDS, received_at=NOW + age)
        changes = ViewChanges(agents=(report,), around=around(devices) if devices is not None else None)
        if age == 0 and devices is not None:
            builder.build(inputs(devices, agents=(report,)), NOW)
        seen = builder.update(changes, NOW + age).view()
        assert (seen.gpus[1].state, seen.nodes[0].free) == (state, 4 if state is GpuState.FREE else 3), age
    assert seen.gpus[1].holders == ()


def test_a_pod_of_a_claim_that_appears_late_holds_its_gpu() -> None:
    devices = device_facts([claim_json("train-gpu", "gpu-1", pods=["train"])], [SLICE])
    builder = ViewBuilder(identify=nobody).build(inputs(devices), NOW)
    later = agent(*CARDS, received_at=NOW + 600)
    seen = builder.update(ViewChanges(agents=(later,), pods={TRAIN.uid: TRAIN}), NOW + 600).view()
    assert (seen.gpus[1].state, held(seen)) == (GpuState.BUSY, {1: ["train"]})
    seen = builder.update(ViewChanges(pods={TRAIN.uid: None}), NOW + 601).view()
    assert seen.gpus[1].state is GpuState.BUSY, "the claim may be released in a moment"


def test_changes_of_claims_and_slices_reach_the_view() -> None:
    """The view after an update equals the one that is built from the same facts."""
    waits = pod_fact(pod_json("train", "train-gpu"))
    steps = [
        NO_DEVICES,
        device_facts([], [SLICE]),
        device_facts([claim_json("train-gpu")], [SLICE]),
        device_facts([claim_json("train-gpu", "gpu-1", pods=["train"])], [SLICE]),
        device_facts([claim_json("train-gpu", "gpu-1", pods=["train"])], [slice_json(gpu_json(0), gpu_json(1))]),
        device_facts([], [SLICE]),
        NO_DEVICES,
    ]
    builder = ViewBuilder(identify=nobody).build(inputs(NO_DEVICES, waits), NOW)
    for devices in steps:
        builder.update(ViewChanges(around=around(devices)), NOW)
        assert builder.view() == view(devices, waits)
    assert view(steps[3], waits) != view(steps[2], waits)


def test_a_claim_that_appears_marks_pod_and_node_as_changed() -> None:
    builder = ViewBuilder(identify=nobody).build(inputs(device_facts([], [SLICE]), TRAIN), NOW)
    builder.take_changes()
    devices = device_facts([claim_json("train-gpu", "gpu-1", pods=["train"])], [SLICE])
    changes, nodes, pods = builder.update(ViewChanges(around=around(devices)), NOW).take_changes()
    assert (set(changes.nodes), set(changes.pods)) == ({"n1"}, {TRAIN.uid})
    known_node, known_pod = nodes["n1"], pods[TRAIN.uid]
    assert known_node is not None
    assert known_node.fact is not None
    assert known_node.fact.allocatable[GPU] == 4.0
    assert known_pod is not None
    assert known_pod.fact.requests == {GPU: 1.0}
