"""Shared GPUs in the view: their holders with the share of each, and what the nodes offer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ViewChanges, ViewInputs
from monitor.facts.cluster import ClusterView, GpuState
from monitor.facts.gpu import MigFact
from monitor.facts.kube import NodeFact, PodFact
from monitor.present.cluster import tables
from monitor.present.shares import holder_share
from tests.cluster.builders import GIB, GPU, NOW, agent, card, device, node, pod, uuid
from tests.cluster.test_view import KNOWN, build, by_label

MIB = 1024**2
REGISTER = {"hami.io/node-nvidia-register": f"{uuid(0)},10,24576,100,A10,0,true:{uuid(1)},10,24576,100,A10,0,true:"}
HELD = "hami.io/vgpu-devices-allocated"


def hami(name: str, index: int, mib: int, cores: int, **fields: Any) -> PodFact:
    text = f"{uuid(index)},NVIDIA,{mib},{cores}:;"
    return pod(name, annotations={HELD: text, "hami.io/bind-phase": "success"}, **fields)


def hami_view(*pods: PodFact, **fields: Any) -> ClusterView:
    report = agent(card(0), card(1), **fields)
    return build(ViewInputs(agents=(report,), nodes=(node(gpus=20, annotations=REGISTER),), pods=pods, around=KNOWN))


def test_a_gpu_shared_by_hami_shows_its_holders_and_their_shares() -> None:
    a, b = hami("a", 0, 3000, 30), hami("b", 0, 8000, 0)
    view = hami_view(a, b, devices=(device(a, 1), device(b, 1)))  # the kubelet's choice of devices means nothing
    shared, other = view.gpus
    assert [(h.pod, h.slots, h.share_memory_bytes, h.share_cores_ratio, h.by) for h in shared.holders] == [
        ("a", 1, 3000 * MIB, 0.3, ("annotation",)), ("b", 1, 8000 * MIB, None, ("annotation",))
    ]  # fmt: skip
    assert (shared.state, other.state, other.holders) == (GpuState.BUSY, GpuState.FREE, ())
    assert [holder_share(holder, "en") for holder in shared.holders] == ["3000 MiB, 30% of the cores", "8000 MiB"]
    assert [holder_share(holder, "zh") for holder in shared.holders] == ["3000 MiB 显存，30% 算力", "8000 MiB 显存"]


def test_a_node_of_hami_offers_slots_and_memory_and_counts_cards() -> None:
    view = hami_view(hami("a", 0, 3000, 30), hami("b", 1, 0, 0))
    (seen,) = view.nodes
    assert (seen.capacity, seen.cards, seen.free) == (None, 2, 0)
    assert [(each.resource, each.unit, each.total, each.used) for each in seen.shares] == [
        (GPU, "slot", 20.0, 2.0),
        ("nvidia.com/gpumem", "mib", 2 * 24576.0, 3000.0 + 24576.0),  # the second pod has all memory of its GPU
    ]
    assert {each.name: (each.requested_gpus, each.gpu_shares) for each in view.pods} == {
        "a": (0.0, {f"{GPU}.shared": 1.0}), "b": (0.0, {f"{GPU}.shared": 1.0})
    }  # fmt: skip


def test_status_lists_shared_gpus_with_all_holders() -> None:
    view = hami_view(hami("a", 0, 3000, 30, labels={"userName": "li"}), hami("b", 0, 8000, 0))
    shown = {table.title: table.rows for table in tables(view)}
    ((gpu, count, holders),) = shown["Shared GPUs"]
    assert (gpu, count) == ("n1/0", "2")
    assert holders == "li (team/a, 3000 MiB, 30% of the cores), ? (team/b, 8000 MiB)"
    assert ("n1", GPU, "2 of 20 shared GPUs used") in shown["Shares of GPUs and other accelerators"]


@pytest.mark.parametrize(
    ("name", "annotations", "memory", "cores"),
    [
        ("Volcano", {"volcano.sh/vgpu-ids-new": f"{uuid(1)},NVIDIA,8000,50:"}, 8000 * MIB, 0.5),
        ("Aliyun", {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "10"}, 10 * GIB, None),
        ("Aliyun, newer", {"scheduler.framework.gpushare.allocation": '{"0":{"1":4}}'}, 4 * GIB, None),
    ],
)
def test_other_schedulers_assign_shares_too(
    name: str, annotations: dict[str, str], memory: int, cores: float | None
) -> None:
    shared = pod("a", gpus=0, annotations=annotations)
    view = build(ViewInputs(agents=(agent(card(0), card(1)),), nodes=(node(),), pods=(shared,), around=KNOWN))
    (holder,) = view.gpus[1].holders
    assert (holder.pod, holder.share_memory_bytes, holder.share_cores_ratio) == ("a", memory, cores), name
    assert view.gpus[0].holders == ()


def test_time_slices_are_counted_per_holder() -> None:
    a, b = pod("a", gpus=2), pod("b")
    slices = (device(a, replica=0), device(a, replica=1), device(b, replica=2))
    sliced = node(gpus=4, labels={"nvidia.com/gpu.replicas": "4"})
    view = build(ViewInputs(agents=(agent(card(), devices=slices),), nodes=(sliced,), pods=(a, b), around=KNOWN))
    assert [(holder.pod, holder.slots) for holder in view.gpus[0].holders] == [("a", 2), ("b", 1)]
    assert holder_share(view.gpus[0].holders[0], "en") == "2 shared GPUs"


def test_time_slices_are_recognised_without_labels() -> None:
    a = pod("a")
    report = agent(card(), devices=(device(a, replica=0),))
    view = build(ViewInputs(agents=(report,), nodes=(node(gpus=4),), pods=(a,), around=KNOWN))
    assert (view.nodes[0].capacity, view.pods[0].requested_gpus) == (None, 0.0)


def test_without_an_agent_a_node_has_as_many_gpus_as_were_registered() -> None:
    view = build(ViewInputs(nodes=(node(gpus=20, annotations=REGISTER),), around=KNOWN))
    assert [gpu.state for gpu in view.gpus] == [GpuState.UNKNOWN] * 2


def test_a_node_that_starts_to_share_changes_its_pods_and_those_that_wait() -> None:
    pods = pod("a"), pod("waits", node=None)
    builder = ViewBuilder(identify=by_label)
    builder.build(ViewInputs(agents=(agent(card()),), nodes=(node(gpus=1),), pods=pods, around=KNOWN), NOW)
    assert [each.requested_gpus for each in builder.view().pods] == [1.0, 1.0]
    builder.take_changes()
    sliced = node(gpus=4, labels={"nvidia.com/gpu.replicas": "4"})
    builder.update(ViewChanges(nodes={"n1": sliced}), NOW + 1)
    assert [(each.requested_gpus, each.gpu_shares) for each in builder.view().pods] == [
        (0.0, {f"{GPU}.shared": 1.0})
    ] * 2
    assert builder.take_changes()[2].keys() == {"uid-a", "uid-waits"}
    builder.update(ViewChanges(nodes={"n1": None}), NOW + 2)
    assert [each.requested_gpus for each in builder.view().pods] == [1.0, 1.0]


GROUP = "n1-gpu-group"


def kai(name: str, group: dict[str, str], amounts: dict[str, float], **fields: Any) -> PodFact:
    shares = pod(name, scheduler="kai-scheduler", labels={"userName": "li"} | group, **fields)
    return msgspec.structs.replace(shares, requests=amounts)


def reservation(namespace: str = "kai-resource-reservation", group: str = GROUP) -> PodFact:
    return pod("gpu-reservation-n1-x", namespace=namespace, labels={"runai-gpu-group": group})


def kai_holders(holder: PodFact, *pods: PodFact, **fields: Any) -> list[tuple[str | None, int | None, str | None]]:
    report = agent(card(0), devices=(device(holder),), **fields)
    view = build(ViewInputs(agents=(report,), nodes=(node(),), pods=(holder, *pods), around=KNOWN))
    return [(each.pod, each.share_memory_bytes, each.user) for each in view.gpus[0].holders]


HALF = {"kai.scheduler/gpu-fraction": 50.0}
ONE = {"runai-gpu-group": GROUP}
SEVERAL = {f"runai-gpu-group/{GROUP}": GROUP, "runai-gpu-group/other": "other"}


def test_the_pods_for_which_kai_reserves_a_gpu_hold_it() -> None:
    a, b = kai("a", ONE, HALF), kai("b", ONE, {"kai.scheduler/gpu-memory": 2048.0})
    both = [("a", 40 * GIB, "li"), ("b", 2 * GIB, "li")]
    for namespace in ("kai-resource-reservation", "runai-reservation"):
        assert kai_holders(reservation(namespace), a, b) == both
    assert kai_holders(reservation(), kai("c", SEVERAL, HALF)) == [("c", 20 * GIB, "li")], "half of one is on each"


@pytest.mark.parametrize(
    ("name", "holder", "other"),
    [
        ("nobody shares it", reservation(), None),
        ("another group", reservation(), kai("a", {"runai-gpu-group": "other"}, HALF)),
        ("it asks for no part of a GPU", reservation(), kai("a", ONE, {"cpu": 1.0})),
        ("it is on another node", reservation(), kai("a", ONE, HALF, node="n2")),
        ("it has ended", reservation(), kai("a", ONE, HALF, phase="Succeeded")),
        ("a tenant's pod that says it is a reservation", reservation("team"), kai("a", ONE, HALF)),
    ],
)
def test_a_reservation_for_no_pod_holds_the_gpu_itself(name: str, holder: PodFact, other: PodFact | None) -> None:
    pods = (other,) if other is not None else ()
    assert [pod for pod, _, _ in kai_holders(holder, *pods)] == ["gpu-reservation-n1-x"], name


def test_a_change_of_nodes_counts_pending_pods_again() -> None:
    """The view after an update equals the one that is built from the same facts."""
    free, bound = (pod(name, node=on, labels={"queue": "q"}) for name, on in (("free", None), ("bound", "n2")))
    picks = msgspec.structs.replace(pod("picks", node=None, labels={"queue": "q"}), node_selector={"zone": "a"})
    sliced = {"nvidia.com/gpu.replicas": "4"}
    steps: list[tuple[NodeFact, dict[str, str | None]]] = [
        (node("n2", gpus=8, labels=sliced), {"free": "nvidia.com/gpu.whole-or-shared", "picks": None}),
        (node("n2", gpus=8, labels=sliced | {"zone": "a"}), {"picks": "nvidia.com/gpu.shared"}),
        (node("n1", gpus=8, labels=sliced), {"free": "nvidia.com/gpu.shared", "picks": "nvidia.com/gpu.shared"}),
        (node("n2", gpus=8), {"free": "nvidia.com/gpu.whole-or-shared", "bound": None}),
        (node("n1", gpus=8), {"free": None, "picks": None, "bound": None}),
    ]
    nodes = {"n1": node("n1", labels={"zone": "a"}), "n2": node("n2")}
    builder = ViewBuilder(by_label).build(
        ViewInputs(nodes=tuple(nodes.values()), pods=(free, bound, picks), around=KNOWN), NOW
    )
    for changed, expect in steps:
        nodes[changed.name] = changed
        if changed.name == "n2" and changed.labels.get("zone"):
            nodes["n1"] = node("n1")
        seen = builder.update(ViewChanges(nodes=dict(nodes)), NOW).view()
        anew = build(ViewInputs(nodes=tuple(nodes.values()), pods=(free, bound, picks), around=KNOWN))
        assert seen == anew
        units = {each.name: next(iter(each.gpu_shares), None) for each in seen.pods}
        assert expect.items() <= units.items(), changed


RATIOS: list[tuple[str, list[dict[str, Any]], float | None]] = [
    ("a whole GPU", [{}], 1.0),
    ("a slice that its resource names", [{"resource": "nvidia.com/mig-1g.10gb", "gpu_uuid": "MIG-1"}], 1 / 7),
    ("slices of a profile that the driver names", [{"gpu_uuid": "MIG-1"}, {"gpu_uuid": "MIG-2"}], 4 / 7),
    ("a slice of unknown profile", [{"gpu_uuid": "MIG-3"}], None),
    ("a replica of a time-sliced GPU", [{"replica": 1}], None),
    ("a replica of a slice", [{"gpu_uuid": "MIG-1", "replica": 1}], None),
]


@pytest.mark.parametrize(("name", "devices", "expect"), RATIOS, ids=[row[0] for row in RATIOS])
def test_which_part_of_a_gpu_a_pod_holds(name: str, devices: list[dict[str, Any]], expect: float | None) -> None:
    live = pod("a", gpus=0)
    profiles = {"MIG-1": "1g.10gb", "MIG-2": "3g.40gb", "MIG-3": None}
    slices = tuple(
        MigFact(uuid=uuid, gpu_instance=number, compute_instance=0, profile=profile)
        for number, (uuid, profile) in enumerate(profiles.items())
    )
    allocated = tuple(device(live, **fields) for fields in devices)
    report = agent(card(0, mig=slices), devices=allocated)
    view = build(ViewInputs(agents=(report,), nodes=(node(),), pods=(live,), around=KNOWN))
    assert [holder.device_ratio for holder in view.gpus[0].holders] == [pytest.approx(expect)]


def test_a_share_is_the_larger_part_of_memory_and_cores() -> None:
    total = card(0).memory_total_bytes
    assert total is not None
    half = total // MIB // 2
    view = hami_view(hami("a", 0, half, 30), hami("b", 0, 0, 25), hami("c", 0, 0, 0))
    assert [holder.device_ratio for holder in view.gpus[0].holders] == [pytest.approx(0.5, abs=0.01), 0.25, None]
