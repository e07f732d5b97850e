"""Properties of dataset plans in random worlds: no plan contains a protected unit, and none goes too far.

The protections are implemented a second time: paths are tuples of names, and a prefix is a parent directory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from monitor.cleanup.model import CleanupPlan
from monitor.cleanup.plan.dataset_protection import DatasetUses
from monitor.cleanup.plan.datasets import DatasetContext, plan_datasets
from monitor.cleanup.plan.references import VolumeUse
from monitor.cleanup.policy import Caps, DatasetPolicy, When
from monitor.cleanup.schedule import is_ready
from monitor.facts.actions import TrashUnit
from monitor.facts.datasets import ScanFact, TrashFact, UnitFact, UseFact
from monitor.facts.storage import DiskFact

NOW = 1_763_260_000.0
DAY = 86400.0
ROOT = ("mnt", "share")
EXPORT = ("export", "vol")
OWNERS = ("zhang", "li", None)


@dataclass(frozen=True)
class Unit:
    path: tuple[str, ...]
    owner: int
    size: int
    days: tuple[float, float, float]  # since atime, mtime, ctime
    pinned: bool
    open_by: int | None  # None: unknown
    failures: int
    notified: float | None  # days ago


@dataclass(frozen=True)
class World:
    units: tuple[Unit, ...]
    volumes: tuple[tuple[tuple[str, ...], bool], ...]  # full path, and whether it is exported by a server
    elsewhere: tuple[tuple[str, ...], ...]
    pin: str | None
    owner_kept: str | None
    min_age: float
    notice: float
    whole_root_is_use: bool
    quota: int | None
    low: float | None
    used: int
    trash: tuple[tuple[int, float], ...]  # size, days ago
    caps: Caps


AGES = (300.0, 200.0, 100.0, 50.0, 400.0, 500.0, 11.0, 10.0, 9.0, 0.0, -1.0)


def rarely(rng: Random) -> bool:
    """Protections are rare, so that most worlds have something to remove."""
    return rng.random() < 0.08


def make_unit(rng: Random, path: tuple[str, ...]) -> Unit:
    old = not rarely(rng)
    days = [rng.choice(AGES[:6] if old else AGES) for _ in range(3)]
    return Unit(
        path, rng.randrange(3), rng.randint(0, 300), (days[0], days[1], days[2]), rarely(rng),
        None if rarely(rng) else int(rarely(rng)), int(rarely(rng)), rng.choice((None, *AGES)),
    )  # fmt: skip


def make_volume(rng: Random) -> tuple[tuple[str, ...], bool]:
    start = rng.choice((ROOT, EXPORT, ROOT, EXPORT, ("mnt", "shared"), ("mnt",), ()))
    return (*start, *rng.choices("ab", k=rng.randrange(4))), rng.random() < 0.5


def make_world(rng: Random) -> World:
    paths = (("a", "a"), ("a", "b"), ("b", "a"), ("b", "b"))
    return World(
        tuple(make_unit(rng, path) for path in paths if not rarely(rng)),
        (make_volume(rng),) if rng.random() < 0.4 else (),
        (rng.choice(paths),) if rarely(rng) else (),
        rng.choice(("a/*", "/mnt/share/b/b")) if rarely(rng) else None,
        rng.choice(("zh*", "1002")) if rarely(rng) else None,
        rng.choice((0.0, 10.0)),
        rng.choice((0.0, 5.0)),
        rng.random() < 0.5,
        rng.randint(0, 400) if rng.random() < 0.4 else None,
        rng.random() if rng.random() < 0.6 else None,
        rng.randint(0, 1000),
        tuple((rng.randint(0, 100), rng.choice(AGES)) for _ in range(rng.randrange(3))),
        Caps(items=rng.randint(1, 6), bytes=rng.randint(50, 900) if rarely(rng) else None),
    )


# One seed per world: cheap to draw, and often with something to remove.
worlds = st.integers(0, 2**64).map(lambda seed: make_world(Random(seed)))


def made(world: World) -> CleanupPlan:
    facts = tuple(
        UnitFact(
            root="/mnt/share", path="/".join(unit.path), kind="dir", device=1, inode=number,
            owner_uid=1000 + unit.owner, owner=OWNERS[unit.owner],
            allocated_bytes=unit.size, apparent_bytes=0, files=1, pinned=unit.pinned,
            newest_atime=NOW - unit.days[0] * DAY, newest_mtime=NOW - unit.days[1] * DAY,
            newest_ctime=NOW - unit.days[2] * DAY, failures=unit.failures,
            in_use_by=None if unit.open_by is None else tuple(UseFact(how="open") for _ in range(unit.open_by)),
        )
        for number, unit in enumerate(world.units)
    )  # fmt: skip
    policy = DatasetPolicy(
        name="p", root="/mnt/share", node="n1", min_age=world.min_age * DAY, notice=world.notice * DAY,
        pins=(world.pin,) if world.pin else (), owners_kept=(world.owner_kept,) if world.owner_kept else (),
        whole_root_is_use=world.whole_root_is_use, quota=world.quota, caps=world.caps, when=When(low=world.low),
    )  # fmt: skip
    volumes = tuple(VolumeUse("x", "/" + "/".join(path), "nas" if out else None) for path, out in world.volumes)
    uses = DatasetUses(volumes, {"/".join(path): "n2" for path in world.elsewhere})
    scan = ScanFact(root="/mnt/share", started_at=NOW, finished_at=NOW, units=facts, atime_usable=True)
    notices = {
        f"dataset/1:{number}/{'/'.join(unit.path)}": NOW - unit.notified * DAY
        for number, unit in enumerate(world.units)
        if unit.notified is not None
    }
    disk = DiskFact(
        mount="/mnt/share", device="nas:/export/vol", fstype="nfs", used_bytes=world.used,
        available_bytes=1000 - world.used,
    )  # fmt: skip
    trash = tuple(
        TrashFact(
            id=str(number), root="/mnt/share", path="x", kind="dir", device=1, inode=9, owner_uid=1, files=1,
            policy="p", state="trashed", allocated_bytes=size, trashed_at=NOW - days * DAY,
        )
        for number, (size, days) in enumerate(world.trash)
    )  # fmt: skip
    return plan_datasets(policy, scan, uses, notices, NOW, DatasetContext(disk, trash))


def overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether one path contains the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def is_protected(unit: Unit, world: World) -> bool:
    """The required protections of a unit."""
    if unit.pinned or unit.open_by != 0 or unit.failures or unit.path in world.elsewhere:
        return True
    if min(unit.days) < world.min_age:
        return True
    if world.pin == "a/*" and unit.path[0] == "a":
        return True
    if world.pin == "/mnt/share/b/b" and unit.path == ("b", "b"):
        return True
    if {"zh*": 0, "1002": 2}.get(world.owner_kept or "") == unit.owner:
        return True
    for path, exported in world.volumes:
        root = EXPORT if exported else ROOT
        above = len(path) <= len(root)
        if overlap(path, (*root, *unit.path)) and not (above and not world.whole_root_is_use):
            return True
    return False


def moved(plan: CleanupPlan, world: World) -> list[Unit]:
    return [world.units[item.act.inode] for item in plan.items if isinstance(item.act, TrashUnit)]


@settings(max_examples=3000, deadline=None)
@given(worlds)
def test_no_plan_has_a_unit_that_a_protection_covers_or_goes_too_far(world: World) -> None:
    plan = made(world)
    gone = moved(plan, world)
    event(f"{len(gone)} units go")
    assert plan.refused is None
    assert [unit for unit in gone if is_protected(unit, world)] == []
    assert len(set(gone)) == len(gone)
    assert len(plan.items) <= world.caps.items
    assert world.caps.bytes is None or sum(unit.size for unit in gone) <= world.caps.bytes
    if world.quota is None and plan.needed_bytes is not None:
        trash = sum(size for size, _ in world.trash)
        assert not gone or sum(unit.size for unit in gone[:-1]) < plan.needed_bytes - trash
    if world.quota is not None and plan.needed_bytes is None:
        stays_at_the_quota(gone, world, world.quota)


def stays_at_the_quota(gone: list[Unit], world: World, quota: int) -> None:
    """An owner loses at most one unit past the quota, and none if not over quota."""
    for owner in range(3):
        used = sum(unit.size for unit in world.units if unit.owner == owner)
        lost = [unit for unit in gone if unit.owner == owner]
        assert not lost or used - sum(unit.size for unit in lost[:-1]) > quota


@settings(max_examples=1500, deadline=None)
@given(worlds)
def test_nothing_goes_whose_owner_was_not_notified_in_time(world: World) -> None:
    for item in made(world).items:
        if isinstance(item.act, TrashUnit) and is_ready(item, NOW) and world.notice:
            unit = world.units[item.act.inode]
            assert unit.notified is not None
            assert min(unit.days) >= unit.notified >= world.notice  # notified long enough ago, and not used since


@settings(max_examples=1000, deadline=None)
@given(worlds)
def test_every_unit_that_nothing_covers_goes_where_nothing_stops_it(world: World) -> None:
    free = replace(world, low=None, quota=None, caps=Caps(items=99))
    gone = moved(made(free), free)
    assert set(gone) == {unit for unit in free.units if not is_protected(unit, free)}
    assert [min(unit.days) for unit in gone] == sorted((min(unit.days) for unit in gone), reverse=True)
