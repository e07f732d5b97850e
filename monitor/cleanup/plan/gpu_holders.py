"""Who holds cards for nothing: pods that do nothing, what is left of dead pods, processes of no pod. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.plan.select import Protection
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.cluster_facts import FINISHED
from monitor.facts.gpu import GpuProcessFact
from monitor.facts.kube import PodFact

PROTECTIONS = (
    "exempt", "too-young", "busy", "job-busy", "draws-power", "terminating", "container-left", "platform", "unknown",
)  # fmt: skip
WORKS_FROM = 0.35  # of its power limit: so much no card draws that does nothing, whatever its utilisation says
PROCESS = "process"


@dataclass(frozen=True)
class GpuHold:
    """A hold on a card, since when, and what protects it. Either a process or a pod has to go."""

    gpu: GpuView
    what: str  # idle, zombie, orphan
    since: float
    covered: Protection | None
    holder: Holder | None = None
    pod: PodFact | None = None
    process: GpuProcessFact | None = None

    @property
    def id(self) -> str:
        """What it is known by in every plan."""
        if self.process is not None:
            return f"process/{self.gpu.node}/{self.process.pid}/{self.process.started_at}"
        return f"gpu-pod/{self.holder.pod_uid if self.holder else None}"

    @property
    def name(self) -> str:
        """What it is called."""
        if self.holder is not None and self.holder.pod:
            return f"{self.holder.namespace}/{self.holder.pod}"
        named = self.process.name if self.process is not None else None
        return named or (self.holder.pod_uid if self.holder else None) or "?"


def zombies(scene: GpuPlanContext) -> Iterator[GpuHold]:
    """Yield what dead pods left on cards."""
    after = scene.policy.zombie_after
    for gpu in scene.view.gpus if after is not None else ():
        if gpu.state is not GpuState.ZOMBIE:
            continue
        for holder in gpu.holders:
            if holder.live is False and holder.pod_uid is not None and PROCESS in holder.by:
                yield from _remains(scene, gpu, holder, after or 0.0)


def _remains(scene: GpuPlanContext, gpu: GpuView, holder: Holder, after: float) -> Iterator[GpuHold]:
    """Yield each process of a dead pod, or the pod itself while its container lives: ending that is the kubelet's."""
    pod = scene.pods.get(holder.pod_uid or "")
    since = gpu.since if gpu.since is not None else scene.now
    early = scene.exempted(holder) or _blind(scene, gpu) or _young(scene, since, after)
    for process in scene.processes(gpu, holder.pod_uid):
        runs = scene.container_runs(process, gpu.node)
        if runs and pod is not None:
            yield GpuHold(gpu, "zombie", since, early or _elsewhere(pod, (gpu,)) or _ending(pod), holder, pod)
            continue
        covered = early or (Protection("container-left", (process.container_id or "")[:12]) if runs else None)
        covered = covered or (Protection("unknown") if runs is None or process.started_at is None else None)
        yield GpuHold(gpu, "zombie", since, covered, holder, pod, process)


def _elsewhere(pod: PodFact, cards: tuple[GpuView, ...]) -> Protection | None:
    """Return that a node speaks of a pod that is not its own: nobody loses a pod by the word of another's node."""
    return next((Protection("unknown", gpu.node) for gpu in cards if gpu.node != pod.node), None)


def _ending(pod: PodFact) -> Protection | None:
    """Return that a pod is on its way already: what keeps it is not for us to break."""
    return Protection("terminating") if pod.deletion_at is not None or pod.phase not in FINISHED else None


def idle_pods(scene: GpuPlanContext) -> Iterator[GpuHold]:
    """Yield the live pods that have a card and have done nothing with any for long."""
    after = scene.policy.idle_after
    if after is None:
        return
    for uid, cards in sorted(scene.cards_of.items()):
        idle = [gpu for gpu in cards if gpu.state is GpuState.IDLE_HELD and gpu.idle_since is not None]
        if not idle:
            continue
        gpu = idle[0]
        holder = next(each for each in gpu.holders if each.pod_uid == uid)
        pod = scene.pods.get(uid)
        since = max([each.idle_since or 0.0 for each in idle] + [started_at(pod) if pod else scene.now])
        covered = (
            (Protection("unknown") if pod is None else _elsewhere(pod, cards))
            or scene.exempted(holder)
            or (Protection("terminating") if pod is not None and pod.deletion_at is not None else None)
            or _working(scene, cards)
            or _job_works(scene, holder, uid)
            or _young(scene, since, after)
        )
        yield GpuHold(gpu, "idle", since, covered, holder, pod)


def started_at(pod: PodFact) -> float:
    """Return when the newest container of a pod was started; what does not tell counts as new."""
    starts = [each.started_at for each in pod.statuses if each.state == "running" and each.started_at is not None]
    known = max(starts, default=pod.started_at if pod.started_at is not None else pod.created_at)
    return known if known is not None else float("inf")


def _working(scene: GpuPlanContext, cards: tuple[GpuView, ...]) -> Protection | None:
    """Return that one of a pod's cards works, or may."""
    for gpu in cards:
        if gpu.state is not GpuState.IDLE_HELD or gpu.idle_since is None:
            return (
                Protection("busy", f"GPU {gpu.index}")
                if gpu.state is GpuState.BUSY
                else Protection("unknown", gpu.state)
            )
        card = scene.card(gpu)
        if card is None or scene.unseen(gpu.node):
            return Protection("unknown", gpu.node)
        if card.power_watts is None or not card.power_limit_watts:
            continue  # a card that does not measure it is judged by its utilisation alone
        if card.power_watts >= WORKS_FROM * card.power_limit_watts:
            return Protection("draws-power", f"{card.power_watts:.0f} W")
    return None


def _job_works(scene: GpuPlanContext, holder: Holder, uid: str) -> Protection | None:
    """Return that another pod of the same job works, may work, or has yet to start: the job needs all of them."""
    for other in scene.pods_of_job.get((holder.namespace, holder.job or uid), ()):
        if other.uid == uid or other.phase in FINISHED:
            continue
        cards = scene.cards_of.get(other.uid, ())
        if other.node is None or other.phase == "Pending" or any(gpu.state is GpuState.BUSY for gpu in cards):
            return Protection("job-busy", other.name)
        # One that asked for cards of which none is seen may be at work on them.
        idle = _working(scene, cards) is None and (bool(cards) or not other.requested_gpus)
        if scene.unseen(other.node) or not idle:
            return Protection("unknown", other.name)
    return None


def orphans(scene: GpuPlanContext) -> Iterator[GpuHold]:
    """Yield processes on cards that belong to no pod. Outside Kubernetes that is how work is done."""
    after = scene.policy.orphan_after
    for gpu in scene.view.gpus if after is not None else ():
        node = scene.nodes.get(gpu.node)
        if gpu.state is not GpuState.ORPHAN or node is None or not node.in_kubernetes:
            continue
        since = gpu.since if gpu.since is not None else scene.now
        for process in scene.processes(gpu, None):
            if process.kind != "graphics" and process.state != "gone":
                yield GpuHold(gpu, "orphan", since, _stranger(scene, gpu, process, since), process=process)


def _stranger(scene: GpuPlanContext, gpu: GpuView, process: GpuProcessFact, since: float) -> Protection | None:
    """Return why a process without a pod may be where it is."""
    name = process.name
    if name is None or process.started_at is None:
        return Protection("unknown")
    if any(fnmatchcase(name, pattern) for pattern in scene.policy.processes):
        return Protection("platform", name)
    runs = scene.container_runs(process, gpu.node)
    if runs is None:
        return Protection("unknown")
    in_container = Protection("container-left", (process.container_id or "")[:12]) if runs else None
    lasting = max(since, process.started_at)  # a process that came later has its own time
    return in_container or _blind(scene, gpu) or _young(scene, lasting, scene.policy.orphan_after or 0.0)


def _blind(scene: GpuPlanContext, gpu: GpuView) -> Protection | None:
    return Protection("unknown", gpu.node) if scene.unseen(gpu.node) else None


def _young(scene: GpuPlanContext, since: float, after: float) -> Protection | None:
    return Protection("too-young") if scene.now - since < after else None
