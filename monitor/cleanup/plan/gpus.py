"""Plan for GPUs that are held without being used.

The owner is notified, and nothing happens before the notice period is over. A live pod is evicted, and deleted only if
the policy sets `delete_after`. Processes left by a dead pod are killed by the agent of their node, which first verifies
that the pid still belongs to the same process.
"""

from __future__ import annotations

from monitor.cleanup.model import CleanupPlan, Item, KeptItem, PodWrite, Risk
from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.plan.gpu_holders import GpuHold, idle_pods, orphans, zombies
from monitor.cleanup.plan.keeps import keep_protection
from monitor.cleanup.plan.select import Candidate, PlanSubject, Selection, make_plan, refuse
from monitor.facts.actions import KillProcess
from monitor.facts.text import Text, Value

STALE_AFTER_SECONDS = 120.0


def plan_gpus(context: GpuPlanContext) -> CleanupPlan:
    """Plan for all GPUs of the cluster."""
    subject = PlanSubject(context.policy, context.now)
    if any(source.name in ("kubernetes", "pods") and not source.ok for source in context.view.sources):
        return refuse(subject, "kubernetes-unseen")
    if abs(context.now - context.view.at) > STALE_AFTER_SECONDS:
        return refuse(subject, "view-old", seconds=abs(context.now - context.view.at))
    kept: dict[str, KeptItem] = {}
    items: dict[str, Item] = {}
    for hold in (*zombies(context), *orphans(context), *idle_pods(context)):
        covered = hold.covered or keep_protection(context.keeps, hold.id, context.now)
        if covered is not None:
            kept[hold.id] = covered.kept_item(hold.name, hold.gpu.node)
        else:
            items[hold.id] = _item(hold, context)
    # A process may be on several GPUs: protection on one of them applies to all.
    unprotected = [item for key, item in items.items() if key not in kept]
    unprotected.sort(key=lambda item: (item.last_used_at or 0.0, item.id))
    selection = Selection(context.policy.caps)
    selection.add((Candidate(item) for item in unprotected), None)
    return make_plan(subject, selection, kept.values())


def _item(hold: GpuHold, context: GpuPlanContext) -> Item:
    holder, since = hold.holder, hold.since
    values: dict[str, Value] = {
        "node": hold.gpu.node,
        "gpu": hold.gpu.index,
        "seconds": max(0.0, context.now - since),
        "process": (hold.process.name or "?") if hold.process is not None else "?",
        "pid": hold.process.pid if hold.process is not None else 0,
    }
    return Item(
        id=hold.id,
        name=hold.name,
        why=Text(key=f"cleanup.why.gpu-{hold.what}", values=values),
        risk=Risk.HIGH,
        node=hold.gpu.node,
        owner=holder.user if holder is not None else None,
        last_used_at=since,
        not_before=context.not_before(hold.id, since),
        act=_act(hold, context),
    )


def _act(hold: GpuHold, context: GpuPlanContext) -> KillProcess | PodWrite:
    process, pod = hold.process, hold.pod
    if process is not None and process.started_at is not None:
        return KillProcess(pid=process.pid, started_at=process.started_at, gpu=process.gpu_uuid)
    if pod is None:
        raise ValueError(f"{hold.id}: neither a process nor a pod")
    return PodWrite(namespace=pod.namespace, name=pod.name, uid=pod.uid, how=_how(hold, context))


def _how(hold: GpuHold, context: GpuPlanContext) -> str:
    """Evict; delete once evictions have been attempted for the policy's `delete_after`."""
    first_attempt_at, after = context.tried.get(hold.id), context.policy.delete_after
    if first_attempt_at is None or after is None or first_attempt_at < hold.since:
        return "evict"
    return "delete" if context.now - first_attempt_at >= after else "evict"
