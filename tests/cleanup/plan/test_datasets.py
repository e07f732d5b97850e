"""Dataset plans: units that go, protections, notices and quotas."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.cleanup.model import CleanupPlan
from monitor.cleanup.plan.dataset_protection import DatasetUses
from monitor.cleanup.plan.datasets import DatasetContext, item_id, plan_datasets
from monitor.cleanup.plan.references import VolumeUse
from monitor.cleanup.policy import Caps, DatasetPolicy, When
from monitor.facts.actions import PurgeTrash, TrashUnit
from monitor.facts.datasets import ScanFact, TrashFact, UseFact
from tests.cleanup.builders import DAY, GIB, NOW, disk, kept, names, refused, scan, unit

NAS = disk(mount="/mnt/share", device="nas:/export/share", fstype="nfs4", roles=("nas",))
UNUSED, ON_NAS = DatasetUses(), DatasetContext(disk=NAS)


def make(**settings: Any) -> DatasetPolicy:
    fields: dict[str, Any] = {"name": "old", "root": "/mnt/share", "node": "n1", "notice": 0.0}
    return DatasetPolicy(**(fields | settings))


def plan(
    given: ScanFact,
    uses: DatasetUses = UNUSED,
    notices: dict[str, float] | None = None,
    context: DatasetContext = ON_NAS,
    **settings: Any,
) -> CleanupPlan:
    return plan_datasets(make(**settings), given, uses, notices or {}, NOW, context)


def volumes(*given: tuple[str, str | None]) -> DatasetUses:
    return DatasetUses(volumes=tuple(VolumeUse("Pod team/p", path, server) for path, server in given))


SPARED: list[tuple[str, dict[str, Any], dict[str, Any], DatasetUses, str]] = [
    ("a .keep file", {"pinned": True}, {}, DatasetUses(), "pinned"),
    ("a pattern below the root", {}, {"pins": ("*/datasets/a",)}, DatasetUses(), "pinned"),
    ("a pattern of the whole path", {}, {"pins": ("/mnt/share/zhang/*",)}, DatasetUses(), "pinned"),
    ("an owner", {}, {"owners_kept": ("zh*",)}, DatasetUses(), "owner-kept"),
    ("an owner by number who has a name", {}, {"owners_kept": ("1001",)}, DatasetUses(), "owner-kept"),
    ("an owner by number", {"owner": None}, {"owners_kept": ("1001",)}, DatasetUses(), "owner-kept"),
    ("open here", {"in_use_by": (UseFact(how="open", pid=7),)}, {}, DatasetUses(), "in-use"),
    ("unknown use", {"in_use_by": (UseFact(how="unknown"),)}, {}, DatasetUses(), "in-use"),
    ("not checked", {"in_use_by": None}, {}, DatasetUses(), "unknown"),
    ("open elsewhere", {}, {}, DatasetUses(elsewhere={"zhang/datasets/a": "n2"}), "in-use"),
    ("not read to the end", {"failures": 1}, {}, DatasetUses(), "unknown"),
    ("read lately", {"newest_atime": NOW - DAY}, {}, DatasetUses(), "too-young"),
    ("written lately", {"newest_mtime": NOW - DAY}, {}, DatasetUses(), "too-young"),
    ("unpacked lately", {"newest_ctime": NOW - DAY}, {}, DatasetUses(), "too-young"),
    ("a volume of a pod", {}, {}, volumes(("/mnt/share/zhang/datasets/a", None)), "needed"),
    ("a volume inside it", {}, {}, volumes(("/mnt/share/zhang/datasets/a/b/c/", None)), "needed"),
    ("a volume around it", {}, {}, volumes(("/mnt/share/zhang", None)), "needed"),
    ("the whole root", {}, {}, volumes(("/mnt/share", None)), "needed"),
    ("all above the root", {}, {}, volumes(("/", None)), "needed"),
    ("as the server exports it", {}, {}, volumes(("/export/share/zhang/datasets/a", "10.0.0.9")), "needed"),
    ("the whole export", {}, {}, volumes(("/export", "nas")), "needed"),
    ("a path with a slash too many", {}, {}, volumes(("//mnt/share/zhang", None)), "needed"),
    ("a roundabout path", {}, {}, volumes(("/mnt//share/li/../zhang/datasets", None)), "needed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "settings", "uses", "protection"), [r[1:] for r in SPARED], ids=[r[0] for r in SPARED]
)
def test_what_keeps_a_unit(facts: dict[str, Any], settings: dict[str, Any], uses: DatasetUses, protection: str) -> None:
    found = plan(scan(unit(**facts)), uses, **settings)
    assert (names(found), list(kept(found).values())) == ([], [protection])


@pytest.mark.parametrize(
    "uses",
    [
        volumes(("/mnt/share/zhang/datasets/ab", None)),
        volumes(("/mnt/share/li", None)),
        volumes(("/zhang/datasets/a", None)),
        volumes(("/Xmnt/share/zhang", None)),
        volumes(("/export/share/zhang/datasets/a", None)),  # a local directory with the same path
        volumes(("/mnt/share/zhang/datasets/a", "nas")),
        DatasetUses(elsewhere={"zhang/datasets/b": "n2"}),
    ],
)
def test_what_does_not(uses: DatasetUses) -> None:
    assert names(plan(scan(unit()), uses)) == ["zhang/datasets/a"]


def test_a_pod_that_mounts_the_whole_root_can_be_ignored() -> None:
    everything = volumes(("/mnt/share", None), ("/export", "nas"))
    assert names(plan(scan(unit()), everything, whole_root_is_use=False)) == ["zhang/datasets/a"]
    more = DatasetUses(volumes=(*everything.volumes, VolumeUse("Job t/j", "/mnt/share/zhang")))
    assert kept(plan(scan(unit()), more, whole_root_is_use=False)) == {"zhang/datasets/a": "needed"}


def test_names_that_are_no_text() -> None:
    odd = unit("zhang/datasets/a%0Ab%FF")
    found = plan(scan(odd), volumes(("/mnt/share/zhang/datasets/a\nb\udcff", None)))
    assert kept(found) == {"zhang/datasets/a%0Ab%FF": "needed"}


def test_the_action_of_an_item() -> None:
    given = unit()
    item = plan(scan(given)).items[0]
    assert item.act == TrashUnit(
        root="/mnt/share", path=given.path, device=5, inode=given.inode, newest=NOW - 100 * DAY, policy="old"
    )
    assert (item.owner, item.frees_bytes, item.id) == ("zhang", 10 * GIB, item_id(given))


REFUSED: list[tuple[str, ScanFact, DatasetUses, DatasetContext, dict[str, Any]]] = [
    ("no-atime", scan(unit(), atime_usable=False), DatasetUses(), DatasetContext(), {}),
    ("atime-unknown", scan(unit(), atime_usable=None), DatasetUses(), DatasetContext(), {}),
    ("read-only", scan(unit(), read_only=True), DatasetUses(), DatasetContext(), {}),
    ("scan-old", scan(unit(), finished_at=NOW - 2 * DAY), DatasetUses(), DatasetContext(), {}),
    ("scan-old", scan(unit(), finished_at=NOW + 2 * DAY), DatasetUses(), DatasetContext(), {}),
    ("nodes-unseen", scan(unit()), DatasetUses(unseen=("n2",)), DatasetContext(), {}),
    ("needs-unknown", scan(unit()), DatasetUses(unknown=("pods",)), DatasetContext(), {}),
    ("disk-unknown", scan(unit()), DatasetUses(), DatasetContext(), {"when": When(high=0.9, low=0.8)}),
    ("other-root", scan(unit()), DatasetUses(), DatasetContext(), {"root": "/mnt/other"}),
]  # fmt: skip


@pytest.mark.parametrize(("why", "given", "uses", "context", "settings"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_not_known_is_no_permission(
    why: str, given: ScanFact, uses: DatasetUses, context: DatasetContext, settings: dict[str, Any]
) -> None:
    assert refused(plan(given, uses, context=context, **settings)) == why


def test_without_atime_if_configured() -> None:
    assert names(plan(scan(unit(newest_atime=None), atime_usable=False), without_atime=True)) == ["zhang/datasets/a"]


def test_the_owner_is_notified_in_advance_and_again_if_the_unit_was_used_since() -> None:
    given = unit(days=100)
    key, week = item_id(given), 7 * DAY
    cases = ((None, None), (NOW - 2 * DAY, NOW + 5 * DAY), (NOW - 8 * DAY, NOW - DAY), (NOW - 101 * DAY, None))
    for notified_at, expect in cases:
        notices = {} if notified_at is None else {key: notified_at}
        (item,) = plan(scan(given), notices=notices, notice=week).items
        assert item.not_before == expect, notified_at
    another = msgspec.structs.replace(given, inode=1)
    assert plan(scan(another), notices={key: NOW - 8 * DAY}, notice=week).items[0].not_before is None


def test_the_longest_unused_first_down_to_the_mark() -> None:
    units = [unit(f"u{n}", size=4, days=100 + n) for n in range(9)]
    found = plan(scan(*units), when=When(high=0.85, low=0.80))
    assert (names(found), found.needed_bytes) == (["u8", "u7", "u6"], 10 * GIB)


def trash(size: float, days: float, state: str = "trashed") -> TrashFact:
    return TrashFact(
        id=f"t{days}", root="/mnt/share", path="x", kind="dir", device=5, inode=9, owner_uid=1, files=1, policy="old",
        allocated_bytes=round(size * GIB), trashed_at=NOW - days * DAY, state=state,
    )  # fmt: skip


def test_what_is_in_the_trash_will_be_free_and_is_not_taken_twice() -> None:
    units = [unit(f"u{n}", size=4, days=100 + n) for n in range(9)]
    context = DatasetContext(NAS, (trash(5, 1), trash(1, 2), trash(99, 3, "empty")))
    assert names(plan(scan(*units), context=context, when=When(high=0.85, low=0.80))) == ["u8"]


def test_what_was_in_the_trash_for_long_enough_is_purged_first() -> None:
    context = DatasetContext(NAS, (trash(5, 8), trash(3, 7), trash(1, 6)))
    found = plan(scan(unit()), context=context, when=When(high=0.99, low=0.95))
    assert names(found) == ["/mnt/share: trash"]
    assert found.items[0].act == PurgeTrash(root="/mnt/share", older_than_seconds=7 * DAY)
    assert (found.items[0].frees_bytes, found.items[0].risk) == (8 * GIB, "high")
    assert names(plan(scan(), context=DatasetContext(NAS, (trash(1, 6),)))) == []


def test_quotas_the_worst_owner_first_and_of_his_the_largest_and_oldest() -> None:
    units = [
        unit("z/big", size=30, days=70), unit("z/old", size=5, days=300), unit("z/new", size=50, days=1),
        unit("l/a", size=20, days=90, owner="li", owner_uid=2), unit("l/b", size=8, days=500, owner="li", owner_uid=2),
        unit("w/a", size=20, days=900, owner="wang", owner_uid=3),
    ]  # fmt: skip
    found = plan(scan(*units), quota=20 * GIB, quotas={"li": 25 * GIB})
    assert names(found) == ["z/big", "z/old", "l/b"]  # zhang is 65 over, li 3
    assert kept(found) == {"z/new": "too-young"}
    more = plan(scan(*units), quota=20 * GIB, quotas={"li": 25 * GIB}, when=When(high=0.85, low=0.40))
    assert names(more) == ["z/big", "z/old", "l/b", "w/a"]  # the quotas free 43 of the 50 GiB that the disk needs


def test_caps_hold_over_quota_and_disk_together() -> None:
    units = [unit(f"u{n}", size=4, days=100 + n) for n in range(9)]
    found = plan(scan(*units), quota=GIB, when=When(high=0.85, low=0.1), caps=Caps(items=3))
    assert (len(found.items), found.capped_by) == (3, "items")
    found = plan(scan(*units), quota=GIB, caps=Caps(bytes=9 * GIB))
    assert (len(found.items), found.capped_by) == (2, "bytes")


def test_what_was_refused_lately_does_not_stop_the_others() -> None:
    first, second = unit("a", days=200), unit("b", days=100)
    context = DatasetContext(NAS, refused=frozenset({item_id(first)}))
    found = plan(scan(first, second), context=context, when=When(high=0.85, low=0.80))
    assert (names(found), kept(found)) == (["b"], {"a": "refused-lately"})
