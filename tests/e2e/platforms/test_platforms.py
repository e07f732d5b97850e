"""The same scenario on every platform, in the real software: submitted, waiting, not pulled, a zombie, finished.

The steps are chronological: the job of the first one runs until it becomes a zombie.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pytest

from monitor.cleanup.journal_records import ItemState
from monitor.facts.cluster import ClusterView, Identity, PodView
from tests.e2e.asker import Asker
from tests.e2e.cleaning import Cleaner, cleaning, dead_kubelet, left_by
from tests.e2e.platforms import adapters, queued
from tests.e2e.platforms.adapter import USER, Adapter, End, Job
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.lab.modern.variant import Modern
from tests.lab.platforms.build import is_built, platforms_cache
from tests.lab.platforms.running import running
from tests.support import need, wait_until
from tests.support.command import get

ADAPTERS: dict[str, type[Adapter]] = {
    "Volcano": adapters.Volcano,
    "Kubeflow training-operator": adapters.PyTorchJob,
    "Kueue": queued.Kueue,
    "JobSet": adapters.JobSet,
    "JobSet in a queue of Kueue": queued.QueuedJobSet,
    "LeaderWorkerSet": adapters.LeaderWorkerSet,
    "FrameworkController": adapters.FrameworkController,
    "ModelArts": adapters.ModelArts,
    "PAI DSW": adapters.PaiDsw,
}
TRAIN = Job("train")
NEVER = "0 0 29 2 *"  # on demand only
POLICIES = (
    {
        "kind": "pods", "name": "pods", "mode": "enforce", "announce": "0s", "cron": NEVER,
        "finished_after": "1s", "keep_newest": 0,
    },
    {"kind": "gpus", "name": "gpus", "cron": NEVER, "zombie_after": "1s", "notice": "0s"},
)  # fmt: skip
STEP_LIMIT_SECONDS = 120


@dataclass(frozen=True)
class Stage:
    """A running platform, and the daemon that watches it."""

    lab: Lab
    scene: Scene
    adapter: Adapter
    cleaner: Cleaner

    def views(self) -> list[PodView]:
        """Unfinished pods of the scene, as the daemon sees them."""
        view = msgspec.json.decode(get(f"{self.cleaner.page}/v1/view")[2], type=ClusterView)
        return [pod for pod in view.pods if pod.namespace == self.scene.name]

    def owners(self) -> list[Identity]:
        """Their owners, in a fixed order."""
        return sorted((pod.identity for pod in self.views()), key=str)

    def pods(self) -> list[Any]:
        """Pods of the scene in the cluster."""
        listed = self.lab.cluster.core.list_namespaced_pod(self.scene.name, _request_timeout=60)
        return list(listed.items)

    def wait_pods(self, count: int, phase: str) -> list[Any]:
        """Wait until the scene has this many pods, all in this phase, and return them."""
        wait_until(
            lambda: [pod.status.phase for pod in self.pods()] == [phase] * count,
            STEP_LIMIT_SECONDS,
            f"{count} pods are {phase}",
        )
        return self.pods()

    @contextmanager
    def submitted(self, job: Job) -> Iterator[None]:
        """Submit a job, and delete it afterwards."""
        before = len(self.pods())
        self.adapter.submit(job)
        try:
            yield
        finally:
            self.adapter.remove(job.name)
        wait_until(lambda: len(self.pods()) == before, STEP_LIMIT_SECONDS, f"the pods of {job.name} are gone")


@pytest.fixture(scope="module", params=list(ADAPTERS))
def stage(request: pytest.FixtureRequest, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    kind = ADAPTERS[request.param]
    need(isinstance(lab.variant, Modern), "the modern lab")
    built = all(is_built(platform, platforms_cache()) for platform in kind.platforms)
    need(built, "`python -m tests.lab build-platforms`")
    with ExitStack() as stack:
        places = [stack.enter_context(running(lab, platform)) for platform in kind.platforms]
        scene = stack.enter_context(Scene(lab, "platform"))
        adapter = kind(scene, places)
        adapter.prepare()
        for name in ("short", "unpulled", "large", TRAIN.name):
            stack.callback(adapter.remove, name)
        directory = tmp_path_factory.mktemp("platform")
        more = {"platforms": [dict(rule) for rule in adapter.rules]}
        cleaner = stack.enter_context(cleaning(lab, lab.kubeconfig, directory, POLICIES, {}, more))
        yield Stage(lab, scene, adapter, cleaner)


def test_the_pods_of_a_job_have_their_owner(stage: Stage) -> None:
    stage.adapter.submit(TRAIN)
    pods = stage.wait_pods(TRAIN.pods, "Running")
    expected = sorted(stage.adapter.owners(TRAIN), key=str)
    with suppress(pytest.fail.Exception):
        wait_until(lambda: stage.owners() == expected, STEP_LIMIT_SECONDS, "the owners are known")
    assert stage.owners() == expected
    for pod in pods:
        (holder,) = stage.cleaner.card_of(pod).holders
        assert (holder.user, holder.job, holder.queue) == (USER, expected[0].job, expected[0].queue)


def test_why_a_job_waits(stage: Stage) -> None:
    waiting = stage.adapter.waiting()
    name = stage.adapter.owners(waiting.job)[0].job or waiting.job.name
    asker = Asker(stage.cleaner.page, stage.cleaner.environ)
    with stage.submitted(waiting.job):
        asker.hears(stage.scene, name, waiting.cause, waiting.en, waiting.zh)


def test_a_failed_pull_is_reported(stage: Stage) -> None:
    image = stage.lab.push_image("team/train:1").removesuffix(":1") + ":no-such-tag"
    job = Job("unpulled", pods=1, image=image)
    (owner,) = stage.adapter.owners(job)
    labels = {"image": image, "user": owner.user or "", "job": owner.job or "", "queue": owner.queue or ""}
    reported = partial(stage.cleaner.finds, "image-pull", "not-found", **labels)
    with stage.submitted(job):
        wait_until(reported, STEP_LIMIT_SECONDS, f"{labels} is reported")


def test_a_zombie_is_released(stage: Stage) -> None:
    """The kubelet is down while the job is deleted, and a process outlives its containers."""
    lab, cleaner = stage.lab, stage.cleaner
    pods = stage.wait_pods(TRAIN.pods, "Running")
    card = cleaner.card_of(pods[0])
    uuid, pid = card.uuid or "", lab.container_pid(pods[0])
    cleaner.nvml.process(lab.gpu_ids.index(uuid), pid)
    cleaner.becomes(uuid, "busy", pid)
    with left_by(pid) as left:
        with dead_kubelet(lab):
            stage.adapter.remove(TRAIN.name)
            delete_now(stage, pods)
            cleaner.release_zombie(lab, uuid, pid, left, *pods)
        cleaner.has_released(uuid)
    wait_until(lambda: not stage.pods(), STEP_LIMIT_SECONDS, "the pods of the job are gone")


def delete_now(stage: Stage, pods: list[Any]) -> None:
    """Delete the objects of pods whose kubelet does not."""
    for pod in pods:
        stage.scene.delete(pod.metadata.name)
    wait_until(lambda: not stage.pods(), STEP_LIMIT_SECONDS, "no pod is left")


def test_a_finished_job_is_gone(stage: Stage) -> None:
    end = stage.adapter.end
    job = Job("short", command=TRAIN.command if end is End.NEVER else ("echo", "done"))
    with stage.submitted(job):
        if end is End.KEPT:
            clean_up(stage, job)
        elif end is End.REMOVED:
            wait_until(lambda: stage.adapter.has_finished(job.name), STEP_LIMIT_SECONDS, "it has finished")
            wait_until(lambda: not stage.pods(), STEP_LIMIT_SECONDS, "its pods are gone")
        else:
            stage.wait_pods(job.pods, "Running")
    wait_until(lambda: stage.views() == [], STEP_LIMIT_SECONDS, "the daemon has forgotten it")
    wait_until(
        lambda: {card.state.value for card in stage.cleaner.cards().values()} == {"free"},
        STEP_LIMIT_SECONDS,
        "all GPUs are free",
    )


def clean_up(stage: Stage, job: Job) -> None:
    """Let the product delete the pods of a finished job, which its controller must not create again."""
    stage.wait_pods(job.pods, "Succeeded")
    wait_until(lambda: stage.views() == [], STEP_LIMIT_SECONDS, "its pods no longer count")
    wait_until(lambda: len(stage.cleaner.plan("pods").items) == job.pods, STEP_LIMIT_SECONDS, "they are planned")
    states = [entry.state for entry in stage.cleaner.run("pods").items]
    assert states == [ItemState.DONE] * job.pods
    wait_until(lambda: not stage.pods(), STEP_LIMIT_SECONDS, "its pods are gone")
