"""Plan for a dataset root: units to move into the trash, and trash to purge.

First units of owners over quota, the largest and oldest; then, while the disk is above its low-water mark, the least
recently used units. Without quota and mark: every unit that is old enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from monitor.cleanup.model import CleanupPlan, Item, KeptItem, Risk
from monitor.cleanup.plan.dataset_protection import DatasetUses, dataset_protection, last_use, mounted_paths, owner_of
from monitor.cleanup.plan.keeps import Keeps, keep_protection
from monitor.cleanup.plan.select import Candidate, PlanSubject, Selection, make_plan, refuse, skip_refused
from monitor.cleanup.plan.watermarks import needed_bytes
from monitor.cleanup.policy import DAY, DatasetPolicy
from monitor.facts.actions import PurgeTrash, TrashUnit
from monitor.facts.datasets import ScanFact, TrashFact, UnitFact
from monitor.facts.storage import DiskFact
from monitor.facts.text import Text, Value

STALE_AFTER_SECONDS = DAY  # a scan may take hours
_OCCUPYING_STATES = ("trashed", "purging")


@dataclass(frozen=True)
class DatasetContext:
    """Facts about a root besides its units: its disk, its trash, and the ids of items that the agent refused lately.

    `keeps` are those of owners. They do not apply to units over quota.
    """

    disk: DiskFact | None = None
    trash: tuple[TrashFact, ...] = ()
    refused: frozenset[str] = frozenset()
    keeps: Keeps = field(default_factory=dict)

    @property
    def trashed(self) -> tuple[TrashFact, ...]:
        """Trash that still occupies disk space."""
        return tuple(trash for trash in self.trash if trash.state in _OCCUPYING_STATES)


@dataclass
class _DatasetPlanning:
    """Inputs of a plan, and what has been selected and kept so far."""

    policy: DatasetPolicy
    scan: ScanFact
    uses: DatasetUses
    notices: Mapping[str, float]
    now: float
    context: DatasetContext
    selection: Selection
    kept: list[KeptItem] = field(default_factory=list)


def plan_datasets(
    policy: DatasetPolicy,
    scan: ScanFact,
    uses: DatasetUses,
    notices: Mapping[str, float],
    now: float,
    context: DatasetContext,
) -> CleanupPlan:
    """Plan for a scanned root. `notices` are the times at which owners were notified, by item.

    An item whose owner was not notified has no `not_before`, and must not be touched.
    """
    needed = needed_bytes(context.disk, policy.when.low)
    subject = PlanSubject(policy, now, policy.node, needed)
    if refusal := _refusal(subject, policy, scan, uses, needed):
        return refusal
    planning = _DatasetPlanning(policy, scan, uses, notices, now, context, Selection(policy.caps))
    _purge(planning)
    # Trash will be freed: a run an hour later must not take the same amount again.
    pending = sum(trash.allocated_bytes for trash in context.trashed)
    _choose(planning, _unprotected(planning), max(0, needed - pending) if needed is not None else None)
    return make_plan(subject, planning.selection, planning.kept)


def item_id(unit: UnitFact) -> str:
    """Stable id of a unit: another directory with the same name is another unit."""
    return f"dataset/{unit.device}:{unit.inode}/{unit.path}"


def _refusal(
    subject: PlanSubject, policy: DatasetPolicy, scan: ScanFact, uses: DatasetUses, needed: int | None
) -> CleanupPlan | None:
    """An empty plan with its reason, if the facts allow no plan."""
    where: dict[str, Value] = {"root": policy.root, "node": policy.node}
    if scan.root.rstrip("/") != policy.root.rstrip("/"):
        return refuse(subject, "other-root", **where, other=scan.root)
    if abs(subject.now - scan.finished_at) > STALE_AFTER_SECONDS:
        return refuse(subject, "scan-old", **where, seconds=abs(subject.now - scan.finished_at))
    if scan.read_only:
        return refuse(subject, "read-only", **where)
    if not scan.atime_usable and not policy.without_atime:
        return refuse(subject, "no-atime" if scan.atime_usable is False else "atime-unknown", **where)
    if uses.unseen:
        return refuse(subject, "nodes-unseen", **where, nodes=", ".join(uses.unseen))
    if uses.unknown:
        return refuse(subject, "needs-unknown", kinds=", ".join(uses.unknown))
    if policy.when.low is not None and needed is None:
        return refuse(subject, "disk-unknown", node=policy.node)
    return None


def _purge(planning: _DatasetPlanning) -> None:
    """Plan the purge of trash past its grace period first: it is due however full the disk is."""
    policy, now = planning.policy, planning.now
    expired = [trash for trash in planning.context.trashed if now - trash.trashed_at >= policy.trash_grace]
    if not expired:
        return
    size = sum(trash.allocated_bytes for trash in expired)
    item = Item(
        id=f"purge/{policy.node}/{policy.root}",
        name=f"{policy.root}: trash",
        why=Text(key="cleanup.why.purge", values={"count": len(expired), "bytes": size, "seconds": policy.trash_grace}),
        risk=Risk.HIGH,
        node=policy.node,
        frees_bytes=size,
        not_before=now,  # owners were notified before their units went into the trash
        act=PurgeTrash(root=policy.root, older_than_seconds=policy.trash_grace),
    )
    planning.selection.add([Candidate(item, 0)], None)  # its size counted when it went into the trash


def _unprotected(planning: _DatasetPlanning) -> list[UnitFact]:
    """Units without protection; the others are added to the kept items."""
    policy, uses = planning.policy, planning.uses
    volumes = mounted_paths(policy, uses, planning.context.disk)
    unprotected = []
    for unit in planning.scan.units:
        protection = dataset_protection(unit, policy, uses, volumes, planning.now)
        if protection is None:
            unprotected.append(unit)
            continue
        planning.kept.append(protection.kept_item(unit.path, policy.node, unit.allocated_bytes))
    return unprotected


def _choose(planning: _DatasetPlanning, units: list[UnitFact], needed: int | None) -> None:
    """Take units over quota, then as many as the disk needs; all units if there is neither quota nor mark."""
    policy = planning.policy
    quotas = policy.quota is not None or bool(policy.quotas)
    chosen = _over_quota(planning, units) if quotas else 0
    if quotas and needed is None:
        return
    taken = {item.id for item in planning.selection.items}
    rest = _without_keeps(planning, (unit for unit in units if item_id(unit) not in taken))
    rest.sort(key=lambda unit: (last_use(unit), unit.path))
    # Units over quota free the disk too.
    _take(planning, rest, "unused", None if needed is None else max(0, needed - chosen))


def _without_keeps(planning: _DatasetPlanning, units: Iterable[UnitFact]) -> list[UnitFact]:
    """Units that their owner does not keep; the others are added to the kept items."""
    left = []
    for unit in units:
        protection = keep_protection(planning.context.keeps, item_id(unit), planning.now)
        if protection is None:
            left.append(unit)
        else:
            planning.kept.append(protection.kept_item(unit.path, planning.policy.node, unit.allocated_bytes))
    return left


def _over_quota(planning: _DatasetPlanning, candidates: Iterable[UnitFact]) -> int:
    """Take the largest and oldest units of owners over quota, the largest excess first; return the bytes taken."""
    policy, eligible, taken = planning.policy, _by_owner(candidates), 0
    over = []
    for owner, units in _by_owner(planning.scan.units).items():
        quota, used = policy.quota_of(owner), sum(unit.allocated_bytes for unit in units)
        if quota is not None and used > quota:
            over.append((used - quota, owner))
    for excess, owner in sorted(over, key=lambda pair: (-pair[0], pair[1])):
        units = sorted(eligible.get(owner, ()), key=lambda unit: (-_weight(unit, planning.now), unit.path))
        taken += _take(planning, units, "over-quota", excess, quota=policy.quota_of(owner) or 0, excess=excess)
    return taken


def _weight(unit: UnitFact, now: float) -> float:
    """Size of a unit times the time since its last use."""
    return unit.allocated_bytes * max(0.0, now - last_use(unit))


def _take(planning: _DatasetPlanning, units: Iterable[UnitFact], why: str, needed: int | None, **values: Value) -> int:
    candidates = [Candidate(_item(planning, unit, why, values), unit.allocated_bytes) for unit in units]
    return planning.selection.add(skip_refused(candidates, planning.context.refused, planning.kept), needed)


def _item(planning: _DatasetPlanning, unit: UnitFact, why: str, values: Mapping[str, Value]) -> Item:
    policy, used_at = planning.policy, last_use(unit)
    why_values: dict[str, Value] = {
        "owner": owner_of(unit),
        "seconds": max(0.0, planning.now - used_at),
        "bytes": unit.allocated_bytes,
        "files": unit.files,
    }
    return Item(
        id=item_id(unit),
        name=unit.path,
        why=Text(key=f"cleanup.why.dataset-{why}", values=why_values | dict(values)),
        risk=Risk.MEDIUM,
        node=policy.node,
        owner=owner_of(unit),
        frees_bytes=unit.allocated_bytes,
        last_used_at=used_at,
        not_before=_not_before(planning, unit),
        act=TrashUnit(
            root=policy.root,
            path=unit.path,
            device=unit.device,
            inode=unit.inode,
            newest=used_at,
            policy=policy.name,
        ),
    )


def _not_before(planning: _DatasetPlanning, unit: UnitFact) -> float | None:
    """When a unit may go; None until its owner is notified, again if the unit was used since."""
    if planning.policy.notice <= 0:
        return planning.now
    notified_at = planning.notices.get(item_id(unit))
    if notified_at is None or notified_at < last_use(unit):
        return None
    return notified_at + planning.policy.notice


def _by_owner(units: Iterable[UnitFact]) -> dict[str, list[UnitFact]]:
    owners: defaultdict[str, list[UnitFact]] = defaultdict(list)
    for unit in units:
        owners[owner_of(unit)].append(unit)
    return dict(owners)
