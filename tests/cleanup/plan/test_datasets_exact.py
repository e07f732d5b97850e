"""Exact limits of dataset plans, to the byte and second, and their texts for each unit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.cleanup.model import KeptItem
from monitor.cleanup.plan.dataset_protection import DatasetUses
from monitor.cleanup.plan.datasets import DatasetContext, item_id
from monitor.cleanup.policy import Caps, When
from monitor.facts.datasets import ScanFact, UnitFact, UseFact
from tests.cleanup.builders import DAY, GIB, NOW, disk, kept, names, refused, scan, unit
from tests.cleanup.plan.test_datasets import NAS, plan, trash, volumes

DOWN = When(high=0.85, low=0.80)  # 10 GiB to free on the disk of these tests


def rooted(root: str, *units: UnitFact) -> ScanFact:
    return msgspec.structs.replace(scan(*units), root=root)


@pytest.mark.parametrize(("age", "goes"), [(DAY - 1, False), (DAY, True)])
def test_a_unit_is_old_enough_to_the_second(age: float, goes: bool) -> None:
    assert bool(names(plan(scan(unit(days=age / DAY)), min_age=DAY))) is goes


@pytest.mark.parametrize(("age", "why"), [(DAY, None), (DAY + 1, "scan-old"), (-DAY - 1, "scan-old")])
def test_a_scan_is_too_old_to_the_second(age: float, why: str | None) -> None:
    found = plan(scan(unit(), finished_at=NOW - age))
    assert (refused(found), found.node, found.at) == (why, "n1", NOW)
    if found.refused is not None:
        assert found.refused.values == {"root": "/mnt/share", "node": "n1", "seconds": abs(age)}


def test_a_refusal_names_all_that_is_missing() -> None:
    unseen, unknown = (
        plan(scan(), DatasetUses(unseen=("n2", "n3"))),
        plan(scan(), DatasetUses(unknown=("pods", "jobs"))),
    )
    assert unseen.refused is not None
    assert unknown.refused is not None
    assert unseen.refused.values["nodes"] == "n2, n3"
    assert unknown.refused.values["kinds"] == "pods, jobs"


@pytest.mark.parametrize(("configured", "scanned"), [("/mnt/MAX", "/mnt/MAX/"), ("/mnt/MAX/", "/mnt/MAX")])
def test_a_root_is_the_same_with_and_without_a_slash(configured: str, scanned: str) -> None:
    found = plan(rooted(scanned, unit()), root=configured)
    assert (refused(found), names(found)) == (None, ["zhang/datasets/a"])
    assert kept(plan(rooted(scanned, unit()), root=configured, pins=("/mnt/MAX/zhang/*",))) == {
        "zhang/datasets/a": "pinned"
    }


@pytest.mark.parametrize("path", ["/zhang", "/zhang/datasets/a/b", "/"])
def test_a_volume_below_a_root_that_is_everything(path: str) -> None:
    found = plan(rooted("/", unit()), volumes((path, None)), root="/", context=DatasetContext(disk()))
    assert kept(found) == {"zhang/datasets/a": "needed"}


EXPORTS = ("nas:/export/share", "[fd00::9]:/export/share", "10.0.0.1:6789,10.0.0.2:6789:/export/share")


@pytest.mark.parametrize("device", EXPORTS)
def test_what_a_server_exports_whatever_the_server_is_called(device: str) -> None:
    context = DatasetContext(msgspec.structs.replace(NAS, device=device))
    used = volumes(("/export/share/zhang/datasets/a", "10.0.0.9"))
    assert kept(plan(scan(unit()), used, context=context)) == {"zhang/datasets/a": "needed"}


def test_an_export_with_colons_in_its_path() -> None:
    context = DatasetContext(msgspec.structs.replace(NAS, device="nas:/export/a:b:/c"))
    assert kept(plan(scan(unit()), volumes(("/export/a:b:/c/zhang", "nas")), context=context))


@pytest.mark.parametrize("other", [disk(), msgspec.structs.replace(NAS, mount="/mnt/other"), None])
def test_an_export_that_is_not_where_the_root_is(other: Any) -> None:
    found = plan(
        scan(unit()), volumes(("/export/share/zhang", "nas"), ("/export", "nas")), context=DatasetContext(other)
    )
    assert names(found) == ["zhang/datasets/a"]


EVIDENCE: list[tuple[str, dict[str, Any], DatasetUses, str | None]] = [
    ("pinned", {"pinned": True}, DatasetUses(), ".keep"),
    ("pinned", {"path": "a/pin"}, DatasetUses(), "*/pin"),
    ("owner-kept", {"owner": "root"}, DatasetUses(), "root"),
    ("owner-kept", {"owner": None, "owner_uid": 7}, DatasetUses(), "7"),
    ("in-use", {"in_use_by": (UseFact(how="open", pid=7),)}, DatasetUses(), "open 7"),
    ("in-use", {"in_use_by": (UseFact(how="mount"),)}, DatasetUses(), "mount"),
    ("in-use", {}, DatasetUses(elsewhere={"zhang/datasets/a": "n2"}), "n2"),
    ("needed", {}, volumes(("/mnt/share/zhang", None)), "Pod team/p"),
    ("unknown", {"failures": 2, "errors": ("no access",)}, DatasetUses(), "no access"),
    ("unknown", {"failures": 2}, DatasetUses(), None),
]


@pytest.mark.parametrize(("protection", "facts", "uses", "detail"), EVIDENCE)
def test_by_what_a_protection_is_known(
    protection: str, facts: dict[str, Any], uses: DatasetUses, detail: str | None
) -> None:
    (found,) = plan(scan(unit(**facts)), uses, pins=("*/pin",), owners_kept=("root", "7")).kept
    path = facts.get("path", "zhang/datasets/a")
    assert found == KeptItem(name=path, protection=protection, node="n1", bytes=10 * GIB, detail=detail)


def test_a_purge_is_owed_now_and_takes_nothing_from_the_cap() -> None:
    found = plan(scan(unit()), context=DatasetContext(NAS, (trash(5, 8),)), caps=Caps(bytes=10 * GIB))
    assert (names(found), found.capped_by) == (["/mnt/share: trash", "zhang/datasets/a"], None)
    item = found.items[0]
    assert (item.id, item.node, item.not_before) == ("purge/n1//mnt/share", "n1", NOW)


def test_why_a_unit_goes() -> None:
    (item,) = plan(scan(unit())).items
    assert item.why.values == {"owner": "zhang", "seconds": 100 * DAY, "bytes": 10 * GIB, "files": 7}
    assert (item.node, item.last_used_at, item.not_before) == ("n1", NOW - 100 * DAY, NOW)


def test_of_what_was_used_just_now_the_size_does_not_count() -> None:
    fresh, older = unit("fresh", size=10, days=0), unit("older", size=1, days=5 / DAY)
    found = plan(scan(fresh, older), min_age=0.0, quota=0)
    assert names(found) == ["older", "fresh"]
    assert [item.why.values["seconds"] for item in found.items] == [5.0, 0.0]
    assert [item.why.values["quota"] for item in found.items] == [0, 0]


@pytest.mark.parametrize(
    ("notice", "notified_at", "expect"),
    [
        (0.0, None, NOW),
        (1.0, None, None),
        (1.0, NOW - 5, NOW - 4),
        (DAY, NOW - 100 * DAY, NOW - 99 * DAY),  # notified at the time of the last use
        (DAY, NOW - 100 * DAY - 1, None),
    ],
)
def test_a_notice_to_the_second(notice: float, notified_at: float | None, expect: float | None) -> None:
    given = unit(days=100)
    notices = {} if notified_at is None else {item_id(given): notified_at}
    assert plan(scan(given), notices=notices, notice=notice).items[0].not_before == expect


@pytest.mark.parametrize(("missing", "expect"), [(0, ["a"]), (1, ["a", "b"])])
def test_down_to_the_mark_to_the_byte(missing: int, expect: list[str]) -> None:
    first = unit("a", days=300, allocated_bytes=10 * GIB - missing)
    assert names(plan(scan(first, unit("b", days=200)), when=DOWN)) == expect
    # The same for a unit over quota.
    over = msgspec.structs.replace(first, owner="li", owner_uid=2)
    assert names(plan(scan(over, unit("b", days=200)), when=DOWN, quotas={"li": 0})) == expect


def test_only_those_who_have_a_quota_lose_something_for_one() -> None:
    owned = [unit("l/a", owner="li", owner_uid=2), unit("l/b", owner="li", owner_uid=2, days=200)]
    found = plan(scan(unit("z/a", size=90, days=900), *owned), quotas={"li": 15 * GIB})
    assert names(found) == ["l/b"]
    assert {key: found.items[0].why.values[key] for key in ("quota", "excess")} == {
        "quota": 15 * GIB,
        "excess": 5 * GIB,
    }


def test_the_quota_of_ones_own_counts_and_not_that_of_all() -> None:
    owned = unit("l/a", size=28, owner="li", owner_uid=2)
    assert names(plan(scan(owned), quota=20 * GIB, quotas={"li": 28 * GIB})) == []
    assert names(plan(scan(owned), quota=20 * GIB, quotas={"li": 28 * GIB - 1})) == ["l/a"]


def test_one_over_his_quota_of_whom_everything_is_protected() -> None:
    found = plan(scan(unit(size=50, pinned=True), unit("l/a", owner="li", owner_uid=2)), quota=9 * GIB)
    assert (names(found), kept(found)) == (["l/a"], {"zhang/datasets/a": "pinned"})
