"""Plans that a person asks for: that a card is released, that something comes back from the trash. Pure."""

from __future__ import annotations

from dataclasses import replace

from msgspec.structs import replace as changed

from monitor.cleanup.model import CleanupPlan, Item, Mode, PodWrite, Risk
from monitor.cleanup.plan.gpu_context import GpuPlanContext
from monitor.cleanup.plan.gpu_holders import GpuHold, idle_pods, orphans, zombies
from monitor.cleanup.plan.gpus import plan_gpus
from monitor.cleanup.policy import Caps, CleanupPolicy, Exempt, GpuPolicy
from monitor.facts.actions import KillProcess, RestoreUnit
from monitor.facts.cluster import GpuView
from monitor.facts.text import Text

RELEASE, RESTORE = "release", "restore"


def release_policy(policies: tuple[CleanupPolicy, ...]) -> GpuPolicy:
    """Return the policy of a release: at once, and as guarded as any other; whom another policy exempts is exempt."""
    others = [each for each in policies if isinstance(each, GpuPolicy)]
    exempt = Exempt(
        namespaces=tuple(name for each in others for name in each.exempt.namespaces),
        labels=tuple(label for each in others for label in each.exempt.labels),
        users=tuple(user for each in others for user in each.exempt.users),
    )
    plain = GpuPolicy(name=RELEASE, mode=Mode.ENFORCE, announce=0.0, notice=0.0, exempt=exempt)
    processes = tuple(dict.fromkeys(name for each in (plain, *others) for name in each.processes))
    return replace(
        plain, zombie_after=0.0, idle_after=0.0, orphan_after=0.0, processes=processes, caps=Caps(items=1000)
    )


def find_gpu(scene: GpuPlanContext, node: str, gpu: str) -> GpuView:
    """Given a node and the index or uuid of a card, return the card. Raise ValueError, in words for a user."""
    cards = [each for each in scene.view.gpus if each.node == node]
    for card in cards:
        if gpu in (str(card.index), card.uuid):
            return card
    known = ", ".join(str(card.index) for card in cards)
    raise ValueError(f"{node} has no GPU {gpu}" + (f"; it has {known}" if known else "; no card of it is known"))


def release_plan(scene: GpuPlanContext, card: GpuView) -> CleanupPlan:
    """Given a card, return what would release it. Raise ValueError, in words for a user, if nothing may be done."""
    plan = plan_gpus(scene)
    if plan.refused is not None:
        return plan
    uids = {holder.pod_uid for holder in card.holders if holder.pod_uid is not None}
    pids = {each.pid for uid in (*uids, None) for each in scene.processes(card, uid)}
    items = tuple(item for item in plan.items if _is_on(item, card, uids, pids))
    if not items:
        raise ValueError(_why_not(scene, card, uids))
    return changed(plan, items=items, node=card.node, kept=(), kept_counts={})


def _is_on(item: Item, card: GpuView, uids: set[str], pids: set[int]) -> bool:
    act = item.act
    if isinstance(act, PodWrite):
        return act.uid in uids
    return isinstance(act, KillProcess) and item.node == card.node and act.pid in pids


def _why_not(scene: GpuPlanContext, card: GpuView, uids: set[str]) -> str:
    """Return who holds a card and why nothing is done about that."""
    grips: tuple[GpuHold, ...] = (*zombies(scene), *orphans(scene), *idle_pods(scene))
    for grip in grips:
        ours = grip.gpu.uuid == card.uuid or (grip.holder is not None and grip.holder.pod_uid in uids)
        if ours and grip.covered is not None:
            why = " ".join(each for each in (grip.covered.protection, grip.covered.detail) if each)
            return f"GPU {card.index} of {card.node} is held by {grip.name}, which is left alone: {why}"
    return f"GPU {card.index} of {card.node} is {card.state}: there is nothing to release"


def restore_plan(trash: str, root: str, node: str, name: str, by: str, now: float) -> CleanupPlan:
    """Given something in a trash, return the plan to put it back."""
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
