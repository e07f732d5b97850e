"""Actions on datasets: scan, trash, restore and purge, only below allowed roots."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from monitor.agent.actions.datasets import DatasetActions
from monitor.agent.actions.limits import PurgeLimits
from monitor.agent.actions.outcome import ActionContext, ActionOutcome
from monitor.agent.datasets.mounts import FsLocation
from monitor.agent.datasets.root_scan import FindUses
from monitor.agent.datasets.trash import Trash
from monitor.agent.datasets.trash_age import TrashAges
from monitor.agent.journal import ActionJournal
from monitor.facts.actions import ActionState, PurgeTrash, RestoreUnit, ScanDatasets, TrashUnit
from monitor.facts.datasets import PurgeFact, ScanFact, TrashFact, UnitFact, UseFact
from tests.agent.actions.requests_sent import NO_LIMITS
from tests.support.filesystems import node_paths

T = TypeVar("T")
SIZE = 50_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for user in ("zhang", "li"):
        for number in range(2):
            unit = tmp_path / "share" / user / "datasets" / f"d{number}"
            unit.mkdir(parents=True)
            (unit / "data").write_bytes(b"x" * SIZE)
    return tmp_path / "share"


@pytest.fixture
def actions(root: Path) -> DatasetActions:
    return make_actions(root, no_uses)


def make_actions(root: Path, find_uses: FindUses) -> DatasetActions:
    ages = TrashAges(str(root.parent / "state"), "boot-1")
    journal = ActionJournal(str(root.parent / "journal"))
    return DatasetActions((str(root),), node_paths(), journal, find_uses, ages, PurgeLimits(NO_LIMITS))


def no_uses(_locations: Sequence[FsLocation]) -> Mapping[FsLocation, tuple[UseFact, ...]]:
    return {}


def all_in_use(locations: Sequence[FsLocation]) -> Mapping[FsLocation, tuple[UseFact, ...]]:
    return dict.fromkeys(locations, (UseFact(how="open", pid=7),))


def result(outcome: ActionOutcome, name: str, kind: type[T]) -> T:
    assert outcome.state is ActionState.DONE, outcome
    return msgspec.json.decode(outcome.result[name], type=kind)


def scan(actions: DatasetActions, root: Path, context: ActionContext | None = None) -> dict[str, UnitFact]:
    outcome = actions.scan(ScanDatasets(root=str(root), pattern="*/datasets/*"), context or ActionContext())
    return {unit.path: unit for unit in result(outcome, "scan", ScanFact).units}


def trash(actions: DatasetActions, unit: UnitFact, newest: float | None = None) -> ActionOutcome:
    times = (unit.newest_atime or 0.0, unit.newest_mtime, unit.newest_ctime)
    action = TrashUnit(
        root=unit.root, path=unit.path, device=unit.device, inode=unit.inode,
        newest=max(times) if newest is None else newest, policy="p",
    )  # fmt: skip
    return actions.trash(action, ActionContext())


def test_from_scan_to_purge(actions: DatasetActions, root: Path) -> None:
    context = ActionContext()
    units = scan(actions, root, context)
    assert sorted(units) == [f"{user}/datasets/d{number}" for user in ("li", "zhang") for number in range(2)]
    assert context.progress["entries"] >= 8
    first = result(trash(actions, units["zhang/datasets/d0"]), "trash", TrashFact)
    assert not (root / "zhang/datasets/d0").exists()
    again = actions.scan(ScanDatasets(root=str(root), pattern="*/datasets/*"), ActionContext())
    assert [entry.id for entry in result(again, "trash", tuple[TrashFact, ...])] == [first.id]
    restored = actions.restore(RestoreUnit(root=str(root), trash_id=first.id), ActionContext())
    assert (restored.code, (root / "zhang/datasets/d0/data").stat().st_size) == ("restored", SIZE)
    units = scan(actions, root)
    for name in ("zhang/datasets/d0", "li/datasets/d1"):
        assert trash(actions, units[name]).code == "trashed"
    young = actions.purge(PurgeTrash(root=str(root), older_than_seconds=3600.0), ActionContext())
    assert (young.code, young.freed_bytes, young.result["purges"]) == ("purged", 0, msgspec.Raw(b"[]"))
    context = ActionContext()
    purged = actions.purge(PurgeTrash(root=str(root), older_than_seconds=0.0), context)
    assert (purged.state, purged.code) == (ActionState.DONE, "purged")
    assert (purged.freed_bytes or 0) >= 2 * SIZE
    assert [fact.finished for fact in result(purged, "purges", list[PurgeFact])] == [True, True]
    assert context.progress == {"units": 2, "of": 2, "deleted": 4}
    assert sorted(scan(actions, root)) == ["li/datasets/d0", "zhang/datasets/d1"]


def test_files_are_units_if_asked_for(actions: DatasetActions, root: Path) -> None:
    outcome = actions.scan(ScanDatasets(root=str(root), pattern="*/datasets/*/*", files=True), ActionContext())
    units = result(outcome, "scan", ScanFact).units
    assert {(unit.kind, unit.apparent_bytes) for unit in units} == {("file", SIZE)}
    assert len(units) == 4


def test_what_is_not_as_planned_stays(actions: DatasetActions, root: Path) -> None:
    unit = scan(actions, root)["li/datasets/d0"]
    changed = trash(actions, unit, newest=1.0)
    assert (changed.state, changed.code) == (ActionState.REFUSED, "changed")
    (root / "li/datasets/d0/.keep").touch()
    assert trash(actions, unit, newest=time.time() + 60).code == "pinned"
    (root / "li/datasets/d0/.keep").unlink()
    used = make_actions(root, all_in_use)
    assert scan(used, root)["li/datasets/d0"].in_use_by == (UseFact(how="open", pid=7),)
    assert trash(used, unit, newest=time.time() + 60).code == "in-use"
    assert (root / "li/datasets/d0/data").exists()
    assert trash(actions, unit, newest=time.time() + 60).code == "trashed"


@pytest.mark.parametrize(
    ("name", "path", "code"),
    [("another", "/etc", "not-a-root"), ("above", "..", "not-a-root"), ("inside", "li", "not-a-root")],
)
def test_only_roots_that_are_allowed(actions: DatasetActions, root: Path, name: str, path: str, code: str) -> None:
    elsewhere = os.path.normpath(root / path)
    outcomes = [
        actions.scan(ScanDatasets(root=elsewhere, pattern="*"), ActionContext()),
        actions.trash(TrashUnit(root=elsewhere, path="x", device=1, inode=1, newest=0.0, policy="p"), ActionContext()),
        actions.restore(RestoreUnit(root=elsewhere, trash_id="a" * 32), ActionContext()),
        actions.purge(PurgeTrash(root=elsewhere, older_than_seconds=0.0), ActionContext()),
    ]
    assert [(outcome.state, outcome.code) for outcome in outcomes] == [(ActionState.REFUSED, code)] * 4


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a//b", "**"])
def test_a_pattern_that_leads_out(actions: DatasetActions, root: Path, pattern: str) -> None:
    outcome = actions.scan(ScanDatasets(root=str(root), pattern=pattern), ActionContext())
    assert (outcome.state, outcome.code) == (ActionState.REFUSED, "malformed")


def test_what_is_not_in_the_trash(actions: DatasetActions, root: Path) -> None:
    for entry_id in ("a" * 32, "../../etc"):
        assert actions.restore(RestoreUnit(root=str(root), trash_id=entry_id), ActionContext()).code == "not-in-trash"


def test_stopping(actions: DatasetActions, root: Path) -> None:
    trash(actions, scan(actions, root)["li/datasets/d0"])
    context = ActionContext()
    context.stop.set()
    scanned = actions.scan(ScanDatasets(root=str(root), pattern="*/datasets/*"), context)
    assert (scanned.state, scanned.code) == (ActionState.DONE, "stopped")
    assert result(scanned, "scan", ScanFact).stopped
    purged = actions.purge(PurgeTrash(root=str(root), older_than_seconds=0.0), context)
    assert (purged.code, purged.freed_bytes) == ("stopped", 0)
    assert actions.purge(PurgeTrash(root=str(root), older_than_seconds=0.0), ActionContext()).code == "purged"


def test_what_was_begun_is_brought_to_an_end(
    actions: DatasetActions, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = scan(actions, root)["zhang/datasets/d1"]

    class KilledError(BaseException):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(Trash, "_check_moved", killed)
        with pytest.raises(KilledError):
            trash(actions, unit)
    journal = ActionJournal(str(root.parent / "journal"))
    assert len(journal.open_intents()) == 1
    actions.recover(ActionContext())
    assert journal.open_intents() == ()
    (entry,) = result(
        actions.scan(ScanDatasets(root=str(root), pattern="*/datasets/*"), ActionContext()),
        "trash",
        tuple[TrashFact, ...],
    )
    assert (entry.path, entry.state) == ("zhang/datasets/d1", "trashed")


def test_a_root_that_is_not_there_is_no_reason_not_to_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_actions(tmp_path / "none", no_uses).recover(ActionContext())
    assert "cannot complete interrupted operations" in caplog.text
