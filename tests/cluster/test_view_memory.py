from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from monitor.cluster import live, view_memory
from monitor.cluster.live import LiveCluster
from monitor.cluster.node_join import GpuMemory
from monitor.cluster.view import ViewMemory
from monitor.cluster.view_memory import FILE, MAX_GAP_SECONDS, SavedViewMemory, ViewMemoryFile, unexpired
from monitor.config.root import Config
from monitor.daemon.build import make_cluster
from monitor.facts.cluster import ClusterView, GpuState
from tests.cluster.builders import uuid
from tests.cluster.living import SOON, living, settings, two_gpus, until
from tests.support import wait_until
from tests.support.fake_agents import FakeAgent, reports

MEMORY = ViewMemory(cards={"n1/u": GpuMemory(state=GpuState.IDLE_HELD, since=5.0, idle_since=2.0)}, missing={"p": 1.0})


def save_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_memory, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(view_memory, "MIN_SAVE_INTERVAL_SECONDS", 0.05)


@pytest.mark.parametrize(
    ("gap", "expect"),
    [
        (0.0, MEMORY),
        (MAX_GAP_SECONDS, MEMORY),
        (MAX_GAP_SECONDS + 1, ViewMemory()),
        (-MAX_GAP_SECONDS - 1, ViewMemory()),
    ],
)
def test_what_nobody_has_looked_at_for_long_may_have_been_otherwise(gap: float, expect: ViewMemory) -> None:
    assert unexpired(SavedViewMemory(at=1000.0, memory=MEMORY), 1000.0 + gap) == expect


def test_what_is_remembered_is_saved_when_it_changes_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_often(monkeypatch)
    memories = [ViewMemory()]
    file = ViewMemoryFile(str(tmp_path), lambda: 1000.0)
    file.start(lambda: memories[0])
    memories[0] = MEMORY
    wait_until(lambda: (tmp_path / FILE).exists() and file.load() == MEMORY, SOON, "it is saved")
    before = (tmp_path / FILE).stat().st_mtime_ns
    time.sleep(0.3)
    assert (tmp_path / FILE).stat().st_mtime_ns == before
    memories[0] = ViewMemory(missing={"q": 1.0})
    file.stop()
    assert file.load() == ViewMemory(missing={"q": 1.0})
    assert "view-memory" not in {thread.name for thread in threading.enumerate()}


def since_when(view: ClusterView) -> dict[int, float | None]:
    return {gpu.index: gpu.since for gpu in view.gpus}


def test_a_killed_process_still_knows_since_when_a_card_is_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_often(monkeypatch)
    with FakeAgent(reports(two_gpus("n1"))) as agent:
        kept = replace(settings(agent), state=str(tmp_path))
        first = LiveCluster(kept, None)
        with living(first):
            before = since_when(until(first, lambda view: len(view.gpus) == 2, "both GPUs are seen"))
            wait_until(lambda: len(_saved(tmp_path).memory.cards) == 2, SOON, "it is saved")
            left = (tmp_path / FILE).read_bytes()  # as a kill -9 leaves it
        (tmp_path / FILE).write_bytes(left)
        second = LiveCluster(kept, None)
        with living(second):
            after = since_when(until(second, lambda view: len(view.gpus) == 2, "both GPUs are seen"))
            second.refresh()
            assert since_when(second.view) == before == after
    assert all(since is not None for since in before.values())


def test_what_nobody_names_any_more_is_forgotten_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_often(monkeypatch)
    monkeypatch.setattr(live, "UNSEEN_RETENTION_SECONDS", 1.0)
    ViewMemoryFile(str(tmp_path), time.time).save(MEMORY)
    with (
        FakeAgent(reports(two_gpus("n2"))) as agent,
        living(LiveCluster(replace(settings(agent), state=str(tmp_path)), None)) as cluster,
    ):
        until(cluster, lambda view: len(view.gpus) == 2, "both GPUs are seen")
        cluster.refresh()
        wait_until(
            lambda: {"n1/u", f"n2/{uuid(0, 'n2')}"} <= _saved(tmp_path).memory.cards.keys(), SOON, "all are saved"
        )
        assert _saved(tmp_path).memory.missing == {"p": 1.0}
        wait_until(lambda: "n1/u" not in _saved(tmp_path).memory.cards, SOON, "the unknown GPU is dropped")
        assert _saved(tmp_path).memory.missing == {}
        assert len(_saved(tmp_path).memory.cards) == 2


@pytest.mark.parametrize("keeps", [False, True], ids=["a command", "the daemon"])
def test_who_only_asks_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeps: bool) -> None:
    """A command uses the configuration of the daemon, and must not write into its state directory or anywhere else."""
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    state.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with FakeAgent(reports(two_gpus("n1"))) as agent:
        daemon = {"state": str(state), "agents": {"static": [agent.target]}, "kubernetes": {"enabled": "no"}}
        config = Config.model_validate({"daemon": daemon})
        with living(make_cluster(config, state=str(state) if keeps else None)) as cluster:
            until(cluster, lambda view: len(view.gpus) == 2, "both GPUs are seen")
    assert os.listdir(state) == ([FILE] if keeps else [])
    assert os.listdir(elsewhere) == []


def _saved(folder: Path) -> SavedViewMemory:
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=SavedViewMemory)
    except FileNotFoundError:
        return SavedViewMemory()
