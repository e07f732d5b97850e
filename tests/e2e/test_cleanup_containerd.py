"""Cleanup of images on a current containerd while pods start: it goes on, and no pod loses its image.

Each pod has a lease there for life, and while it is created its image is in use by nothing that CRI lists.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from monitor.cleanup.journal_records import ItemState
from monitor.present.cleanup import ShownRun
from tests.e2e import small_disk
from tests.e2e.cleaning import Account, Cleaner, Pods, cleaning
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.support import wait_until

pytestmark = pytest.mark.lab("1.35")
HIGH, LOW = 0.80, 0.60
START_SECONDS = 3.0  # from one pod to the next
RUN_LIMIT = 240.0
RACES = 100
BEFORE, AFTER = 0.5, 4.0  # seconds around the start of a run in which a pod is created
POLICIES = (
    {
        "kind": "images", "name": "images", "mode": "enforce", "announce": "0s", "high": HIGH, "low": LOW,
        "min_age": "1s", "pins": ["local/pinned*", "local/bb*"],
        "protect_local": False,  # loaded, not pulled
    },
)  # fmt: skip
# There is no registry to pull from: a pod whose image is gone says so.
NEVER_PULL = {"imagePullPolicy": "Never"}


@pytest.fixture(scope="module")
def disk(lab: Lab) -> Iterator[Path]:
    with small_disk.engine_on_small_disk(lab, megabytes=256) as disk:
        yield disk


@pytest.fixture(scope="module")
def scene(lab: Lab, disk: Path) -> Iterator[Scene]:
    with Scene(lab, "containerd") as scene:
        yield scene


@pytest.fixture(scope="module")
def cleaner(lab: Lab, scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cleaner]:
    directory = tmp_path_factory.mktemp("cleanup")
    kubeconfig = Account(scene).kubeconfig(lab.kubeconfig, directory)
    with cleaning(lab, kubeconfig, directory, POLICIES, {}) as cleaner:
        yield cleaner


@pytest.fixture
def pods(lab: Lab, scene: Scene) -> Iterator[Pods]:
    made = Pods(lab, scene.name)
    yield made
    made.clear()


class Starter:
    """Starts a pod every few seconds, from the same image, until the end of the block; older pods are deleted."""

    def __init__(self, pods: Pods, image: str) -> None:
        self._pods = pods
        self._image = image
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._start_pods)
        self.errors: list[BaseException] = []
        self.running = 0

    def __enter__(self) -> Starter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _start_pods(self) -> None:
        try:
            while not self._stopping.wait(START_SECONDS):
                pod = self._pods.run(f"steady-{self.running}", image=self._image, container=NEVER_PULL)
                self.running += 1
                self._pods.delete(pod)
        except BaseException as error:  # reported by the test
            self.errors.append(error)


def pile_up(lab: Lab, disk: Path, share: float, prefix: str) -> list[str]:
    """Load unused images, oldest first, until this much of the disk is used."""
    old: list[str] = []
    while small_disk.used_share(disk) < share:
        old.append(f"docker.io/local/{prefix}-{len(old)}:1")
        small_disk.load(lab, old[-1], megabytes=6)
    return old


def _are_seen(cleaner: Cleaner, images: list[str]) -> bool:
    return all(cleaner.image(image) is not None for image in images)


def removed(run: ShownRun) -> set[str]:
    return {entry.item.name for entry in run.items if entry.state is ItemState.DONE}


def test_pods_that_start_all_the_time_do_not_stop_the_cleanup(
    lab: Lab, disk: Path, cleaner: Cleaner, pods: Pods
) -> None:
    steady, pinned = "docker.io/local/steady:1", "docker.io/local/pinned:1"
    for name in (pinned, steady):
        small_disk.load(lab, name, megabytes=4)
    old = pile_up(lab, disk, LOW + 0.02, "old")
    wait_until(lambda: cleaner.image(old[-1]) is not None, 30, "the images are seen")
    with Starter(pods, steady) as starter:
        wait_until(lambda: starter.running >= 2 or starter.errors, 60, "pods start")
        old += pile_up(lab, disk, HIGH + 0.02, "new")
        shown = cleaner.wait_run("images", 0, RUN_LIMIT)
        started = starter.running
        wait_until(lambda: starter.running > started or starter.errors, 60, "pods start from the image that was kept")
    assert starter.errors == []
    assert shown.run.end == "low-water", shown
    assert small_disk.used_share(disk) <= LOW
    assert removed(shown) <= set(old)
    assert {steady, pinned} <= lab.engine.images()


class Race:
    """One pod that is created from an image while the cleanup may remove it."""

    def __init__(self, lab: Lab, cleaner: Cleaner, pods: Pods, image: str, number: int) -> None:
        self._lab = lab
        self._cleaner = cleaner
        self._pods = pods
        self._image = image
        self._number = number

    def run(self, delay: float) -> str:
        """Start a run of the policy and, so many seconds later or earlier, the pod; return what became of the pod."""
        with ThreadPoolExecutor(2) as pool:
            cleanup = pool.submit(self._clean_up, max(0.0, -delay))
            pod = pool.submit(self._start, max(0.0, delay)).result()
            cleanup.result()
        wait_until(lambda: self._state(pod), 60, "the pod runs, or has no image")
        state = self._state(pod)
        if state == "running":
            assert self._image in self._lab.engine.images(), f"{self._image} is in use and was removed"
        self._lab.delete_pods(pod)
        return state

    def _clean_up(self, delay: float) -> None:
        time.sleep(delay)
        before = len(self._cleaner.history("images"))
        answer = self._cleaner.ask("run", "images")
        assert answer.returncode == 0, answer.stderr
        self._cleaner.wait_run("images", before, RUN_LIMIT)

    def _start(self, delay: float) -> Any:
        time.sleep(delay)
        return self._pods.run(f"race-{self._number}", image=self._image, phase=None, container=NEVER_PULL)

    def _state(self, pod: Any) -> str:
        for status in self._lab.cluster.read_pod(pod).status.container_statuses or ():
            if status.state.running is not None:
                return "running"
            if status.state.waiting is not None and status.state.waiting.reason == "ErrImageNeverPull":
                return "no image"
        return ""


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_of_a_hundred_pods_none_loses_its_image_to_the_cleanup(
    lab: Lab, disk: Path, cleaner: Cleaner, pods: Pods
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for number in range(RACES):
        old = pile_up(lab, disk, LOW + 0.10, f"race-{number}")
        candidates = sorted(name for name in lab.engine.images() if "/race-" in name)
        wait_until(partial(_are_seen, cleaner, old), 30, "the images are seen")
        image = chance.choice(candidates)
        outcomes[Race(lab, cleaner, pods, image, number).run(chance.uniform(-BEFORE, AFTER))] += 1
    print(dict(outcomes))
    assert outcomes.total() == RACES
    assert outcomes["running"] > RACES / 5, outcomes
