"""Release of GPUs and pods over a simulated cluster, by policy and by an administrator."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.access.owner_links import load_signer
from monitor.access.principal import Principal, Role
from monitor.cleanup.journal_records import ItemState
from monitor.cleanup.model import Mode
from monitor.cleanup.owner_answers import link_maker
from monitor.cleanup.policy import GpuPolicy, PodPolicy
from monitor.facts.cluster import GpuState
from monitor.sim.manifests import Workload
from monitor.sim.node import SimNode
from monitor.sim.outages import OutageContext
from monitor.sim.simulation import Simulation
from tests.cleanup.running import SOON, cleaning, ended, on_node, simulated
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


def zombie(story: Simulation) -> str:
    """Finish a pod whose processes stay on their GPU; return its uid."""

    def leave(_node: SimNode, stage: OutageContext) -> str:
        work = Workload("bert-9-0", "nlp", "zhang", "vc-nlp", 1, "harbor.lab/nlp/bert:1")
        pod = stage.cluster.submit(work)
        stage.cluster.finish(pod, keep_processes=True)
        return pod.uid

    return str(on_node(story, leave))


def free_a_gpu(node: SimNode, stage: OutageContext) -> None:
    for pod in list(stage.cluster.pods.values())[:2]:
        stage.cluster.delete_pod(pod.work.namespace, pod.work.name, 0)
    stage.cluster.step(5)


def test_a_zombie_is_told_of_then_released(story: Simulation, tmp_path: Path, outbox: Outbox) -> None:
    on_node(story, free_a_gpu)
    zombie(story)
    policy = GpuPolicy(name="gpus", zombie_after=0.0, notice=1.0, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        cluster = made._cluster
        wait_until(lambda: GpuState.ZOMBIE in {gpu.state for gpu in cluster.view.gpus}, SOON, "the zombie is seen")
        made.run("gpus", None, "cron")
        first = ended(made, "gpus", "done")
        wait_until(lambda: outbox.sent, SOON, "the owner was notified")
        (notice,) = outbox.sent
        assert notice.users == ("zhang",)
        assert notice.subjects[0].finding.headline.key == "cleanup.notice.gpus"
        assert first.freed_bytes == 0
        assert GpuState.ZOMBIE in {gpu.state for gpu in cluster.view.gpus}  # until the notice period is over
        time.sleep(1.1)
        made.run("gpus", None, "cron")
        wait_until(lambda: GpuState.ZOMBIE not in {gpu.state for gpu in cluster.view.gpus}, SOON, "it is released")
        wait_until(lambda: len(outbox.sent) == 2, SOON, "the run was reported")
    assert outbox.rules() == ["cleanup-notice", "cleanup-report"]


def test_an_administrator_releases_a_card_at_once(story: Simulation, tmp_path: Path, outbox: Outbox) -> None:
    on_node(story, free_a_gpu)
    zombie(story)
    with cleaning(tmp_path, outbox, story=story) as made:
        cluster = made._cluster
        wait_until(lambda: GpuState.ZOMBIE in {gpu.state for gpu in cluster.view.gpus}, SOON, "the zombie is seen")
        held = next(gpu for gpu in cluster.view.gpus if gpu.state is GpuState.ZOMBIE)
        busy = next((gpu for gpu in cluster.view.gpus if gpu.state is GpuState.BUSY), None)
        shown = made.release("gpu01", str(held.index), "zhang@10.0.0.1")
        assert [(entry.state, entry.outcome) for entry in shown.items] == [(ItemState.DONE, "killed")]
        assert (shown.run.policy, shown.run.by, shown.run.trigger) == ("release", "zhang@10.0.0.1", "release")
        assert made.history(1, None)[0].run.by == "zhang@10.0.0.1"
        wait_until(lambda: outbox.sent, SOON, "the run was reported")
        assert outbox.sent[0].subjects[0].finding.headline.values["by"] == "zhang@10.0.0.1"
        with pytest.raises(ValueError, match="has no GPU 77; it has 0, 1, 2, 3"):
            made.release("gpu01", "77", "zhang")
        if busy is not None:
            with pytest.raises(ValueError, match=r"nothing to release|is protected"):
                made.release("gpu01", busy.uuid or "", "zhang")


def test_an_idle_holder_is_evicted(story: Simulation, tmp_path: Path, outbox: Outbox) -> None:
    on_node(story, free_a_gpu)
    idle = on_node(
        story,
        lambda _node, stage: (
            stage.cluster.submit(Workload("notebook-1", "nlp", "li", "vc-nlp", 1, "harbor.lab/nlp/nb:1", busy=0.0)).uid
        ),
    )
    policy = GpuPolicy(name="gpus", zombie_after=None, idle_after=0.0, notice=0.0, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story) as made:

        def planned() -> list[str]:
            return [item.name for shown in made.plans("gpus", "zh") for item in shown.items]

        wait_until(lambda: planned() == ["nlp/notebook-1"], SOON, f"it is idle: {made.plans('gpus', 'en')}")
        made.run("gpus", None, "zhang")
        ended(made, "gpus", "done")
        entry = made.history(1, None)[0].items[0]
        assert (entry.state, entry.outcome) == (ItemState.DONE, "evicted")
        wait_until(lambda: idle not in on_node(story, lambda _, stage: set(stage.cluster.pods)), SOON, "it is gone")


def test_finished_pods_go_and_running_ones_stay(story: Simulation, tmp_path: Path, outbox: Outbox) -> None:
    def finish_one(_node: SimNode, stage: OutageContext) -> tuple[str, set[str]]:
        pods = list(stage.cluster.pods.values())
        stage.cluster.finish(pods[0])
        return pods[0].uid, {pod.uid for pod in pods[1:]}

    over, rest = on_node(story, finish_one)
    policy = PodPolicy(name="pods", finished_after=0.0, keep_newest=0, stuck_after=None, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        wait_until(lambda: made.plans("pods", "en")[0].items, SOON, "it is seen to be over")
        made.run("pods", None, "zhang")
        ended(made, "pods", "done")
        wait_until(lambda: over not in on_node(story, lambda _, stage: set(stage.cluster.pods)), SOON, "it is gone")
        assert on_node(story, lambda _, stage: set(stage.cluster.pods)) >= rest


def test_an_owner_keeps_a_notebook_through_the_link_of_the_notice(
    story: Simulation, tmp_path: Path, outbox: Outbox
) -> None:
    on_node(story, free_a_gpu)
    notebook = Workload("notebook-1", "nlp", "li", "vc-nlp", 1, "harbor.lab/nlp/nb:1", busy=0.0)
    uid = on_node(story, lambda _node, stage: stage.cluster.submit(notebook).uid)
    policy = GpuPolicy(name="gpus", zombie_after=None, idle_after=0.0, notice=0.1, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story, max_keep=60.0) as made:

        def planned() -> list[str]:
            return [item.name for shown in made.plans("gpus", "zh") for item in shown.items]

        wait_until(lambda: planned() == ["nlp/notebook-1"], SOON, "it is idle")
        made.run("gpus", None, "cron")
        wait_until(lambda: outbox.sent, SOON, "the owner was notified")
        (answer,) = outbox.sent[0].answers
        assert made.answers is not None
        keep = made.answers.keep(answer.path.removeprefix("keep/"), 4.0, "debugging")
        assert (keep.item, keep.owner) == (f"gpu-pod/{uid}", "li")
        (shown,) = made.plans("gpus", "en")
        assert (shown.items, [(one.name, one.protection) for one in shown.kept]) == ((), [("nlp/notebook-1", "kept")])
        wait_until(lambda: planned() == ["nlp/notebook-1"], SOON, "the time is over")
        assert time.time() >= keep.until
        assert uid in on_node(story, lambda _, stage: set(stage.cluster.pods)), "it was spared until then"
        made.run("gpus", None, "cron")
        wait_until(lambda: uid not in on_node(story, lambda _, stage: set(stage.cluster.pods)), SOON, "it is released")


def test_an_owner_releases_a_notebook_through_a_private_link(story: Simulation, tmp_path: Path, outbox: Outbox) -> None:
    """Kept by its owner, spared by the policy, and released with the same protections as everything else."""
    on_node(story, free_a_gpu)
    notebook = Workload("notebook-2", "nlp", "li", "vc-nlp", 1, "harbor.lab/nlp/nb:1", busy=0.0)
    uid = on_node(story, lambda _node, stage: stage.cluster.submit(notebook).uid)
    policy = GpuPolicy(name="gpus", zombie_after=None, idle_after=0.0, notice=60.0, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story, max_keep=3600.0) as made:
        answers = made.answers
        assert answers is not None
        path = link_maker(load_signer(str(tmp_path)), time.time)

        def link() -> str:
            return path("gpus", f"gpu-pod/{uid}", "li", True).removeprefix("keep/")

        wait_until(lambda: answers.question(link()).release is not None, SOON, "it is idle")
        answers.keep(link(), 3600.0, "")
        (entry,) = answers.release(link(), Principal("", Role.NONE), "li@10.0.0.9", lambda: None)
        assert (entry.state, entry.outcome, entry.item.name) == (ItemState.DONE, "evicted", "nlp/notebook-2")
        wait_until(lambda: uid not in on_node(story, lambda _, stage: set(stage.cluster.pods)), SOON, "it is released")
        assert made.journal.keeps.all() == {}
        (shown, *_) = made.history(1, None)
        assert (shown.run.policy, shown.run.by, shown.run.trigger) == ("release", "li@10.0.0.9", "release")
        wait_until(lambda: outbox.sent, SOON, "the release was reported")
        assert outbox.sent[0].subjects[0].finding.headline.values["by"] == "li@10.0.0.9"
