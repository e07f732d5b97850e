"""Collects the inputs of the planners and makes plans. Read-only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from monitor.base.globs import matches_any_glob
from monitor.cleanup.execute.disk_level import DiskReading
from monitor.cleanup.execute.references_reader import ReferencesReader, TemplateList, VolumeList
from monitor.cleanup.execute.scanner import RootScan
from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.model import CleanupPlan, Item
from monitor.cleanup.on_demand import RELEASE
from monitor.cleanup.plan.datasets import DatasetContext, plan_datasets
from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.plan.gpus import plan_gpus
from monitor.cleanup.plan.images import plan_images, runtime_disk
from monitor.cleanup.plan.keeps import Keeps
from monitor.cleanup.plan.pods import FRESH_SECONDS, PodContext, plan_pods
from monitor.cleanup.plan.references import ClusterReferences, References, Template
from monitor.cleanup.plan.select import PlanSubject, Selection, make_plan, refuse
from monitor.cleanup.plan.watermarks import effective_marks, needed_bytes
from monitor.cleanup.policy import (
    CleanupPolicy,
    DatasetPolicy,
    GpuPolicy,
    ImagePolicy,
    PodPolicy,
    RegistryPolicy,
)
from monitor.cleanup.schedule import SKIP_REFUSED_SECONDS, refused_lately
from monitor.cluster.live import LiveCluster
from monitor.detect.lib.storage import disk_containing, used_ratio
from monitor.facts.agents import AgentFact
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact

TEMPLATES_CACHE_SECONDS = 60.0  # plans for many nodes share one read


@dataclass(frozen=True)
class PlannerDeps:
    """Sources of facts. `references` is None without Kubernetes."""

    cluster: LiveCluster
    journal: CleanupJournal
    references: ReferencesReader | None
    last_scan: Callable[[str], RootScan | None]  # by policy
    registry_items: Callable[[str], tuple[Item, ...] | None]  # by policy: the last dry run of its Harbor


class LazyAgentFacts(Mapping[str, AgentFact]):
    """Agents by node, each fetched on first lookup."""

    def __init__(self, fetch: Callable[[str], AgentFact | None], nodes: Iterable[str]) -> None:
        self._fetch = fetch
        self._nodes = frozenset(nodes)
        self._facts: dict[str, AgentFact | None] = {}

    def __getitem__(self, node: str) -> AgentFact:
        if node not in self._facts:
            self._facts[node] = self._fetch(node) if node in self._nodes else None
        fact = self._facts[node]
        if fact is None:
            raise KeyError(node)
        return fact

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._nodes))

    def __len__(self) -> int:
        return len(self._nodes)


class FreshSnapshots(Mapping[str, NodeSnapshot]):
    """Snapshots of the agents that answered lately, by node."""

    def __init__(self, agents: Mapping[str, AgentFact], now: float) -> None:
        self._agents = agents
        self._now = now

    def __getitem__(self, node: str) -> NodeSnapshot:
        fact = self._agents[node]
        if fact.snapshot is None or fact.silent_since is not None or fact.received_at is None:
            raise KeyError(node)
        if self._now - fact.received_at > FRESH_SECONDS:
            raise KeyError(node)
        return fact.snapshot

    def __iter__(self) -> Iterator[str]:
        return (node for node in self._agents if node in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Planner:
    """Makes plans from current facts."""

    def __init__(self, deps: PlannerDeps, now: Callable[[], float] = time.time) -> None:
        self._deps = deps
        self._now = now
        self._templates_lock = threading.Lock()
        self._templates: tuple[float, TemplateList] = (float("-inf"), TemplateList())
        self._references: tuple[tuple[PodFact, ...], tuple[Template, ...], tuple[str, ...], ClusterReferences] | None
        self._references = None

    def plan(self, policy: CleanupPolicy, node: str | None) -> CleanupPlan:
        """Current plan of a policy; `node` is required for images."""
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
        raise TypeError(f"no planner for {type(policy).__name__}")

    def nodes(self, policy: CleanupPolicy) -> tuple[str | None, ...]:
        """Nodes that a policy runs on; None is the cluster as a whole."""
        if isinstance(policy, DatasetPolicy):
            return (policy.node,)
        if not isinstance(policy, ImagePolicy):
            return (None,)
        return tuple(node for node in sorted(self.agents()) if matches_any_glob(node, policy.nodes))

    def agents(self) -> dict[str, AgentFact]:
        """Agents by node, as last polled."""
        return {fact.node: fact for fact in self._deps.cluster.poller.facts() if fact.node is not None}

    @property
    def current_agents(self) -> LazyAgentFacts:
        """Agents by node, read from the agents themselves: plans are based on these."""
        return LazyAgentFacts(self._deps.cluster.fetch_agent, self.agents())

    def snapshots(self) -> dict[str, NodeSnapshot]:
        """Fresh snapshots by node, as last polled."""
        return dict(FreshSnapshots(self.agents(), self._now()))

    def references(self, node: str) -> References:
        """References of the cluster on a node, read now: required before an image is removed."""
        reader = self._deps.references
        return reader.references(node) if reader is not None else self._without_kubernetes(node)

    def _planning_references(self, node: str) -> References:
        """References from watched pods and cached templates: good enough for a plan, which is re-checked later."""
        if self._deps.references is None:
            return self._without_kubernetes(node)
        with self._templates_lock:
            if time.monotonic() - self._templates[0] > TEMPLATES_CACHE_SECONDS:
                self._templates = (time.monotonic(), self._deps.references.templates())
            templates = self._templates[1]
        unknown = templates.unknown if self._pods_synced() else (*templates.unknown, "pods")
        return self._cluster_references(self.pods(), templates.items, unknown).on(node)

    def _cluster_references(
        self, pods: tuple[PodFact, ...], templates: tuple[Template, ...], unknown: tuple[str, ...]
    ) -> ClusterReferences:
        """References of all nodes; plans for many nodes share them while pods and templates are the same objects."""
        known = self._references
        if known is None or known[0] is not pods or known[1] is not templates or known[2] != unknown:
            known = self._references = (pods, templates, unknown, ClusterReferences(pods, templates, unknown))
        return known[3]

    def _without_kubernetes(self, node: str) -> References:
        fact = self.current_agents.get(node)
        containers = (fact.snapshot.containers if fact and fact.snapshot else None) or ()
        # The node runs pods, so it belongs to a cluster, whose references cannot be read.
        in_cluster = any(container.pod_uid for container in containers)
        return References({}, ("kubernetes",)) if in_cluster else References({})

    def disk_reading(self, policy: CleanupPolicy, node: str | None) -> DiskReading | None:
        """Distance of a policy's disk from its low-water mark, as its agent last read it."""
        fact = self.current_agents.get(node or "")
        if fact is None or fact.snapshot is None or fact.received_at is None:
            return None
        disk = policy_disk(policy, fact.snapshot)
        needed = needed_bytes(disk, effective_marks(policy.when, fact.snapshot, disk).low)
        if disk is None or needed is None:
            return None
        collectors = fact.snapshot.collectors
        read_at = next((collector.succeeded_at for collector in collectors if collector.name == "disk"), None)
        age = fact.snapshot.at - read_at if read_at is not None else 0.0
        return DiskReading(needed, used_ratio(disk), fact.received_at - max(0.0, age))

    def pods(self) -> tuple[PodFact, ...]:
        kube = self._deps.cluster.kube
        return kube.pods.snapshot().items if kube is not None else ()

    def gpu_context(self, policy: GpuPolicy) -> GpuPlanContext:
        """Facts for a plan of GPUs."""
        return GpuPlanContext(
            policy=policy,
            view=self._deps.cluster.view,
            pods={pod.uid: pod for pod in self.pods()},
            snapshots=FreshSnapshots(self.current_agents, self._now()),
            now=self._now(),
            notices=self._deps.journal.notices(policy.name),
            tried=self._deps.journal.first_evictions(),
            tenant_namespaces=self._tenant_namespaces(),
            keeps={} if policy.name == RELEASE else self.keeps(),
        )

    def polled_gpu_plan(self, policy: GpuPolicy) -> CleanupPlan:
        """Plan of GPUs from facts as last polled: it asks no agent, so it may be outdated."""
        if not self._pods_synced():
            return refuse(PlanSubject(policy, self._now()), "kubernetes-unseen")
        return plan_gpus(replace(self.gpu_context(policy), snapshots=self.snapshots()))

    def keeps(self) -> Keeps:
        """What owners keep."""
        return self._deps.journal.keeps.all()

    def volumes(self) -> VolumeList:
        """Directories that pods and templates mount, read now."""
        return self._deps.references.volumes() if self._deps.references is not None else VolumeList()

    def _images(self, policy: ImagePolicy, node: str) -> CleanupPlan:
        now, fact = self._now(), self._deps.cluster.fetch_agent(node)
        if fact is None or fact.snapshot is None:
            return refuse(PlanSubject(policy, now, node), "images-unknown", node=node)
        return plan_images(policy, fact.snapshot, self._planning_references(node), now, self._refused(now))

    def _datasets(self, policy: DatasetPolicy) -> CleanupPlan:
        now, last = self._now(), self._deps.last_scan(policy.name)
        if last is None:
            return refuse(PlanSubject(policy, now, policy.node), "not-scanned", root=policy.root, node=policy.node)
        fact = self.current_agents.get(policy.node)
        disk = policy_disk(policy, fact.snapshot) if fact is not None and fact.snapshot is not None else None
        context = DatasetContext(disk, last.trash, self._refused(now), self.keeps())
        notices = self._deps.journal.notices(policy.name)
        return plan_datasets(policy, last.scan, last.uses, notices, now, context)

    def _pods(self, policy: PodPolicy) -> CleanupPlan:
        now = self._now()
        if not self._pods_synced():
            return refuse(PlanSubject(policy, now), "kubernetes-unseen")
        identities, tenants = self._deps.cluster.identities(), self._tenant_namespaces()
        context = PodContext(policy, now, self.current_agents, identities, tenant_namespaces=tenants)
        return plan_pods(self.pods(), context)

    def _gpus(self, policy: GpuPolicy) -> CleanupPlan:
        if not self._pods_synced():
            return refuse(PlanSubject(policy, self._now()), "kubernetes-unseen")
        return plan_gpus(self.gpu_context(policy))

    def _registry(self, policy: RegistryPolicy) -> CleanupPlan:
        items, subject = self._deps.registry_items(policy.name), PlanSubject(policy, self._now())
        if items is None:
            return refuse(subject, "not-tried", registry=policy.url)
        selection = Selection(policy.caps)
        selection.items += items[: policy.caps.items]
        return make_plan(subject, selection, ())

    def _tenant_namespaces(self) -> frozenset[str]:
        """Namespaces with an owner."""
        kube = self._deps.cluster.kube
        return frozenset(kube.namespace_owners()) if kube is not None else frozenset()

    def _pods_synced(self) -> bool:
        kube = self._deps.cluster.kube
        return kube is not None and any(
            source.resource == "pods" and source.state == "synced" for source in kube.sources()
        )

    def _refused(self, now: float) -> frozenset[str]:
        return refused_lately(self._deps.journal.refused_since(now - SKIP_REFUSED_SECONDS), now)


def policy_disk(policy: CleanupPolicy, snapshot: NodeSnapshot) -> DiskFact | None:
    """Disk of a node that a policy is about."""
    if isinstance(policy, ImagePolicy):
        return runtime_disk(snapshot)
    if isinstance(policy, DatasetPolicy):
        return disk_containing(policy.root, snapshot.disk or ())
    return None


def other_mounts(policy: DatasetPolicy, agents: Mapping[str, AgentFact]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Paths of a policy's root on other nodes, by node, and the nodes whose mounts are unknown.

    A local disk is on no other node. A node without facts may have mounted the root.
    """
    agent = agents.get(policy.node)
    disk = policy_disk(policy, agent.snapshot) if agent is not None and agent.snapshot is not None else None
    if disk is None or "nas" not in disk.roles:
        return {}, ()
    below = policy.root[len(disk.mount.rstrip("/")) :]
    paths: dict[str, str] = {}
    unknown: list[str] = []
    for node, fact in agents.items():
        if node == policy.node:
            continue
        if fact.snapshot is None or fact.snapshot.disk is None:
            unknown.append(node)
            continue
        disks = fact.snapshot.disk
        mount = next((other.mount for other in disks if other.device == disk.device and "nas" in other.roles), None)
        if mount is not None:
            paths[node] = mount.rstrip("/") + below
    return paths, tuple(sorted(unknown))
