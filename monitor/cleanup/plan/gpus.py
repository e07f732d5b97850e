"""Which holders of cards are to let go. Pure.

The owner is told, the notice passes, and only then anything is done. A live pod is evicted, and deleted only if the
policy says after how long; what a dead one left on a card is ended by the agent of its node, which looks again whether
it still is that process.
"""

from __future__ import annotations

from monitor.cleanup.model import CleanupPlan, Item, KeptItem, PodWrite, Risk
from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.plan.gpu_holders import GpuHold, idle_pods, orphans, zombies
from monitor.cleanup.plan.select import Candidate, PlanSubject, Selection, make_plan, refuse
from monitor.facts.actions import KillProcess
from monitor.facts.text import Text, Value

STALE_AFTER_SECONDS = 120.0


def plan_gpus(scene: GpuPlanContext) -> CleanupPlan:
    """Given all that is known of cards and their holders, return which would be told and then released."""
    subject = PlanSubject(scene.policy, scene.now)
    if any(source.name in ("kubernetes", "pods") and not source.ok for source in scene.view.sources):
        return refuse(subject, "kubernetes-unseen")
    if abs(scene.now - scene.view.at) > STALE_AFTER_SECONDS:
        return refuse(subject, "view-old", seconds=abs(scene.now - scene.view.at))
    kept: dict[str, KeptItem] = {}
    items: dict[str, Item] = {}
    for grip in (*zombies(scene), *orphans(scene), *idle_pods(scene)):
        if grip.covered is not None:
            kept[grip.id] = grip.covered.kept(grip.name, grip.gpu.node)
        else:
            items[grip.id] = _item(grip, scene)
    # A process may be on several cards: a protection on one of them covers it on all.
    free = [item for key, item in items.items() if key not in kept]
    selection = Selection(scene.policy.caps)
    selection.add(
        (Candidate(item) for item in sorted(free, key=lambda each: (each.last_used_at or 0.0, each.id))), None
    )
    return make_plan(subject, selection, kept.values())


def _item(grip: GpuHold, scene: GpuPlanContext) -> Item:
    holder, since = grip.holder, grip.since
    values: dict[str, Value] = {
        "node": grip.gpu.node,
        "gpu": grip.gpu.index,
        "seconds": max(0.0, scene.now - since),
        "process": (grip.process.name or "?") if grip.process is not None else "?",
        "pid": grip.process.pid if grip.process is not None else 0,
    }
    return Item(
        id=grip.id,
        name=grip.name,
        why=Text(key=f"cleanup.why.gpu-{grip.what}", values=values),
        risk=Risk.HIGH,
        node=grip.gpu.node,
        owner=holder.user if holder is not None else None,
        last_used_at=since,
        not_before=scene.not_before(grip.id, since),
        act=_act(grip, scene),
    )


def _act(grip: GpuHold, scene: GpuPlanContext) -> KillProcess | PodWrite:
    process, pod = grip.process, grip.pod
    if process is not None and process.started_at is not None:
        return KillProcess(pid=process.pid, started_at=process.started_at, gpu=process.gpu_uuid)
    if pod is None:
        raise ValueError(f"{grip.id}: neither a process nor a pod")
    return PodWrite(namespace=pod.namespace, name=pod.name, uid=pod.uid, how=_how(grip, scene))


def _how(grip: GpuHold, scene: GpuPlanContext) -> str:
    """Return evict; delete only when a live pod's eviction has been tried for as long as the policy wants."""
    tried_at, after = scene.tried.get(grip.id), scene.policy.delete_after
    if tried_at is None or after is None or tried_at < grip.since:
        return "evict"
    return "delete" if scene.now - tried_at >= after else "evict"
