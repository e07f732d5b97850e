"""Killed at any step and restarted: operations are completed from the journal, and only planned units are touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.facts.datasets import TrashFact
from tests.agent.datasets.root_fixture import NOW, RootFixture, fingerprint, planned

FILES = 6_000
STEPS = 18  # one more than the number of disk changes of the longest operation

# Purges one entry and prints its progress; the test kills it in the middle.
PURGE = """
import sys
from pathlib import Path
from tests.agent.datasets.root_fixture import RootFixture, NOW
with RootFixture(Path(sys.argv[1])).trash() as trash:
    trash.purge(sys.argv[2], NOW, lambda count: print(count, flush=True))
"""


class KilledError(BaseException):
    """Simulates kill -9: no further change on the disk, and no exception handler that catches it."""


def killed_at(operation: Callable[[], object], step: int) -> bool:
    """Run an operation that is killed right before its n-th change on the disk. Return whether it got that far."""
    left = step

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                raise KilledError
            return real(*arguments, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("mkdir", "rename", "link", "unlink", "rmdir", "fsync", "write"):
            patch.setattr(os, name, counted(getattr(os, name)))
        try:
            operation()
        except KilledError:
            return True
    return False


@pytest.fixture
def neighbours(fixture: RootFixture) -> Iterator[Path]:
    """Units outside the plan, which must be unchanged after the test."""
    fixture.make_unit("b")
    fixture.make_unit("a", "li")
    before = [fingerprint(fixture.unit("b")), fingerprint(fixture.unit("a", "li"))]
    yield fixture.root
    assert [fingerprint(fixture.unit("b")), fingerprint(fixture.unit("a", "li"))] == before


def put(fixture: RootFixture) -> TrashFact:
    with fixture.trash() as trash:
        return trash.put(planned(fixture.scanned()), "p", NOW)


def test_in_the_middle_of_a_purge(fixture: RootFixture, neighbours: Path) -> None:
    unit = fixture.make_unit()
    (unit / "link").symlink_to(fixture.canary)
    for number in range(FILES // 200):
        (unit / f"in/{number}").mkdir()
        for file in range(200):
            os.close(os.open(unit / f"in/{number}/{file}", os.O_CREAT | os.O_WRONLY))
    entry = put(fixture)
    kills = 0
    for wait_for in (600, 1200):
        command = [sys.executable, "-c", PURGE, str(fixture.base), entry.id]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if int(line) > wait_for:
                    break
            process.kill()
        kills += process.returncode == -9
    assert kills == 2
    left = sum(len(files) for _, _, files in os.walk(fixture.root / ".gpuwarden-trash" / entry.id / "purging"))
    assert 0 < left < FILES, "it was killed in the middle"
    assert [line.action for line in fixture.journal.open_intents()] == ["dataset.purge"] * 2
    with fixture.trash() as trash:
        assert [entry.state for entry in trash.entries()] == ["purging"]
        assert len(trash.recover()) == 2
        assert trash.entries() == ()
    assert fixture.journal.open_intents() == ()
    assert [line.outcome for line in fixture.journal.lines()][-2:] == ["purged", "gone"]


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_at_any_step_of_a_move(fixture: RootFixture, neighbours: Path, step: int) -> None:
    unit = fixture.make_unit()
    plan = planned(fixture.scanned())
    with fixture.trash() as trash:
        killed = killed_at(lambda: trash.put(plan, "p", NOW), step)
    assert killed == (step < STEPS), "all steps are covered, and the last number is beyond them"
    with fixture.trash() as trash:
        trash.recover()
        entries = trash.entries()
        assert trash.recover() == ()
    # The unit is in exactly one place and complete.
    assert unit.exists() == (not entries)
    trash_directory = fixture.root / ".gpuwarden-trash"
    current = unit if not entries else trash_directory / entries[0].id / "unit"
    assert sorted(path.name for path in current.rglob("*")) == ["deep", "f", "f", "f", "in"]
    assert len(os.listdir(trash_directory) if trash_directory.exists() else []) == len(entries), (
        "no incomplete entry is left in the trash"
    )


@pytest.mark.parametrize("kind", ["dir", "file"])
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_at_any_step_of_a_restore(fixture: RootFixture, neighbours: Path, kind: str, step: int) -> None:
    unit = fixture.make_unit()
    scan = fixture.scan() if kind == "dir" else fixture.scan("zhang/datasets/a/f", "file")
    with fixture.trash() as trash:
        entry = trash.put(planned(next(fact for fact in scan.units if "zhang/datasets/a" in fact.path)), "p", NOW)
        assert not (unit / "f").exists()
        killed = killed_at(lambda: trash.restore(entry.id), step)
    assert not killed or step < STEPS
    with fixture.trash() as trash:
        trash.recover()
        assert fixture.journal.open_intents() == ()
        for left in trash.entries():
            trash.restore(left.id)
        assert trash.entries() == ()
    assert (unit / "f").read_text() == "some content\n"
    assert (unit / "f").stat().st_nlink == 1
    assert (unit / "in/deep/f").exists()


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_at_any_step_of_a_purge(fixture: RootFixture, neighbours: Path, step: int) -> None:
    fixture.make_unit()
    entry = put(fixture)
    with fixture.trash() as trash:
        killed = killed_at(lambda: trash.purge(entry.id, NOW), step)
    assert not killed or step < STEPS
    with fixture.trash() as trash:
        trash.recover()
        for left in trash.entries():
            trash.purge(left.id, NOW)
        assert trash.entries() == ()
    assert os.listdir(fixture.root / ".gpuwarden-trash") == []
    assert fixture.journal.open_intents() == ()
