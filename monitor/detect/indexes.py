"""Which subjects there are and which have changed, by kind of subject.

Subjects that change together form a unit: the GPUs of a node, for example, are evaluated together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from monitor.detect.base import SubjectKind
from monitor.detect.image_registries import RegistryIndex
from monitor.detect.lib.api_server import api_server
from monitor.detect.observation import Observation
from monitor.detect.shared_indexes import ImageIndex, JobIndex, MountIndex
from monitor.detect.subject_index import WHOLE_CLUSTER, SubjectIndex, Subjects
from monitor.detect.subjects import GpuSubject
from monitor.facts.changes import AGENT, GPU_STATES, GPUS, Changes
from monitor.facts.kube import PodFact
from monitor.facts.services import ServiceFact

_PARTS_OF_GPUS = frozenset((GPUS, GPU_STATES, "gpu"))
_OF_FINISHED_PODS = frozenset(("log_tails",))  # what nodes report about containers that have ended


class NodeIndex(SubjectIndex):
    """Nodes, each a unit of its own."""

    def changed(self, changes: Changes, parts: Set[str]) -> Iterable[str]:
        return (node for node, changed in changes.nodes.items() if AGENT in changed or not parts.isdisjoint(changed))

    def subjects(self, unit: str, seen: Observation) -> Subjects:
        return {"": seen.node(unit)} if seen.is_known(unit) else {}


class GpuIndex(NodeIndex):
    """GPUs, by node. The rules of one evaluation share the subjects."""

    def __init__(self) -> None:
        self._subjects: dict[str, Subjects] = {}

    def update(self, _changes: Changes, _seen: Observation) -> None:
        self._subjects = {}

    def changed(self, changes: Changes, parts: Set[str]) -> Iterable[str]:
        return super().changed(changes, parts | {GPU_STATES})

    def subjects(self, unit: str, seen: Observation) -> Subjects:
        if unit not in self._subjects:
            self._subjects[unit] = self._describe(unit, seen)
        return self._subjects[unit]

    def _describe(self, unit: str, seen: Observation) -> Subjects:
        node, gpus = seen.node(unit), seen.facts.gpus_by_node.get(unit, ())
        inventory = node.current.snapshot.gpu if node.current is not None else None
        facts = {gpu.index: gpu for gpu in inventory.gpus} if inventory is not None else {}
        return {str(gpu.index): GpuSubject(gpu, node, facts.get(gpu.index)) for gpu in gpus}


class PodSubjectIndex(SubjectIndex):
    """Pods. A rule that reads parts of nodes evaluates the pods of each node on which one of them changes.

    Where only GPUs change, these are the pods that hold or held one. Finished pods are among them if the rule reads
    what nodes report about such pods.
    """

    def __init__(self) -> None:
        self._bound: Mapping[str, Iterable[PodFact]] = {}
        self._finished: Mapping[str, Iterable[PodFact]] = {}
        self._pods: Mapping[str, PodFact] = {}
        self._holders: dict[str, set[str]] = {}  # pods with GPUs, by node
        self._before: dict[str, set[str]] = {}  # the same before the last changes, of nodes that have changed

    def update(self, changes: Changes, seen: Observation) -> None:
        self._bound, self._finished = seen.facts.bound, seen.facts.finished
        self._pods = seen.facts.pod_by_uid
        self._before = {}
        for node in changes.nodes:
            holders = (holder for gpu in seen.facts.gpus_by_node.get(node, ()) for holder in gpu.holders)
            self._before[node] = self._holders.get(node, set())
            self._holders[node] = {holder.pod_uid for holder in holders if holder.pod_uid is not None}

    def changed(self, changes: Changes, parts: Set[str]) -> Iterable[str]:
        read = parts | {AGENT} if parts else parts  # without an answer of the agent, parts of a node are unknown
        units = set(changes.pods)
        for node, changed in changes.nodes.items():
            if read.isdisjoint(changed):
                continue
            if read & changed <= _PARTS_OF_GPUS:
                units |= self._holders.get(node, set()) | self._before.get(node, set())
            else:
                units.update(pod.uid for pod in self._bound.get(node, ()))
                if not read.isdisjoint(_OF_FINISHED_PODS):
                    units.update(pod.uid for pod in self._finished.get(node, ()))
        return units

    def subjects(self, unit: str, _seen: Observation) -> Subjects:
        pod = self._pods.get(unit)
        return {"": pod} if pod is not None else {}

    def observers(self, unit: str) -> tuple[str, ...]:
        pod = self._pods.get(unit)
        return (pod.node,) if pod is not None and pod.node is not None else ()


class ServiceIndex(SubjectIndex):
    """Probed services, and the API server of Kubernetes while it is down."""

    def __init__(self) -> None:
        self._services: dict[str, ServiceFact] = {}
        self._changed: Set[str] = frozenset()

    def update(self, changes: Changes, seen: Observation) -> None:
        before, api = self._services, api_server(seen.facts.sources, seen.context.now)
        self._services = {fact.name: fact for fact in (*seen.context.services, *([api] if api is not None else []))}
        names = before.keys() | self._services.keys()
        self._changed = {name for name in names if changes.complete or before.get(name) != self._services.get(name)}

    def changed(self, _changes: Changes, _parts: Set[str]) -> Iterable[str]:
        return self._changed

    def subjects(self, unit: str, _seen: Observation) -> Subjects:
        service = self._services.get(unit)
        return {"": service} if service is not None else {}

    def observers(self, _unit: str) -> tuple[str, ...]:
        return ()


class ClusterSubjectIndex(SubjectIndex):
    """The whole cluster as one subject. A rule that does not say what it uses is evaluated at every change."""

    def changed(self, changes: Changes, parts: Set[str]) -> Iterable[str]:
        any_part = any(not parts.isdisjoint(changed) for changed in changes.nodes.values())
        anything = bool(changes.nodes or changes.pods or changes.kinds) and not parts
        return (WHOLE_CLUSTER,) if anything or any_part or parts & changes.kinds else ()

    def subjects(self, _unit: str, seen: Observation) -> Subjects:
        return {"": seen.facts}

    def observers(self, _unit: str) -> tuple[str, ...]:
        return ()


def new_indexes() -> dict[SubjectKind, SubjectIndex]:
    """An index of each kind of subject."""
    return {
        SubjectKind.GPU: GpuIndex(),
        SubjectKind.NODE: NodeIndex(),
        SubjectKind.MOUNT: MountIndex(),
        SubjectKind.IMAGE: ImageIndex(),
        SubjectKind.POD: PodSubjectIndex(),
        SubjectKind.JOB: JobIndex(),
        SubjectKind.SERVICE: ServiceIndex(),
        SubjectKind.REGISTRY: RegistryIndex(),
        SubjectKind.CLUSTER: ClusterSubjectIndex(),
    }
