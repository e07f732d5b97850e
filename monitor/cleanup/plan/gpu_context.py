"""What holders of cards are judged by, indexed once. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from monitor.cleanup.plan.exempt import exemption
from monitor.cleanup.plan.image_protection import STOPPED
from monitor.cleanup.plan.select import Protection
from monitor.cleanup.policy import GpuPolicy
from monitor.facts.cluster import ClusterView, GpuView, Holder, NodeView, PodView
from monitor.facts.gpu import GpuFact, GpuProcessFact
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot

Job = tuple[str | None, str]


@dataclass(frozen=True)
class GpuPlanContext:
    """Everything of one moment. `notices` and `tried` say, by item, when its owner was told, and its eviction tried.

    `snapshots` are those of agents that speak now.
    """

    policy: GpuPolicy
    view: ClusterView
    pods: Mapping[str, PodFact]  # by uid
    snapshots: Mapping[str, NodeSnapshot]  # by node
    now: float
    notices: Mapping[str, float] = field(default_factory=dict)
    tried: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> dict[str, NodeView]:
        """The nodes by name."""
        return {node.name: node for node in self.view.nodes}

    @cached_property
    def cards_of(self) -> dict[str, tuple[GpuView, ...]]:
        """The cards that each live pod has, by uid."""
        found: defaultdict[str, list[GpuView]] = defaultdict(list)
        for gpu in self.view.gpus:
            for holder in gpu.holders:
                if holder.live and holder.pod_uid:
                    found[holder.pod_uid].append(gpu)
        return {uid: tuple(cards) for uid, cards in found.items()}

    @cached_property
    def pods_of_job(self) -> dict[Job, tuple[PodView, ...]]:
        """The pods of each job."""
        found: defaultdict[Job, list[PodView]] = defaultdict(list)
        for pod in self.view.pods:
            found[pod.namespace, pod.identity.job or pod.uid].append(pod)
        return {job: tuple(pods) for job, pods in found.items()}

    def unseen(self, node: str | None) -> bool:
        """Return whether nothing is known now of what happens on a node."""
        seen = self.nodes.get(node or "")
        return seen is None or seen.silent_since is not None or (node or "") not in self.snapshots

    def processes(self, gpu: GpuView, pod_uid: str | None) -> tuple[GpuProcessFact, ...]:
        """Return the processes of a pod, or of none, on a card."""
        snapshot = self.snapshots.get(gpu.node)
        listed = (snapshot.gpu_processes or ()) if snapshot else ()
        return tuple(each for each in listed if each.gpu_uuid == gpu.uuid and each.pod_uid == pod_uid)

    def card(self, gpu: GpuView) -> GpuFact | None:
        """Return what the driver says of a card now."""
        snapshot = self.snapshots.get(gpu.node)
        cards = snapshot.gpu.gpus if snapshot and snapshot.gpu else ()
        return next((each for each in cards if each.uuid == gpu.uuid), None)

    def container_runs(self, process: GpuProcessFact, node: str) -> bool | None:
        """Return whether the container of a process is alive; None if that is not known."""
        snapshot = self.snapshots.get(node)
        if process.container_id is None:
            return False
        if snapshot is None or snapshot.containers is None:
            return None
        return any(each.id == process.container_id and each.state != STOPPED for each in snapshot.containers)

    def exempted(self, holder: Holder) -> Protection | None:
        """Return why a holder is never touched; of a pod that is gone only its name is left to tell."""
        pod = self.pods.get(holder.pod_uid or "")
        if pod is None:
            pod = PodFact(uid=holder.pod_uid or "", name=holder.pod or "", namespace=holder.namespace or "")
        return exemption(pod, holder.user, self.policy.exempt)

    def not_before(self, item_id: str, since: float) -> float | None:
        """Return from when on something may be done; None until the owner is told of this that lasts since then."""
        if self.policy.notice <= 0:
            return self.now
        told_at = self.notices.get(item_id)
        return told_at + self.policy.notice if told_at is not None and told_at >= since else None
