"""Puts together what the planners need to know, and has them plan. Reads; decides nothing and changes nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from monitor.cleanup.execute.disk_level import Reading
from monitor.cleanup.execute.references_reader import NeedsReader, Templates, Volumes
from monitor.cleanup.execute.scanner import Scanned
from monitor.cleanup.journal import Journal
from monitor.cleanup.model import Item, Plan
from monitor.cleanup.plan.datasets import Ground, plan_datasets
from monitor.cleanup.plan.gpu_context import Scene
from monitor.cleanup.plan.gpus import plan_gpu
from monitor.cleanup.plan.images import plan_images, runtime_disk
from monitor.cleanup.plan.pods import FRESH, Grounds, plan_pods
from monitor.cleanup.plan.references import Needs, needs_of
from monitor.cleanup.plan.select import Selection, Subject, make_plan, refuse
from monitor.cleanup.plan.watermarks import marks_on, needed_bytes
from monitor.cleanup.policy import (
    DatasetPolicy,
    GpuPolicy,
    ImagePolicy,
    PodPolicy,
    Policy,
    RegistryPolicy,
)
from monitor.cluster.live import LiveCluster
from monitor.detect.lib.storage import disk_containing, used_ratio
from monitor.facts.agents import AgentFact
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact

TEMPLATES_FOR = 60.0  # for how long plans go by the same templates: there is one for each node
REFUSED_FOR = 6 * 3600.0  # what was refused where it lives is left alone for so long


@dataclass(frozen=True)
class Sources:
    """Where facts come from. Without Kubernetes there is no `needs`."""

    cluster: LiveCluster
    journal: Journal
    needs: NeedsReader | None
    scanned: Callable[[str], Scanned | None]  # by policy: the last look at its root
    registry: Callable[[str], tuple[Item, ...] | None]  # by policy: what the last dry run of its Harbor would do


class Told(Mapping[str, AgentFact]):
    """Agents by node, each asked when it is looked up, and once."""

    def __init__(self, ask: Callable[[str], AgentFact | None], known: Iterable[str]) -> None:
        self._ask = ask
        self._nodes = frozenset(known)
        self._told: dict[str, AgentFact | None] = {}

    def __getitem__(self, node: str) -> AgentFact:
        if node not in self._told:
            self._told[node] = self._ask(node) if node in self._nodes else None
        fact = self._told[node]
        if fact is None:
            raise KeyError(node)
        return fact

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._nodes))

    def __len__(self) -> int:
        return len(self._nodes)


class Fresh(Mapping[str, NodeSnapshot]):
    """Of agents, what those that speak now say, by node."""

    def __init__(self, agents: Mapping[str, AgentFact], now: float) -> None:
        self._agents = agents
        self._now = now

    def __getitem__(self, node: str) -> NodeSnapshot:
        fact = self._agents[node]
        if fact.snapshot is None or fact.silent_since is not None or fact.received_at is None:
            raise KeyError(node)
        if self._now - fact.received_at > FRESH:
            raise KeyError(node)
        return fact.snapshot

    def __iter__(self) -> Iterator[str]:
        return (node for node in self._agents if node in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Gatherer:
    """Makes plans."""

    def __init__(self, sources: Sources, now: Callable[[], float] = time.time) -> None:
        self._from = sources
        self._now = now
        self._reading = threading.Lock()
        self._templates: tuple[float, Templates] = (float("-inf"), Templates())

    def plan(self, policy: Policy, node: str | None) -> Plan:
        """Given a policy, and the node for images, return what it would do now."""
        if isinstance(policy, ImagePolicy):
            return self._images(policy, node or "")
        if isinstance(policy, DatasetPolicy):
            return self._datasets(policy)
        if isinstance(policy, PodPolicy):
            return self._pods(policy)
        if isinstance(policy, GpuPolicy):
            return self._gpus(policy)
        if isinstance(policy, RegistryPolicy):
            return self._registry(policy)
        raise TypeError(f"no plan is made for {type(policy).__name__}")

    def nodes(self, policy: Policy) -> tuple[str | None, ...]:
        """Return the nodes that a policy runs on; None stands for the cluster as a whole."""
        if isinstance(policy, DatasetPolicy):
            return (policy.node,)
        if not isinstance(policy, ImagePolicy):
            return (None,)
        return tuple(node for node in sorted(self.agents()) if any(fnmatchcase(node, each) for each in policy.nodes))

    def agents(self) -> dict[str, AgentFact]:
        """Return what is known of the agents, by node."""
        return {fact.node: fact for fact in self._from.cluster.poller.facts() if fact.node is not None}

    @property
    def told(self) -> Told:
        """Return what agents say themselves, by node: what is planned is planned from that."""
        return Told(self._from.cluster.first_hand, self.agents())

    def snapshots(self) -> dict[str, NodeSnapshot]:
        """Return what the agents that speak now say, by node, as far as it is known without asking anybody."""
        return dict(Fresh(self.agents(), self._now()))

    def needs(self, node: str) -> Needs:
        """Return what the cluster needs on a node, read now: for whoever is about to remove something."""
        return self._from.needs.needs(node) if self._from.needs is not None else self._without_kubernetes(node)

    def _needs_to_plan(self, node: str) -> Needs:
        """Return the same as far as it is followed or was read lately: whatever is planned is checked again later."""
        if self._from.needs is None:
            return self._without_kubernetes(node)
        with self._reading:
            if time.monotonic() - self._templates[0] > TEMPLATES_FOR:
                self._templates = (time.monotonic(), self._from.needs.templates())
            templates = self._templates[1]
        unknown = templates.unknown if self._pods_known() else (*templates.unknown, "pods")
        return needs_of(node, self.pods(), templates.found, unknown)

    def _without_kubernetes(self, node: str) -> Needs:
        fact = self.told.get(node)
        containers = (fact.snapshot.containers if fact and fact.snapshot else None) or ()
        # A kubelet's node, and nobody to ask what its cluster needs.
        return Needs({}, ("kubernetes",)) if any(each.pod_uid for each in containers) else Needs({})

    def reading(self, policy: Policy, node: str | None) -> Reading | None:
        """Return how far the disk of a policy is from its low-water mark, as its agent last read it."""
        fact = self.told.get(node or "")
        if fact is None or fact.snapshot is None or fact.received_at is None:
            return None
        disk = disk_for(policy, fact.snapshot)
        needed = needed_bytes(disk, marks_on(policy.when, fact.snapshot, disk).low)
        if disk is None or needed is None:
            return None
        read = next((each.succeeded_at for each in fact.snapshot.collectors if each.name == "disk"), None)
        age = fact.snapshot.at - read if read is not None else 0.0
        return Reading(needed, used_ratio(disk), fact.received_at - max(0.0, age))

    def pods(self) -> tuple[PodFact, ...]:
        """Return all pods."""
        kube = self._from.cluster.kube
        return kube.pods.snapshot().items if kube is not None else ()

    def scene(self, policy: GpuPolicy) -> Scene:
        """Return everything that holders of cards are judged by, as of now."""
        return Scene(
            policy=policy,
            view=self._from.cluster.view,
            pods={pod.uid: pod for pod in self.pods()},
            snapshots=Fresh(self.told, self._now()),
            now=self._now(),
            notices=self._from.journal.notices(policy.name),
            tried=self._from.journal.tried(),
        )

    def volumes(self) -> Volumes:
        """Return all directories that pods and templates have as volumes, read now."""
        return self._from.needs.volumes() if self._from.needs is not None else Volumes()

    def _images(self, policy: ImagePolicy, node: str) -> Plan:
        now, fact = self._now(), self.told.get(node)
        if fact is None or fact.snapshot is None:
            return refuse(Subject(policy, now, node), "images-unknown", node=node)
        return plan_images(policy, fact.snapshot, self._needs_to_plan(node), now, self._refused(now))

    def _datasets(self, policy: DatasetPolicy) -> Plan:
        now, scanned = self._now(), self._from.scanned(policy.name)
        if scanned is None:
            return refuse(Subject(policy, now, policy.node), "not-scanned", root=policy.root, node=policy.node)
        fact = self.told.get(policy.node)
        disk = disk_for(policy, fact.snapshot) if fact is not None and fact.snapshot is not None else None
        ground = Ground(disk, scanned.trash, self._refused(now))
        notices = self._from.journal.notices(policy.name)
        return plan_datasets(policy, scanned.scan, scanned.uses, notices, now, ground)

    def _pods(self, policy: PodPolicy) -> Plan:
        now = self._now()
        if not self._pods_known():
            return refuse(Subject(policy, now), "kubernetes-unseen")
        grounds = Grounds(policy, now, self.told, self._from.cluster.identities())
        return plan_pods(self.pods(), grounds)

    def _gpus(self, policy: GpuPolicy) -> Plan:
        if not self._pods_known():
            return refuse(Subject(policy, self._now()), "kubernetes-unseen")
        return plan_gpu(self.scene(policy))

    def _registry(self, policy: RegistryPolicy) -> Plan:
        items, subject = self._from.registry(policy.name), Subject(policy, self._now())
        if items is None:
            return refuse(subject, "not-tried", registry=policy.url)
        selection = Selection(policy.caps)
        selection.items += items[: policy.caps.items]
        return make_plan(subject, selection, ())

    def _pods_known(self) -> bool:
        kube = self._from.cluster.kube
        return kube is not None and any(each.resource == "pods" and each.state == "synced" for each in kube.sources())

    def _refused(self, now: float) -> frozenset[str]:
        return self._from.journal.refused_since(now - REFUSED_FOR)


def disk_for(policy: Policy, snapshot: NodeSnapshot) -> DiskFact | None:
    """Return the disk that a policy is about on a node."""
    if isinstance(policy, ImagePolicy):
        return runtime_disk(snapshot)
    if isinstance(policy, DatasetPolicy):
        return disk_containing(policy.root, snapshot.disk or ())
    return None


def mounting(policy: DatasetPolicy, agents: Mapping[str, AgentFact]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Given all agents, return where other nodes have the root of a policy, and the nodes of which that is not known.

    A local disk is on no other node. A node that is silent may have mounted it since.
    """
    own = agents.get(policy.node)
    disk = disk_for(policy, own.snapshot) if own is not None and own.snapshot is not None else None
    if disk is None or "nas" not in disk.roles:
        return {}, ()
    below = policy.root[len(disk.mount.rstrip("/")) :]
    found: dict[str, str] = {}
    unseen: list[str] = []
    for node, fact in agents.items():
        if node == policy.node:
            continue
        if fact.snapshot is None or fact.snapshot.disk is None:
            unseen.append(node)
            continue
        same = next((each for each in fact.snapshot.disk if each.device == disk.device and "nas" in each.roles), None)
        if same is not None:
            found[node] = same.mount.rstrip("/") + below
    return found, tuple(sorted(unseen))
