"""Holders that waste GPUs: idle pods, processes left by ended pods, and processes of no pod."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from monitor.base.globs import matches_any_glob
from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.plan.select import Protection
from monitor.cluster.holders import zombie_holders
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.gpu import GpuProcessFact
from monitor.facts.kube import TERMINAL_PHASES, PodFact

PROTECTIONS = (
    "exempt", "too-young", "busy", "job-busy", "draws-power", "terminating", "container-left", "platform", "inference",
    "unknown", "kept",
)  # fmt: skip
MIN_BUSY_POWER_RATIO = 0.35  # of the power limit: an idle GPU never draws this much, whatever its utilisation says


@dataclass(frozen=True)
class GpuHold:
    """A hold on a GPU: its kind, its start, what protects it, and the process or pod to remove."""

    gpu: GpuView
    what: str  # idle, zombie, orphan
    since: float
    covered: Protection | None
    holder: Holder | None = None
    pod: PodFact | None = None
    process: GpuProcessFact | None = None

    @property
    def id(self) -> str:
        """Identifier, the same in every plan."""
        if self.process is not None:
            return f"process/{self.gpu.node}/{self.process.pid}/{self.process.started_at}"
        return f"gpu-pod/{self.holder.pod_uid if self.holder else None}"

    @property
    def name(self) -> str:
        """Display name."""
        if self.holder is not None and self.holder.pod:
            return f"{self.holder.namespace}/{self.holder.pod}"
        process_name = self.process.name if self.process is not None else None
        return process_name or (self.holder.pod_uid if self.holder else None) or "?"


def zombies(context: GpuPlanContext) -> Iterator[GpuHold]:
    """Holds by processes that ended pods left on GPUs."""
    after = context.policy.zombie_after
    for gpu in context.view.gpus if after is not None else ():
        if gpu.state is not GpuState.ZOMBIE:
            continue
        for holder in zombie_holders(gpu):
            if holder.pod_uid is not None:
                yield from _zombie_holds(context, gpu, holder, after or 0.0)


def _zombie_holds(context: GpuPlanContext, gpu: GpuView, holder: Holder, after: float) -> Iterator[GpuHold]:
    """Each process of an ended pod; or the pod while its container runs, because stopping that is up to the kubelet."""
    pod = context.pods.get(holder.pod_uid or "")
    since = gpu.since if gpu.since is not None else context.now
    early = context.exempted(holder) or _blind(context, gpu) or _too_young(context, since, after)
    for process in context.processes(gpu, holder.pod_uid):
        runs = context.container_runs(process, gpu.node)
        if runs and pod is not None:
            yield GpuHold(gpu, "zombie", since, early or _elsewhere(pod, (gpu,)) or _terminating(pod), holder, pod)
            continue
        covered = early or (Protection("container-left", (process.container_id or "")[:12]) if runs else None)
        covered = covered or (Protection("unknown") if runs is None or process.started_at is None else None)
        yield GpuHold(gpu, "zombie", since, covered, holder, pod, process)


def _elsewhere(pod: PodFact, gpus: tuple[GpuView, ...]) -> Protection | None:
    """Protects a pod that runs on another node: the report of one node must not remove a pod of another."""
    return next((Protection("unknown", gpu.node) for gpu in gpus if gpu.node != pod.node), None)


def _terminating(pod: PodFact) -> Protection | None:
    """Protects a pod that is already terminating: whatever delays it must not be broken by force."""
    return Protection("terminating") if pod.deletion_at is not None or not pod.finished else None


def idle_pods(context: GpuPlanContext) -> Iterator[GpuHold]:
    """Holds by live pods whose GPUs have been idle for long."""
    after = context.policy.idle_after
    if after is None:
        return
    for uid, gpus in sorted(context.gpus_of.items()):
        idle = [gpu for gpu in gpus if gpu.state is GpuState.IDLE_HELD and gpu.idle_since is not None]
        if not idle:
            continue
        gpu = idle[0]
        holder = next(holder for holder in gpu.holders if holder.pod_uid == uid)
        pod = context.pods.get(uid)
        since = max([gpu.idle_since or 0.0 for gpu in idle] + [started_at(pod) if pod else context.now])
        covered = (
            (Protection("unknown") if pod is None else _elsewhere(pod, gpus))
            or context.exempted(holder)
            or (Protection("inference") if uid in context.inference_pods and not context.policy.inference else None)
            or (Protection("terminating") if pod is not None and pod.deletion_at is not None else None)
            or _working(context, gpus)
            or _job_works(context, holder, uid)
            or _too_young(context, since, after)
        )
        yield GpuHold(gpu, "idle", since, covered, holder, pod)


def started_at(pod: PodFact) -> float:
    """Start of the newest container of a pod; infinity if unknown, so that the pod counts as new."""
    starts = [
        status.started_at for status in pod.statuses if status.state == "running" and status.started_at is not None
    ]
    known = max(starts, default=pod.started_at if pod.started_at is not None else pod.created_at)
    return known if known is not None else float("inf")


def _working(context: GpuPlanContext, gpus: tuple[GpuView, ...]) -> Protection | None:
    """Protects a pod with a GPU that works, or may work."""
    for gpu in gpus:
        if gpu.state is not GpuState.IDLE_HELD or gpu.idle_since is None:
            return (
                Protection("busy", f"GPU {gpu.index}")
                if gpu.state is GpuState.BUSY
                else Protection("unknown", gpu.state)
            )
        fact = context.gpu_fact(gpu)
        if fact is None or context.unseen(gpu.node):
            return Protection("unknown", gpu.node)
        if fact.power_watts is None or not fact.power_limit_watts:
            continue  # power is not measured: utilisation alone decides
        if fact.power_watts >= MIN_BUSY_POWER_RATIO * fact.power_limit_watts:
            return Protection("draws-power", f"{fact.power_watts:.0f} W")
    return None


def _job_works(context: GpuPlanContext, holder: Holder, uid: str) -> Protection | None:
    """Protects a pod while another pod of its job works, may work, or has yet to start: the job needs all of them."""
    for other in context.pods_of_job.get((holder.namespace, holder.job or uid), ()):
        if other.uid == uid or other.phase in TERMINAL_PHASES:
            continue
        gpus = context.gpus_of.get(other.uid, ())
        if other.node is None or other.phase == "Pending" or any(gpu.state is GpuState.BUSY for gpu in gpus):
            return Protection("job-busy", other.name)
        # A pod that requested GPUs but is seen on none may be working on them.
        idle = _working(context, gpus) is None and (bool(gpus) or not (other.requested_gpus or other.gpu_shares))
        if context.unseen(other.node) or not idle:
            return Protection("unknown", other.name)
    return None


def orphans(context: GpuPlanContext) -> Iterator[GpuHold]:
    """Holds by processes of no pod. On nodes outside Kubernetes they are legitimate."""
    after = context.policy.orphan_after
    for gpu in context.view.gpus if after is not None else ():
        node = context.nodes.get(gpu.node)
        if gpu.state is not GpuState.ORPHAN or node is None or not node.in_kubernetes:
            continue
        since = gpu.since if gpu.since is not None else context.now
        for process in context.processes(gpu, None):
            if process.kind != "graphics" and process.state != "gone":
                yield GpuHold(gpu, "orphan", since, _orphan_cover(context, gpu, process, since), process=process)


def _orphan_cover(context: GpuPlanContext, gpu: GpuView, process: GpuProcessFact, since: float) -> Protection | None:
    """What protects a process of no pod."""
    name = process.name
    if name is None or process.started_at is None:
        return Protection("unknown")
    if matches_any_glob(name, context.policy.processes):
        return Protection("platform", name)
    runs = context.container_runs(process, gpu.node)
    if runs is None:
        return Protection("unknown")
    in_container = Protection("container-left", (process.container_id or "")[:12]) if runs else None
    began = max(since, process.started_at)  # a process that started later has its own grace period
    return in_container or _blind(context, gpu) or _too_young(context, began, context.policy.orphan_after or 0.0)


def _blind(context: GpuPlanContext, gpu: GpuView) -> Protection | None:
    return Protection("unknown", gpu.node) if context.unseen(gpu.node) else None


def _too_young(context: GpuPlanContext, since: float, after: float) -> Protection | None:
    return Protection("too-young") if context.now - since < after else None
