"""Facts by which holders of GPUs are judged, indexed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from monitor.cleanup.plan.exempt import exemption
from monitor.cleanup.plan.image_protection import STOPPED
from monitor.cleanup.plan.keeps import Keeps
from monitor.cleanup.plan.select import Protection
from monitor.cleanup.policy import GpuPolicy
from monitor.cluster.holders import processes_of
from monitor.facts.cluster import ClusterView, GpuView, Holder, NodeView, PodView
from monitor.facts.gpu import GpuFact, GpuProcessFact
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot

Job = tuple[str | None, str]


@dataclass(frozen=True)
class GpuPlanContext:
    """Facts of one moment. `notices` and `tried` are, by item, when the owner was notified and eviction was tried.

    `snapshots` are those of agents that answer now, `tenant_namespaces` the namespaces with an owner.
    """

    policy: GpuPolicy
    view: ClusterView
    pods: Mapping[str, PodFact]  # by uid
    snapshots: Mapping[str, NodeSnapshot]  # by node
    now: float
    notices: Mapping[str, float] = field(default_factory=dict)
    tried: Mapping[str, float] = field(default_factory=dict)
    tenant_namespaces: frozenset[str] = frozenset()
    keeps: Keeps = field(default_factory=dict)

    @cached_property
    def nodes(self) -> dict[str, NodeView]:
        """Nodes by name."""
        return {node.name: node for node in self.view.nodes}

    @cached_property
    def gpus_of(self) -> dict[str, tuple[GpuView, ...]]:
        """GPUs of each live pod, by uid."""
        by_pod: defaultdict[str, list[GpuView]] = defaultdict(list)
        for gpu in self.view.gpus:
            for holder in gpu.holders:
                if holder.live and holder.pod_uid:
                    by_pod[holder.pod_uid].append(gpu)
        return {uid: tuple(gpus) for uid, gpus in by_pod.items()}

    @cached_property
    def pods_of_job(self) -> dict[Job, tuple[PodView, ...]]:
        """Pods of each job."""
        by_job: defaultdict[Job, list[PodView]] = defaultdict(list)
        for pod in self.view.pods:
            by_job[pod.namespace, pod.identity.job or pod.uid].append(pod)
        return {job: tuple(pods) for job, pods in by_job.items()}

    @cached_property
    def inference_pods(self) -> frozenset[str]:
        """Pods that serve requests and may wait for them, by uid."""
        return frozenset(pod.uid for pod in self.view.pods if pod.identity.inference)

    def unseen(self, node: str | None) -> bool:
        """Whether the current state of a node is unknown."""
        view = self.nodes.get(node or "")
        return view is None or view.silent_since is not None or (node or "") not in self.snapshots

    def processes(self, gpu: GpuView, pod_uid: str | None) -> tuple[GpuProcessFact, ...]:
        """Processes of a pod, or of no pod, on a GPU."""
        return processes_of(pod_uid, gpu, self.snapshots.get(gpu.node))

    def gpu_fact(self, gpu: GpuView) -> GpuFact | None:
        """What the driver reports about a GPU now."""
        snapshot = self.snapshots.get(gpu.node)
        gpus = snapshot.gpu.gpus if snapshot and snapshot.gpu else ()
        return next((fact for fact in gpus if fact.uuid == gpu.uuid), None)

    def container_runs(self, process: GpuProcessFact, node: str) -> bool | None:
        """Whether the container of a process is running; None if unknown."""
        snapshot = self.snapshots.get(node)
        if process.container_id is None:
            return False
        if snapshot is None or snapshot.containers is None:
            return None
        return any(
            container.id == process.container_id and container.state != STOPPED for container in snapshot.containers
        )

    def exempted(self, holder: Holder) -> Protection | None:
        """Exemption of a holder. Of a pod that no longer exists only the name is known."""
        pod = self.pods.get(holder.pod_uid or "")
        if pod is None:
            pod = PodFact(uid=holder.pod_uid or "", name=holder.pod or "", namespace=holder.namespace or "")
        return exemption(pod, holder.user, self.policy.exempt, self.tenant_namespaces)

    def not_before(self, item_id: str, since: float) -> float | None:
        """Earliest time of the action; None until the owner has been notified of this hold, which began at `since`."""
        if self.policy.notice <= 0:
            return self.now
        notified_at = self.notices.get(item_id)
        return notified_at + self.policy.notice if notified_at is not None and notified_at >= since else None
