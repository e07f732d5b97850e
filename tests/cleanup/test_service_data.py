"""Datasets of a real agent: notices, trash, restore and purge; and a registry."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.cleanup.journal_records import ItemState
from monitor.cleanup.model import Mode
from monitor.cleanup.policy import DatasetPolicy, RegistryPolicy, When
from monitor.daemon.cleaning import CleanupController
from monitor.sim.simulation import Simulation
from tests.cleanup.harbor_server import PASSWORD, USER, FakeHarbor
from tests.cleanup.running import SOON, cleaning, ended, real_agent, runs, simulated
from tests.cleanup.support import Outbox
from tests.support import wait_until

ACT: dict[str, Any] = {"mode": Mode.ENFORCE, "announce": 0.0}


@pytest.fixture
def story() -> Iterator[Simulation]:
    with simulated() as made:
        yield made


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a", "b", "kept"):
        unit = tmp_path / "share" / "zhang" / name
        unit.mkdir(parents=True)
        (unit / "data").write_bytes(os.urandom(200_000))
        os.utime(unit / "data", (1.0, 1.0))
    (tmp_path / "share" / "zhang" / "kept" / ".keep").touch()
    return tmp_path / "share"


def dataset_policy(root: Path, **more: Any) -> DatasetPolicy:
    given = {"min_age": 0.0, "without_atime": True, "notice": 0.0, "trash_grace": 3600.0}
    return DatasetPolicy(
        name="data", root=str(root), node="here", pattern="*/*", when=When(cron="0 3 * * *"), **(ACT | given | more)
    )


def test_datasets_of_a_real_agent_are_announced_moved_restored_and_purged(
    tmp_path: Path, root: Path, outbox: Outbox
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with real_agent(tmp_path, root) as agent:
        with cleaning(state, outbox, dataset_policy(root, notice=1.0), agent=agent) as made:
            made.run("data", None, "zhang")
            first = ended(made, "data", "done")
            assert first.freed_bytes == 0
            wait_until(lambda: outbox.rules() == ["cleanup-notice"], SOON, "the owner was notified")
            assert outbox.sent[0].users != ()
            assert sorted(path.name for path in (root / "zhang").iterdir()) == ["a", "b", "kept"]
            time.sleep(1.1)
            made.run("data", None, "zhang")
            wait_until(lambda: len(runs(made)) == 2 and runs(made)[0].end, SOON, "it ran again")
            assert [path.name for path in (root / "zhang").iterdir()] == ["kept"]
            wait_until(lambda: outbox.rules()[-1] == "cleanup-report", SOON, "the run was reported")
            entries = {entry.item.name: entry for entry in made.history(1, "data")[0].items}
            trash = entries["zhang/a"].trash
            assert trash is not None
            shown = made.restore(trash, "zhang@127.0.0.1")
            assert [(entry.state, entry.outcome) for entry in shown.items] == [(ItemState.DONE, "restored")]
            assert (root / "zhang" / "a" / "data").stat().st_size == 200_000
            with pytest.raises(ValueError, match="no trash entry has the id t-0"):
                made.restore("t-0", "zhang")
        with cleaning(state, outbox, dataset_policy(root, trash_grace=0.0, notice=3600.0), agent=agent) as made:
            made.run("data", None, "zhang")
            wait_until(lambda: len(runs(made, "data")) == 3 and runs(made, "data")[0].end, SOON, "it ran")
            done = runs(made, "data")[0]
            (purge,) = made.history(1, "data")[0].items
            assert (purge.state, purge.outcome) == (ItemState.DONE, "purged")
            assert done.freed_bytes >= 200_000
            assert [(deletion.path, deletion.bytes) for deletion in made.own_deletions()] == [
                (str(root), done.freed_bytes)
            ]
    assert (root / "zhang" / "a").exists()  # its notice period is not over


def ran_twice(made: CleanupController) -> bool:
    """Request a run if none is in progress, and return whether two have ended."""
    if all(run.end for run in runs(made)):
        made.run("data", None, "zhang")
    return sum(run.end is not None for run in runs(made)) >= 2


def test_items_without_a_receiver_stay(tmp_path: Path, root: Path) -> None:
    state, outbox = tmp_path / "state", Outbox(receivers=())
    state.mkdir()
    with (
        real_agent(tmp_path, root) as agent,
        cleaning(state, outbox, dataset_policy(root, notice=0.01), agent=agent) as made,
    ):
        wait_until(lambda: ran_twice(made), SOON, "it ran twice")
    assert sorted(path.name for path in (root / "zhang").iterdir()) == ["a", "b", "kept"]


def test_a_scan_can_be_followed(tmp_path: Path, root: Path, outbox: Outbox) -> None:
    state = tmp_path / "state"
    state.mkdir()
    policy = dataset_policy(root, mode=Mode.DRY_RUN)
    with real_agent(tmp_path, root) as agent, cleaning(state, outbox, policy, agent=agent) as made:
        assert "has not been scanned" in (made.plans("data", "en")[0].refused or "")
        with pytest.raises(ValueError, match="has not been scanned"):
            made.scan("data")
        assert made.begin_scan("data").root == str(root)
        wait_until(lambda: made.scan("data").finished_at, SOON, "the scan ends")
        assert made.scan("data").error is None
        (shown,) = made.plans("data", "en")
    assert sorted(item.name for item in shown.items) == ["zhang/a", "zhang/b"]
    assert shown.kept_counts == {"pinned": 1}


def test_a_harbor_is_tried_then_cleaned(tmp_path: Path, story: Simulation, outbox: Outbox) -> None:
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    with FakeHarbor(polls=0) as server:
        given: dict[str, Any] = {"url": server.url, "username": USER, "password_file": str(password)}
        dry = RegistryPolicy(name="dry", when=When(cron="0 3 * * *"), **given)
        real = RegistryPolicy(name="real", when=When(cron="0 3 * * *"), **given, **ACT)
        with cleaning(tmp_path, outbox, dry, real, story=story) as made:
            made.run("dry", None, "zhang")
            ended(made, "dry", "dry-run")
            assert all("true" in str(body).lower() for _, body in server.writes)
            before = len(server.writes)
            made.run("real", None, "zhang")
            done = ended(made, "real", "done")
            outcomes = [(entry.item.name, entry.outcome) for entry in made.history(1, "real")[0].items]
    assert outcomes == [("nlp", "retained"), (server.url, "collected")]
    assert done.freed_bytes == 5_000_000
    assert [body for path, body in server.writes[before:] if body.get("dry_run") is False] == [{"dry_run": False}]
