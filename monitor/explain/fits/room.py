"""Free room of nodes for the pods of a job, as the scheduler counts it, and nodes whose room is not clear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from monitor.explain.fit import NodeFit, fit_all, pods_with_room
from monitor.explain.fits.layout import NodeRoom
from monitor.explain.fits.model import FitsRequest, Workers
from monitor.explain.fits.pods import model_of, split_workers, worker_pod
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.devices import WHOLE_GPU_TYPES, DeviceClassFact
from monitor.facts.gpu_drivers import is_gpu_driver
from monitor.facts.gpu_sharing import registered_gpus
from monitor.facts.kube import Amounts, NodeFact, PodFact

ENDLESS_OWNERS = ("DaemonSet", "Node")  # their pods are part of the node


@dataclass(frozen=True)
class Rooms:
    """Room of the nodes that a pod may use. `unclear` are nodes that might have room; `fits` is of all nodes."""

    rooms: tuple[NodeRoom, ...]
    unclear: tuple[str, ...]
    fits: Sequence[NodeFit]
    pod: PodFact


def rooms_for(request: FitsRequest, workers: Workers, facts: ClusterFacts) -> Rooms:
    """Room for pods like `workers`, and for smaller ones."""
    claims = only_claims(facts) and request.resource in (None, facts.resource)
    pod = worker_pod(request, workers, facts, claims=claims)
    one = worker_pod(request, split_workers(request, 1, 1), facts, claims=claims)
    rooms, unclear = list[NodeRoom](), list[str]()
    fits = fit_all(pod, facts)
    resource = request.resource or facts.resource
    for fit in fits:
        if not fit.usable:
            continue
        if _is_unclear(fit.node, facts, resource):
            unclear.append(fit.node.name)
        else:
            rooms.append(_room(fit.node, pod, one, facts, resource))
    return Rooms(tuple(rooms), tuple(unclear), fits, pod)


def _room(node: NodeFact, pod: PodFact, one: PodFact, facts: ClusterFacts, resource: str) -> NodeRoom:
    slots = max(0, round(facts.free(node, "pods"))) if "pods" in node.allocatable else None
    pods = pods_with_room(pod, node, facts)
    return NodeRoom(
        node.name,
        pods if slots is None else min(pods, slots),
        pods_with_room(one, node, facts),
        slots,
        model_of(node, facts),
        facts.free_gpus(node, resource) >= round(facts.free(node, resource)),
    )


def _is_unclear(node: NodeFact, facts: ClusterFacts, resource: str) -> bool:
    """Whether the totals of a node do not tell what fits: its GPUs are assigned card by card, or in two ways."""
    if resource != facts.resource:
        return False
    if registered_gpus(node):
        return True
    if not node.claimable_gpus:
        return False
    if node.plugin_gpus != 0 or facts.devices.serves(resource):
        return True
    slices = (each for each in facts.devices.slices if node.name == each.node and is_gpu_driver(each.driver))
    return any(device.type not in WHOLE_GPU_TYPES for each in slices for device in each.devices)


def only_claims(facts: ClusterFacts) -> bool:
    """Whether GPUs are available only through ResourceClaims."""
    claimable = [node for node in facts.nodes if node.claimable_gpus]
    plugin = (node for node in facts.nodes if node.allocatable.get(facts.resource) and node.plugin_gpus != 0)
    return bool(claimable) and not any(plugin)


def claim_class(facts: ClusterFacts) -> DeviceClassFact | None:
    """The DeviceClass of whole GPUs that a claim can name."""
    return next((each for each in facts.devices.classes if _is_whole(each)), None)


def _is_whole(each: DeviceClassFact) -> bool:
    return any(is_gpu_driver(driver) for driver in each.drivers) and (not each.types or "gpu" in each.types)


def with_nominated(facts: ClusterFacts) -> ClusterFacts:
    """The facts with room that pods wait for as reserved: others were preempted for them."""
    if not facts.nominated:
        return facts
    used = dict(facts.used)
    for node, pods in facts.nominated.items():
        used[node] = _plus(used.get(node, {}), pods)
    return replace(facts, used=used)


def emptied(facts: ClusterFacts) -> ClusterFacts:
    """The facts as if every pod had finished, except those that belong to the nodes."""
    bound = {node: tuple(pod for pod in pods if stays(pod)) for node, pods in facts.bound.items()}
    used = {node: _plus({}, pods) for node, pods in bound.items()}
    return replace(facts, bound=bound, used=used, nominated={}, view_of_node={}, gpus_by_node={}, pending_by_uid={})


def stays(pod: PodFact) -> bool:
    """Whether a pod belongs to its node and does not end: of a DaemonSet, or static."""
    return pod.owner is not None and pod.owner.kind in ENDLESS_OWNERS


def _plus(used: Amounts, pods: Iterable[PodFact]) -> Amounts:
    total = dict(used)
    for pod in pods:
        total["pods"] = total.get("pods", 0.0) + 1.0
        for name, amount in pod.requests.items():
            total[name] = total.get(name, 0.0) + amount
    return total
