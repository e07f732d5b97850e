"""Plans for requests by a user: release a GPU or one item, restore a unit from the trash."""

from __future__ import annotations

from dataclasses import replace

from msgspec.structs import replace as changed

from monitor.cleanup.model import CleanupPlan, Item, Mode, PodWrite, Risk
from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.plan.gpu_holders import GpuHold, idle_pods, orphans, zombies
from monitor.cleanup.plan.gpus import plan_gpus
from monitor.cleanup.policy import Caps, CleanupPolicy, DatasetPolicy, Exempt, GpuPolicy
from monitor.facts.actions import KillProcess, RestoreUnit
from monitor.facts.cluster import GpuView
from monitor.facts.text import Text

RELEASE, RESTORE = "release", "restore"


def release_policy(policies: tuple[CleanupPolicy, ...]) -> GpuPolicy:
    """Policy of a release: immediate, with all protections, and with the exemptions of all GPU policies."""
    configured = [policy for policy in policies if isinstance(policy, GpuPolicy)]
    exempt = Exempt(
        namespaces=tuple(name for policy in configured for name in policy.exempt.namespaces),
        labels=tuple(label for policy in configured for label in policy.exempt.labels),
        users=tuple(user for policy in configured for user in policy.exempt.users),
    )
    release = GpuPolicy(name=RELEASE, mode=Mode.ENFORCE, announce=0.0, notice=0.0, exempt=exempt)
    processes = tuple(dict.fromkeys(name for policy in (release, *configured) for name in policy.processes))
    return replace(
        release, zombie_after=0.0, idle_after=0.0, orphan_after=0.0, inference=True, processes=processes,
        caps=Caps(items=1000),
    )  # fmt: skip


def find_gpu(context: GpuPlanContext, node: str, gpu: str) -> GpuView:
    """The GPU of a node with this index or uuid. Raise ValueError with a message for the user."""
    gpus = [view for view in context.view.gpus if view.node == node]
    for view in gpus:
        if gpu in (str(view.index), view.uuid):
            return view
    known = ", ".join(str(view.index) for view in gpus)
    raise ValueError(f"{node} has no GPU {gpu}" + (f"; it has {known}" if known else "; none of its GPUs is known"))


def release_plan(context: GpuPlanContext, gpu: GpuView) -> CleanupPlan:
    """Plan to release a GPU. Raise ValueError with a message for the user if nothing may be done."""
    plan = plan_gpus(context)
    if plan.refused is not None:
        return plan
    uids = {holder.pod_uid for holder in gpu.holders if holder.pod_uid is not None}
    pids = {process.pid for uid in (*uids, None) for process in context.processes(gpu, uid)}
    items = tuple(item for item in plan.items if _is_on(item, gpu, uids, pids))
    if not items:
        raise ValueError(_why_not(context, gpu, uids))
    return changed(plan, items=items, node=gpu.node, kept=(), kept_counts={})


def _is_on(item: Item, gpu: GpuView, uids: set[str], pids: set[int]) -> bool:
    act = item.act
    if isinstance(act, PodWrite):
        return act.uid in uids
    return isinstance(act, KillProcess) and item.node == gpu.node and act.pid in pids


def _why_not(context: GpuPlanContext, gpu: GpuView, uids: set[str]) -> str:
    """Who holds a GPU, and why it cannot be released."""
    holds: tuple[GpuHold, ...] = (*zombies(context), *orphans(context), *idle_pods(context))
    for hold in holds:
        matches = hold.gpu.uuid == gpu.uuid or (hold.holder is not None and hold.holder.pod_uid in uids)
        if matches and hold.covered is not None:
            why = " ".join(text for text in (hold.covered.protection, hold.covered.detail) if text)
            return f"GPU {gpu.index} on {gpu.node} is held by {hold.name}, which is protected: {why}"
    return f"GPU {gpu.index} on {gpu.node} is {gpu.state}; there is nothing to release"


def releasing_policy(name: str, policies: tuple[CleanupPolicy, ...]) -> CleanupPolicy | None:
    """The policy under which an owner may release an item of a policy now; None if they may not.

    What is only planned in a dry run is not released, except for GPUs, which every user may release without a policy.
    """
    policy = next((policy for policy in policies if policy.name == name), None)
    if name == RELEASE or isinstance(policy, GpuPolicy):
        return release_policy(policies)
    return policy if isinstance(policy, DatasetPolicy) and policy.mode is Mode.ENFORCE else None


def only_item(plan: CleanupPlan, item: str, now: float) -> CleanupPlan | None:
    """The part of a plan about one item, due now; None if the plan does not contain it."""
    items = tuple(changed(one, not_before=now) for one in plan.items if one.id == item)
    return changed(plan, items=items, kept=(), kept_counts={}) if items else None


def restore_plan(trash: str, root: str, node: str, name: str, by: str, now: float) -> CleanupPlan:
    """Plan to restore a unit from the trash."""
    item = Item(
        id=f"restore/{trash}",
        name=name,
        why=Text(key="cleanup.why.restore", values={"by": by}),
        risk=Risk.LOW,
        node=node,
        not_before=now,
        act=RestoreUnit(root=root, trash_id=trash),
    )
    return CleanupPlan(
        id=f"plan-{trash}", policy=RESTORE, kind="datasets", mode=Mode.ENFORCE, at=now, node=node, items=(item,)
    )
