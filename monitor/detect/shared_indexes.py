"""Indexes of subjects that several nodes describe: network filesystems, images and jobs."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Set
from itertools import islice

from monitor.detect.labels import label_value
from monitor.detect.observation import Observation
from monitor.detect.subject_index import SubjectIndex, Subjects
from monitor.detect.subjects import ClusterDisk, ImageCopies, JobGpus, NodeSubject, nas_identity, shared_disk
from monitor.explain.fit import requested_gpus
from monitor.facts.changes import AGENT, GPU_STATES, PODS, Changes
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.storage import DiskFact, ImageFact

MAX_OBSERVERS = 20  # nodes remembered per unit: enough to tell whether any of them still reports


class SharedIndex(SubjectIndex):
    """Subjects that several nodes describe. `parts` are those parts of a node that contain them."""

    shared = True
    parts: frozenset[str]

    def __init__(self) -> None:
        self._units: dict[str, tuple[str, ...]] = {}  # by node
        self._nodes: defaultdict[str, dict[str, int]] = defaultdict(dict)  # by unit; of images with their size
        self._changed: set[str] = set()

    @abstractmethod
    def described(self, node: NodeSubject, seen: Observation) -> Iterable[str]:
        """Units that a node describes."""

    def update(self, changes: Changes, seen: Observation) -> None:
        self._changed = set()
        for name, parts in changes.nodes.items():
            if AGENT in parts or not self.parts.isdisjoint(parts):
                self._replace(seen.node(name), frozenset(self.described(seen.node(name), seen)))

    def _replace(self, node: NodeSubject, units: frozenset[str]) -> None:
        before = frozenset(self._units.pop(node.name, ()))
        if units:
            self._units[node.name] = tuple(units)
        for unit in before - units:
            self._nodes[unit].pop(node.name, None)
            if not self._nodes[unit]:
                del self._nodes[unit]
        for unit in units:
            self._nodes[unit][node.name] = 0
        self._changed |= before | units

    def nodes(self, unit: str) -> list[str]:
        """Nodes that describe a unit."""
        return sorted(self._nodes.get(unit, ()))

    def changed(self, changes: Changes, parts: Set[str]) -> Iterable[str]:
        units = set(self._changed)
        for name, changed in changes.nodes.items():
            if not parts.isdisjoint(changed):
                units.update(self._units.get(name, ()))
        return units

    def observers(self, unit: str) -> tuple[str, ...]:
        return tuple(sorted(islice(self._nodes.get(unit, ()), MAX_OBSERVERS)))


class MountIndex(SharedIndex):
    """Disks: the unit of a local one is its node, that of a NAS the filesystem, whichever nodes mount it."""

    parts = frozenset(("disk",))

    def described(self, node: NodeSubject, _seen: Observation) -> Iterable[str]:
        disks = node.current.snapshot.disk if node.current is not None else None
        for disk in disks or ():
            yield _nas_unit(disk) if "nas" in disk.roles else node.name

    def changed(self, changes: Changes, parts: Set[str]) -> Iterable[str]:
        # A node that no longer reports still has to be evaluated: its disks are held.
        silent = {name for name, changed in changes.nodes.items() if AGENT in changed or "disk" in changed}
        return {*super().changed(changes, parts), *silent}

    def subjects(self, unit: str, seen: Observation) -> Subjects:
        if unit.startswith(_NAS):
            return self._shared(unit, seen)
        report = seen.node(unit).current
        if report is None:
            return {}
        disks = [disk for disk in report.section("disk") or () if "nas" not in disk.roles]
        return {f"{disk.mount} {disk.device}": _local_disk(unit, disk, seen) for disk in disks}

    def _shared(self, unit: str, seen: Observation) -> Subjects:
        mounts = [
            (report, disk)
            for name in self.nodes(unit)
            if (report := seen.node(name).current) is not None
            for disk in report.section("disk") or ()
            if "nas" in disk.roles and _nas_unit(disk) == unit
        ]
        if not mounts:
            return {}
        disk = shared_disk(unit.removeprefix(_NAS), mounts)
        return {"": disk if disk.fact.used_bytes is not None else None}


_NAS = "nas "


def _nas_unit(disk: DiskFact) -> str:
    return _NAS + nas_identity(disk)


def _local_disk(node: str, disk: DiskFact, seen: Observation) -> ClusterDisk | None:
    """A disk of one node; None if it does not answer."""
    if disk.used_bytes is None:
        return None
    labels = {"node": label_value(node), "mount": label_value(disk.mount)}
    return ClusterDisk(f"{node} {disk.mount} {disk.device}", labels, disk, seen.node(node).report, (node,))


class ImageIndex(SharedIndex):
    """Images by ID, whichever nodes have them."""

    parts = frozenset(("images",))

    def described(self, node: NodeSubject, _seen: Observation) -> Iterable[str]:
        return (image.id for image in _images(node))

    def _replace(self, node: NodeSubject, units: frozenset[str]) -> None:
        super()._replace(node, units)
        for image in _images(node):
            sizes = self._nodes[image.id]
            sizes[node.name] = max(sizes[node.name], image.size_bytes or 0)

    def subjects(self, unit: str, seen: Observation) -> Subjects:
        sizes = self._nodes.get(unit)
        return {"": ImageCopies(unit, max(sizes.values()), sizes.keys(), seen.node)} if sizes else {}


def _images(node: NodeSubject) -> list[ImageFact]:
    caches = node.current.snapshot.images if node.current is not None else None
    return [image for cache in caches or () for image in cache.images]


class JobIndex(SharedIndex):
    """Jobs with GPUs. While a node does not report, its jobs are those whose pods request GPUs there."""

    parts = frozenset((GPU_STATES, PODS, "pod_devices"))

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, dict[str, list[int]]] = {}  # positions of GPUs by node and unit

    def described(self, node: NodeSubject, seen: Observation) -> Iterable[str]:
        facts, gpus = seen.facts, seen.facts.gpus_by_node.get(node.name, ())
        holders_known = node.current is not None and node.current.section("pod_devices") is not None
        if not holders_known or any(gpu.state is GpuState.UNKNOWN for gpu in gpus):
            self._held.pop(node.name, None)
            pods = [pod for pod in facts.bound.get(node.name, ()) if requested_gpus(pod, facts)]
            return {f"{pod.namespace}/{facts.identity(pod).job or pod.uid}" for pod in pods}
        held: dict[str, list[int]] = {}
        for position, gpu in enumerate(gpus):
            if (holder := _job_holder(gpu)) is not None:
                held.setdefault(_job_unit(holder), []).append(position)
        self._held[node.name] = held
        return held

    def subjects(self, unit: str, seen: Observation) -> Subjects:
        on_node = seen.facts.gpus_by_node
        gpus = [on_node[node][at] for node in self.nodes(unit) for at in self._held.get(node, {}).get(unit, ())]
        holder = _job_holder(gpus[0]) if gpus else None
        return {"": JobGpus(holder.namespace, holder.job, tuple(gpus))} if holder is not None else {}

    def observers(self, unit: str) -> tuple[str, ...]:
        return tuple(self.nodes(unit))


def _job_holder(gpu: GpuView) -> Holder | None:
    """The live holder whose job a GPU counts for: the last one if several share it."""
    return next((holder for holder in reversed(gpu.holders) if holder.live), None)


def _job_unit(holder: Holder) -> str:
    return f"{holder.namespace}/{holder.job or holder.pod_uid}"
