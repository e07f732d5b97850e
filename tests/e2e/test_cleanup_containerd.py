"""Cleanup of images on a current containerd while pods start: it goes on, and no pod loses its image.

Each pod has a lease there for life, and while it is created its image is in use by nothing that CRI lists.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
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
HIGH, LOW = 0.90, 0.60
RACE_SHARE = 0.87  # of the disk, before a run that is asked for
START_SECONDS = 3.0  # from one pod to the next
RUN_LIMIT = 900.0  # a busy runtime is given up to a minute for each image
RACES, RACERS = 100, 20  # pods, and how many of them race with the same run
REMOVAL_SECONDS = 2.7  # of one image, if nothing else is busy
POD_LIMIT = 120.0
RUNS = "running"
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


def pile_up(lab: Lab, disk: Path, share: float, prefix: str, megabytes: int = 6) -> list[str]:
    """Load unused images, oldest first, until this much of the disk is used."""
    old: list[str] = []
    while small_disk.used_share(disk) < share:
        old.append(f"docker.io/local/{prefix}-{len(old)}:1")
        small_disk.load(lab, old[-1], megabytes=megabytes)
    return old


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


def test_a_pin_without_a_registry_counts_in_the_plan(lab: Lab, cleaner: Cleaner) -> None:
    """containerd lists `docker.io/local/pinned:1`; the pin is `local/pinned*`."""
    pinned = "docker.io/local/pinned:1"
    small_disk.load(lab, pinned, megabytes=4)
    wait_until(lambda: ("pinned", pinned) in _kept(cleaner), 60, "the plan keeps it")
    assert pinned not in {item.name for item in cleaner.plan("images").items}


def _kept(cleaner: Cleaner) -> set[tuple[str, str]]:
    """What the plan keeps, with the reason."""
    return {(item.protection, item.name) for item in cleaner.plan("images").kept}


def _planned(cleaner: Cleaner) -> list[str]:
    """Named images that the next run would remove, in its order."""
    return [item.name for item in cleaner.plan("images").items if item.name.startswith("docker.io/")]


class Round:
    """A run of the policy, and pods that are created from images that it removes."""

    def __init__(self, lab: Lab, cleaner: Cleaner, pods: Pods) -> None:
        self._lab = lab
        self._cleaner = cleaner
        self._pods = pods

    def run(self, starts: Mapping[str, float]) -> tuple[Counter[str], set[str]]:
        """Start a run and, each so many seconds after its request, a pod of each image.

        Return what became of the pods, and the images that the run removed.
        """
        before = len(self._cleaner.history("images"))
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(self._cleaner.ask, "run", "images")
            made = self._start(starts)
            answer = asked.result()
        assert answer.returncode == 0, answer.stderr
        shown = self._cleaner.wait_run("images", before, RUN_LIMIT)
        states = {image: self._outcome(pod) for image, pod in made.items()}
        lost = [image for image, state in states.items() if state == RUNS and image not in self._lab.engine.images()]
        assert not lost, f"in use and removed: {lost}"
        self._lab.delete_pods(*made.values())
        return Counter(states.values()), removed(shown)

    def _start(self, starts: Mapping[str, float]) -> dict[str, Any]:
        began, made = time.monotonic(), {}
        for image, delay in sorted(starts.items(), key=lambda entry: entry[1]):
            time.sleep(max(0.0, began + delay - time.monotonic()))
            name = image.rpartition("/")[2].partition(":")[0]
            made[image] = self._pods.run(f"{name}-pod", image=image, phase=None, container=NEVER_PULL)
        return made

    def _outcome(self, pod: Any) -> str:
        wait_until(lambda: self._state(pod), POD_LIMIT, "the pod runs, or has no image")
        return self._state(pod)

    def _state(self, pod: Any) -> str:
        for status in self._lab.cluster.read_pod(pod).status.container_statuses or ():
            if status.state.running is not None:
                return RUNS
            if status.state.waiting is not None and status.state.waiting.reason == "ErrImageNeverPull":
                return "no image"
        return ""


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_of_a_hundred_pods_none_loses_its_image_to_the_cleanup(
    lab: Lab, disk: Path, cleaner: Cleaner, pods: Pods
) -> None:
    """Several pods race with each run, which removes one image after the other: each near the removal of its image."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    gone: set[str] = set()
    while (left := RACES - outcomes.total()) > 0:
        pile_up(lab, disk, RACE_SHARE, f"race-{left}", megabytes=3)
        wait_until(lambda: _planned(cleaner), 120, "images are planned")
        turns = enumerate(_planned(cleaner)[: min(RACERS, left)])
        starts = {image: REMOVAL_SECONDS * max(0.0, turn + chance.uniform(-1.0, 2.0)) for turn, image in turns}
        ended, removals = Round(lab, cleaner, pods).run(starts)
        print(dict(ended), len(removals), "images removed", flush=True)
        outcomes += ended
        gone |= removals
        # What was refused is not planned again for hours.
        lab.engine.remove_images(*starts.keys() & lab.engine.images())
    print(dict(outcomes), len(gone), "images removed")
    assert outcomes.total() == RACES
    assert outcomes[RUNS] > RACES / 5, outcomes
    assert len(gone) > RACES / 5, "the runs did remove images"
