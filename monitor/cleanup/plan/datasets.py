"""Which units of a dataset root go into the trash, and what is purged from it for good. Pure.

First what is over the quota of its owner, the largest and oldest of it; then, if the disk is above its low-water mark,
what was used longest ago. Without quota and mark: everything that is old enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from monitor.cleanup.model import CleanupPlan, Item, KeptItem, Risk
from monitor.cleanup.plan.dataset_protection import DatasetUses, dataset_protection, last_use, mounted_paths, owner_of
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
    """What is known of the root besides its units: its disk, what lies in its trash, what the agent refused lately."""

    disk: DiskFact | None = None
    trash: tuple[TrashFact, ...] = ()
    refused: frozenset[str] = frozenset()

    @property
    def trashed(self) -> tuple[TrashFact, ...]:
        """Return what is in the trash and still takes room."""
        return tuple(each for each in self.trash if each.state in _OCCUPYING_STATES)


@dataclass(frozen=True)
class OwnerReport:
    """What one owner has below a root. `oldest` is when the unit that was used longest ago was last used."""

    owner: str
    units: int
    bytes: int
    files: int
    oldest: float
    quota: int | None = None


@dataclass
class _DatasetPlanning:
    """A plan in the making."""

    policy: DatasetPolicy
    scan: ScanFact
    uses: DatasetUses
    notices: Mapping[str, float]
    now: float
    ground: DatasetContext
    selection: Selection
    kept: list[KeptItem] = field(default_factory=list)


def plan_datasets(
    policy: DatasetPolicy,
    scan: ScanFact,
    uses: DatasetUses,
    notices: Mapping[str, float],
    now: float,
    ground: DatasetContext,
) -> CleanupPlan:
    """Given a policy, a scan, who uses what, and when owners were told of which item, return what would be moved.

    An item whose owner has not been told has no `not_before`, and is not to be touched.
    """
    needed = needed_bytes(ground.disk, policy.when.low)
    subject = PlanSubject(policy, now, policy.node, needed)
    if refusal := _refusal(subject, policy, scan, uses, needed):
        return refusal
    drawing = _DatasetPlanning(policy, scan, uses, notices, now, ground, Selection(policy.caps))
    _purge(drawing)
    # What lies in the trash is not free yet, but will be: a run an hour later must not take as much again.
    waiting = sum(each.allocated_bytes for each in ground.trashed)
    _choose(drawing, _unprotected(drawing), max(0, needed - waiting) if needed is not None else None)
    return make_plan(subject, drawing.selection, drawing.kept)


def owner_reports(policy: DatasetPolicy, scan: ScanFact) -> tuple[OwnerReport, ...]:
    """Given a scan, return what each owner has, the largest first."""
    found = []
    for owner, units in _by_owner(scan.units).items():
        size, files = sum(unit.allocated_bytes for unit in units), sum(unit.files for unit in units)
        oldest = min(last_use(unit) for unit in units)
        found.append(OwnerReport(owner, len(units), size, files, oldest, policy.quota_of(owner)))
    return tuple(sorted(found, key=lambda each: (-each.bytes, each.owner)))


def item_id(unit: UnitFact) -> str:
    """Return by what a unit is known in every plan: another directory of the same name is another unit."""
    return f"dataset/{unit.device}:{unit.inode}/{unit.path}"


def _refusal(
    subject: PlanSubject, policy: DatasetPolicy, scan: ScanFact, uses: DatasetUses, needed: int | None
) -> CleanupPlan | None:
    """Return why there can be no plan, if so."""
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


def _purge(drawing: _DatasetPlanning) -> None:
    """Put the purge of what has been in the trash for long enough first: it is owed, whatever the disk says."""
    policy, now = drawing.policy, drawing.now
    over = [each for each in drawing.ground.trashed if now - each.trashed_at >= policy.trash_grace]
    if not over:
        return
    size = sum(each.allocated_bytes for each in over)
    item = Item(
        id=f"purge/{policy.node}/{policy.root}",
        name=f"{policy.root}: trash",
        why=Text(key="cleanup.why.purge", values={"count": len(over), "bytes": size, "seconds": policy.trash_grace}),
        risk=Risk.HIGH,
        node=policy.node,
        frees_bytes=size,
        not_before=now,  # its owners were told before it went into the trash
        act=PurgeTrash(root=policy.root, older_than_seconds=policy.trash_grace),
    )
    drawing.selection.add([Candidate(item, 0)], None)  # it was counted when it went into the trash


def _unprotected(drawing: _DatasetPlanning) -> list[UnitFact]:
    """Return the units that may go; what is protected is added to what is kept."""
    policy, uses = drawing.policy, drawing.uses
    volumes = mounted_paths(policy, uses, drawing.ground.disk)
    free = []
    for unit in drawing.scan.units:
        covered = dataset_protection(unit, policy, uses, volumes, drawing.now)
        if covered is None:
            free.append(unit)
            continue
        drawing.kept.append(covered.kept(unit.path, policy.node, unit.allocated_bytes))
    return free


def _choose(drawing: _DatasetPlanning, free: list[UnitFact], needed: int | None) -> None:
    """Take what is over quota, then what the disk needs; where neither is asked for, all."""
    policy = drawing.policy
    quotas = policy.quota is not None or bool(policy.quotas)
    chosen = _over_quota(drawing, free) if quotas else 0
    if quotas and needed is None:
        return
    taken = {item.id for item in drawing.selection.items}
    rest = sorted((unit for unit in free if item_id(unit) not in taken), key=lambda unit: (last_use(unit), unit.path))
    # What goes for its owner's quota helps the disk too.
    _take(drawing, rest, "unused", None if needed is None else max(0, needed - chosen))


def _over_quota(drawing: _DatasetPlanning, free: Iterable[UnitFact]) -> int:
    """Take the largest and oldest of each owner who is over his quota; return how many bytes. The worst one first."""
    policy, eligible, taken = drawing.policy, _by_owner(free), 0
    over = []
    for owner, units in _by_owner(drawing.scan.units).items():
        quota, has = policy.quota_of(owner), sum(unit.allocated_bytes for unit in units)
        if quota is not None and has > quota:
            over.append((has - quota, owner))
    for excess, owner in sorted(over, key=lambda each: (-each[0], each[1])):
        units = sorted(eligible.get(owner, ()), key=lambda unit: (-_weight(unit, drawing.now), unit.path))
        taken += _take(drawing, units, "over-quota", excess, quota=policy.quota_of(owner) or 0, excess=excess)
    return taken


def _weight(unit: UnitFact, now: float) -> float:
    """Return how much room a unit has taken for how long."""
    return unit.allocated_bytes * max(0.0, now - last_use(unit))


def _take(drawing: _DatasetPlanning, units: Iterable[UnitFact], why: str, needed: int | None, **values: Value) -> int:
    candidates = [Candidate(_item(drawing, unit, why, values), unit.allocated_bytes) for unit in units]
    return drawing.selection.add(skip_refused(candidates, drawing.ground.refused, drawing.kept), needed)


def _item(drawing: _DatasetPlanning, unit: UnitFact, why: str, values: Mapping[str, Value]) -> Item:
    policy, used = drawing.policy, last_use(unit)
    said: dict[str, Value] = {
        "owner": owner_of(unit),
        "seconds": max(0.0, drawing.now - used),
        "bytes": unit.allocated_bytes,
        "files": unit.files,
    }
    return Item(
        id=item_id(unit),
        name=unit.path,
        why=Text(key=f"cleanup.why.dataset-{why}", values=said | dict(values)),
        risk=Risk.MEDIUM,
        node=policy.node,
        owner=owner_of(unit),
        frees_bytes=unit.allocated_bytes,
        last_used_at=used,
        not_before=_not_before(drawing, unit),
        act=TrashUnit(
            root=policy.root,
            path=unit.path,
            device=unit.device,
            inode=unit.inode,
            newest=used,
            policy=policy.name,
        ),
    )


def _not_before(drawing: _DatasetPlanning, unit: UnitFact) -> float | None:
    """Return from when on a unit may go; None until its owner is told. Used since, it has to be told again."""
    if drawing.policy.notice <= 0:
        return drawing.now
    told_at = drawing.notices.get(item_id(unit))
    return told_at + drawing.policy.notice if told_at is not None and told_at >= last_use(unit) else None


def _by_owner(units: Iterable[UnitFact]) -> dict[str, list[UnitFact]]:
    found: defaultdict[str, list[UnitFact]] = defaultdict(list)
    for unit in units:
        found[owner_of(unit)].append(unit)
    return dict(found)
