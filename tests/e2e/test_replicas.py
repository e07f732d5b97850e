"""The same incidents with one daemon and with two replicas: equal findings, one notification each, whichever dies."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monitor.cleanup.journal_records import ItemState
from tests.e2e import small_disk
from tests.e2e.replicas import DISK, Incident, Stage, firing, over, replicated, told
from tests.e2e.scenes import Scene
from tests.e2e.test_lease import Replica, done_by_agent, items
from tests.lab.lab import Lab
from tests.support import wait_until
from tests.support.filesystems import ext4_disk, fill

PULL: Incident = ("image-pull", "not-found", "warning")
ORPHAN: Incident = ("gpu-orphan", "host-process", "warning")
FILLS: Incident = ("disk-full", "datasets", "warning")
FULL: Incident = ("disk-full", "datasets", "critical")
DOWN: Incident = ("service-down", "status", "critical")
OLD = [f"harbor.lab/nlp/old-{number}:1" for number in range(8)]
CARD = 3
pytestmark = pytest.mark.timeout(240)  # may have to start a lab and eight programs


@pytest.fixture
def scene(lab: Lab) -> Iterator[Scene]:
    with small_disk.engine_on_small_disk(lab, megabytes=256), Scene(lab, "replicas") as scene:
        yield scene


@contextmanager
def stranger() -> Iterator[int]:
    """Pid of a process outside all pods."""
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def expect_told(stage: Stage, news: Counter[str]) -> None:
    """Wait until both groups have each of these notifications exactly once."""
    groups = stage.group, stage.embedded_group
    wait_until(lambda: all(told(group) >= news for group in groups), 30, f"{news} is told")
    assert [told(group) for group in groups] == [news, news]


def clean_up_and_die(first: Replica) -> float:
    """Start a cleanup on the acting replica, kill it midway, and return the time."""
    wait_until(lambda: len(first.asked.plan("images").items) >= len(OLD), 20, "all old images are planned for")
    assert first.asked.ask("run", "images").returncode == 0
    wait_until(lambda: done_by_agent(first.asked).get("remove-image/removed", 0) >= 1, 20, "it has begun")
    first.process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    first.process.wait(60)
    return killed


def expect_done_once(first: Replica, second: Replica) -> None:
    """Wait until the second replica has done the remaining items and nothing else."""
    shown = second.asked.wait_run("images", 0, limit=60)
    before, after = items(first.state), {each.item.name for each in shown.items}
    assert (shown.run.trigger, shown.run.end) == ("resumed", "done")
    assert after.isdisjoint(name for name, state in before.items() if state is ItemState.DONE)
    begun = {name for name, state in before.items() if state is not ItemState.PLANNED}
    assert done_by_agent(second.asked) == {"remove-image/removed": len(begun | after)}


def test_each_incident_is_found_by_all_and_told_once_whoever_dies(lab: Lab, scene: Scene, tmp_path: Path) -> None:
    for name in OLD:
        small_disk.load(lab, name, megabytes=1)
    with ext4_disk(tmp_path, DISK, 16) as disk, stranger() as pid, replicated(lab, scene, tmp_path) as stage:
        stage.expect_all_find()
        no_image = lab.run_pod("no-image", namespace=scene.name, phase=None, image=f"{lab.registry}/nlp/nothing:1")
        stage.nvml.process(CARD, pid)
        used, available = small_disk.used_bytes(disk)
        (disk / "data").write_bytes(bytes(int(0.85 * (used + available)) - used))
        stage.portal.well = False
        stage.expect_all_find(PULL, ORPHAN, FILLS, DOWN)
        news = firing(PULL, ORPHAN, FILLS, DOWN)
        expect_told(stage, news)

        fill(disk)
        stage.expect_all_find(PULL, ORPHAN, FULL, DOWN)
        news += firing(FULL)
        expect_told(stage, news)

        stage.alertmanagers[0].process.send_signal(signal.SIGKILL)
        lab.delete_pods(no_image)
        stage.portal.well = True
        stage.expect_all_find(ORPHAN, FULL)
        news += over(PULL, DOWN)
        expect_told(stage, news)

        first, second = sorted(stage.replicas, key=lambda each: not each.lease().holds)
        killed = clean_up_and_die(first)
        for file in (disk / "full", disk / "data"):
            file.unlink()
        stage.nvml.end_process(CARD, pid)  # must not be reported yet
        wait_until(lambda: second.lease().holds, killed + 30 - time.monotonic(), "the other one takes over")
        expect_done_once(first, second)
        assert not lab.engine.images() & set(OLD)
        news += over(ORPHAN, FULL)
        expect_told(stage, news)

        stage.portal.well = False  # a duplicate notification would arrive before this
        news += firing(DOWN)
        expect_told(stage, news)
