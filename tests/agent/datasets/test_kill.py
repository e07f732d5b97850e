"""Killed with -9 at any step, then started again: the journal continues, and nothing but the plan was touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.facts.datasets import TrashFact
from tests.agent.datasets.ground import NOW, Ground, fingerprint, planned

FILES = 6_000
STEPS = 18  # changes on the disk that the longest of them makes, and one

# Purges one entry, says so now and then, and is killed by the test meanwhile.
PURGE = """
import sys
from pathlib import Path
from tests.agent.datasets.ground import Ground, NOW
with Ground(Path(sys.argv[1])).trash() as trash:
    trash.purge(sys.argv[2], NOW, lambda count: print(count, flush=True))
"""


class DiedError(BaseException):
    """What a kill -9 looks like from inside: nothing more is changed on the disk, nobody is asked."""


def dying(act: Callable[[], object], step: int) -> bool:
    """Do something, and die right before the n-th change on the disk. Return whether there were so many."""
    left = step

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                raise DiedError
            return real(*arguments, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("mkdir", "rename", "link", "unlink", "rmdir", "fsync", "write"):
            patch.setattr(os, name, deadly(getattr(os, name)))
        try:
            act()
        except DiedError:
            return True
    return False


@pytest.fixture
def neighbours(ground: Ground) -> Iterator[Path]:
    """Units that no plan names: they are the same after the test."""
    ground.make_unit("b")
    ground.make_unit("a", "li")
    before = [fingerprint(ground.unit("b")), fingerprint(ground.unit("a", "li"))]
    yield ground.root
    assert [fingerprint(ground.unit("b")), fingerprint(ground.unit("a", "li"))] == before


def put(ground: Ground) -> TrashFact:
    with ground.trash() as trash:
        return trash.put(planned(ground.scanned()), "p", NOW)


def test_in_the_middle_of_a_purge(ground: Ground, neighbours: Path) -> None:
    unit = ground.make_unit()
    (unit / "link").symlink_to(ground.canary)
    for number in range(FILES // 200):
        (unit / f"in/{number}").mkdir()
        for file in range(200):
            os.close(os.open(unit / f"in/{number}/{file}", os.O_CREAT | os.O_WRONLY))
    entry = put(ground)
    kills = 0
    for wait_for in (600, 1200):
        command = [sys.executable, "-c", PURGE, str(ground.base), entry.id]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if int(line) > wait_for:
                    break
            process.kill()
        kills += process.returncode == -9
    assert kills == 2
    left = sum(len(files) for _, _, files in os.walk(ground.root / ".gpuwarden-trash" / entry.id / "purging"))
    assert 0 < left < FILES, "it was killed in the middle"
    assert [line.action for line in ground.journal.open()] == ["dataset.purge"] * 2
    with ground.trash() as trash:
        assert [each.state for each in trash.entries()] == ["purging"]
        assert len(trash.recover()) == 2
        assert trash.entries() == ()
    assert ground.journal.open() == ()
    assert [line.outcome for line in ground.journal.lines()][-2:] == ["purged", "gone"]


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_at_any_step_of_a_move(ground: Ground, neighbours: Path, step: int) -> None:
    unit = ground.make_unit()
    plan = planned(ground.scanned())
    with ground.trash() as trash:
        died = dying(lambda: trash.put(plan, "p", NOW), step)
    assert died == (step < STEPS), "each step was tried, and the last number is that of no step"
    with ground.trash() as trash:
        trash.recover()
        entries = trash.entries()
        assert trash.recover() == ()
    # It is in exactly one place, whole.
    assert unit.exists() == (not entries)
    home = ground.root / ".gpuwarden-trash"
    whole = unit if not entries else home / entries[0].id / "unit"
    assert sorted(path.name for path in whole.rglob("*")) == ["deep", "f", "f", "f", "in"]
    assert len(os.listdir(home) if home.exists() else []) == len(entries), "nothing half-made is left in the trash"


@pytest.mark.parametrize("kind", ["dir", "file"])
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_at_any_step_of_a_restore(ground: Ground, neighbours: Path, kind: str, step: int) -> None:
    unit = ground.make_unit()
    scan = ground.scan() if kind == "dir" else ground.scan("zhang/datasets/a/f", "file")
    with ground.trash() as trash:
        entry = trash.put(planned(next(each for each in scan.units if "zhang/datasets/a" in each.path)), "p", NOW)
        assert not (unit / "f").exists()
        died = dying(lambda: trash.restore(entry.id), step)
    assert not died or step < STEPS
    with ground.trash() as trash:
        trash.recover()
        assert ground.journal.open() == ()
        for left in trash.entries():
            trash.restore(left.id)
        assert trash.entries() == ()
    assert (unit / "f").read_text() == "some content\n"
    assert (unit / "f").stat().st_nlink == 1
    assert (unit / "in/deep/f").exists()


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_at_any_step_of_a_purge(ground: Ground, neighbours: Path, step: int) -> None:
    ground.make_unit()
    entry = put(ground)
    with ground.trash() as trash:
        died = dying(lambda: trash.purge(entry.id, NOW), step)
    assert not died or step < STEPS
    with ground.trash() as trash:
        trash.recover()
        for left in trash.entries():
            trash.purge(left.id, NOW)
        assert trash.entries() == ()
    assert os.listdir(ground.root / ".gpuwarden-trash") == []
    assert ground.journal.open() == ()
