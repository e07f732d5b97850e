"""Cleanup in a real cluster, by a real agent and a real daemon with minimal permissions.

The lab's engine keeps its images on a small disk meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from monitor.cleanup.journal_records import ItemState
from monitor.present.cleanup import ShownRun
from tests.e2e import small_disk
from tests.e2e.cleaning import NODE, Account, Cleaner, Pods, cleaning, dead_kubelet, end_containers, left_by
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.support import wait_until

HIGH, LOW = 0.80, 0.65
FINALIZER = "lab.test/keep"
NEVER = "0 0 29 2 *"  # on demand only
POLICIES = (
    {
        "kind": "images", "name": "images", "mode": "enforce", "announce": "0s", "high": HIGH, "low": LOW,
        "min_age": "1s", "pins": ["harbor.lab/nlp/base*"],
        "protect_local": False,  # loaded, not pulled
    },
    {
        "kind": "pods", "name": "pods", "mode": "enforce", "announce": "0s", "cron": NEVER,
        "finished_after": "1s", "keep_newest": 0, "stuck_after": "2s",
    },
    {"kind": "gpus", "name": "gpus", "cron": NEVER, "zombie_after": "1s", "notice": "0s"},
)  # fmt: skip
RULES = {"pod_stuck_terminating": {"overdue": "2s"}}


@pytest.fixture(scope="module")
def disk(lab: Lab) -> Iterator[Path]:
    with small_disk.engine_on_small_disk(lab, megabytes=256) as disk:
        yield disk


@pytest.fixture(scope="module")
def scene(lab: Lab, disk: Path) -> Iterator[Scene]:
    with Scene(lab, "cleanup") as scene:
        yield scene


@pytest.fixture(scope="module")
def account(scene: Scene) -> Account:
    return Account(scene)


@pytest.fixture(scope="module")
def cleaner(lab: Lab, account: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cleaner]:
    directory = tmp_path_factory.mktemp("cleanup")
    kubeconfig = account.kubeconfig(lab.kubeconfig, directory)
    with cleaning(lab, kubeconfig, directory, POLICIES, RULES) as cleaner:
        yield cleaner


@pytest.fixture
def pods(lab: Lab, scene: Scene) -> Iterator[Pods]:
    made = Pods(lab, scene.name)
    yield made
    made.clear()


def full(pod: Any) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def planned(cleaner: Cleaner) -> list[str]:
    """Pods that would be deleted now."""
    return [each.name for each in cleaner.plan("pods").items]


def kept_by(cleaner: Cleaner) -> dict[str, str]:
    """Pods that would be kept, with their protection."""
    return {each.name: each.protection for each in cleaner.plan("pods").kept}


def outcomes(shown: ShownRun) -> list[tuple[str, ItemState, str | None]]:
    """Name, state and outcome of each item of a run."""
    return [(each.item.name, each.state, each.outcome) for each in shown.items]


def image(name: str) -> str:
    return f"harbor.lab/nlp/{name}:1"


# Images the cluster needs, each for another reason. They are the oldest.
NEEDED = ("runs", "finished", "waits", "nightly", "serving", "base")


def use(lab: Lab, scene: Scene, pods: Pods) -> list[Any]:
    """Use those images in the cluster and return the running pods."""
    for name in NEEDED:
        small_disk.load(lab, image(name), megabytes=4)
    running = [pods.run("runs", image=image("runs")), pods.run("with-gpu", gpus=1)]
    pods.run("finished", image=image("finished"), command=("echo", "done"), phase="Succeeded")
    pods.run("waits", image=image("waits"), gpus=9, phase=None)
    cron = {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": {"template": template("nightly")}}}
    scene.create_here(lab.variant.cron_jobs, "cronjobs", "nightly", spec=cron)
    always = template("serving", restartPolicy="Always")
    serving = {"replicas": 0, "selector": {"matchLabels": {"app": "serving"}}, "template": always}
    scene.create_here("apps/v1", "deployments", "serving", spec=serving)
    return [lab.cluster.read_pod(pod) for pod in running]


def template(name: str, **spec: str) -> dict[str, Any]:
    """Pod template with this image."""
    containers = [{"name": "main", "image": image(name)}]
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, "restartPolicy": "Never"} | spec}


def pile_up(lab: Lab, disk: Path) -> list[str]:
    """Load unused images until disk usage is between the thresholds, each with two names; return the first ones."""
    old: list[str] = []
    while small_disk.used_share(disk) < LOW + 0.01:
        old.append(image(f"old-{len(old)}"))
        small_disk.load(lab, old[-1], megabytes=12)
        lab.engine.tag(old[-1], second_name(old[-1]))
    return old


def second_name(name: str) -> str:
    return name.removesuffix(":1") + ":latest"


def containers(lab: Lab, pods: list[Any]) -> list[list[tuple[str, int, bool]]]:
    """Containers of each pod, their restart counts and whether they run."""
    return [
        [
            (each.container_id, each.restart_count, each.state.running is not None)
            for each in now.status.container_statuses
        ]
        for now in map(lab.cluster.read_pod, pods)
    ]


def test_a_disk_full_of_images_is_back_under_the_low_water_mark_by_itself(
    lab: Lab, scene: Scene, disk: Path, cleaner: Cleaner, pods: Pods
) -> None:
    running = use(lab, scene, pods)
    as_before = containers(lab, running)
    old = pile_up(lab, disk)
    user = pods.run("uses-old", image=old[0])  # least recently used first
    wait_until(lambda: (seen := cleaner.image(old[0])) and seen.last_used_at, 20, "its use is seen")
    lab.delete_pods(user)
    assert small_disk.used_share(disk) < HIGH
    assert cleaner.history("images") == ()

    names = lab.engine.images()
    small_disk.load(lab, image("new"), megabytes=40)
    shown = cleaner.wait_run("images", 0, limit=90)
    used, available = small_disk.used_bytes(disk)

    assert used <= LOW * (used + available)
    assert used + 13 * small_disk.MIB > LOW * (used + available), "it went on below the mark"
    done = {name for name, state, _ in outcomes(shown) if state is ItemState.DONE}
    assert done < set(old[1:]), "those that nobody used for the longest time go, and no more than need be"
    assert {state for _, state, _ in outcomes(shown)} <= {ItemState.DONE, ItemState.PLANNED}
    assert lab.engine.images() & names == names - done - set(map(second_name, done))
    assert containers(lab, running) == as_before
    assert all(runs for pod in as_before for _, _, runs in pod)
    # Kept images are still usable, and there is no registry to pull them from.
    pods.run("nightly-1", image=image("nightly"), container={"imagePullPolicy": "Never"})

    run = shown.run
    assert (run.trigger, run.end, run.node) == ("high-water", "low-water", NODE)
    assert (run.before or 0) >= HIGH
    assert run.after == pytest.approx(used / (used + available), abs=0.01)
    assert run.freed_bytes == pytest.approx((run.before or 0) * (used + available) - used, rel=0.1)


def test_a_zombie_is_released_once_its_container_is_gone(lab: Lab, cleaner: Cleaner, pods: Pods) -> None:
    pod = pods.run("bert", gpus=1, labels={"userName": "zhang"})
    card = cleaner.card_of(pod)
    uuid, index, pid = card.uuid or "", lab.gpu_ids.index(card.uuid or ""), lab.container_pid(pod)
    cleaner.nvml.process(index, pid)
    cleaner.becomes(uuid, "busy", pid)
    with left_by(pid) as left:
        with dead_kubelet(lab):
            lab.cluster.core.delete_namespaced_pod(
                pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0, _request_timeout=60
            )
            cleaner.becomes(uuid, "zombie", pid)
            refused = cleaner.ask("release", NODE, str(index))
            assert refused.returncode == 1
            assert "which is protected: container-left" in refused.stderr
            container = pod.status.container_statuses[0].container_id.partition("://")[2]
            assert lab.engine.container_pid(container) == pid, "it still runs"

            cleaner.release_zombie(lab, uuid, pid, left, pod)
        cleaner.has_released(uuid)


def test_a_pod_stuck_in_terminating_is_forced_only_if_nothing_keeps_it_and_nothing_of_it_is_left(
    lab: Lab, cleaner: Cleaner, pods: Pods
) -> None:
    kept, alive, ended = (pods.run(name) for name in ("kept", "alive", "ended"))
    pods.keep(kept, [FINALIZER])
    pods.delete(kept)
    wait_until(partial(cleaner.finds, "pod-stuck-terminating", "finalizer", pod="kept"), 30, "it is reported")
    with dead_kubelet(lab):
        pods.delete(alive)
        pods.delete(ended)
        end_containers(lab, ended)
        wait_until(lambda: planned(cleaner) == [full(ended)], 30, "it is planned")
        assert kept_by(cleaner) == {full(kept): "finalizer", full(alive): "process-left"}
        shown = cleaner.run("pods")
    assert outcomes(shown) == [(full(ended), ItemState.DONE, "forced")]
    assert pods.now(ended) is None
    left = pods.now(kept)
    assert left is not None, "it was forced"
    assert (left.metadata.uid, left.metadata.finalizers) == (kept.metadata.uid, [FINALIZER])
    wait_until(lambda: kept_by(cleaner).get(full(kept)) == "finalizer", 30, "the next plan keeps it too and says why")
    wait_until(partial(cleaner.finds, "pod-stuck-terminating", "finalizer", pod="kept"), 30, "it is still reported")


def test_without_the_right_to_delete_nothing_is_deleted(cleaner: Cleaner, account: Account, pods: Pods) -> None:
    pod = pods.run("over", command=("echo", "done"), phase="Succeeded")
    wait_until(lambda: planned(cleaner) == [full(pod)], 20, "it is planned")
    account.revoke()
    try:
        shown = cleaner.run("pods")
        assert outcomes(shown) == [(full(pod), ItemState.FAILED, "forbidden")]
        assert 'cannot delete resource "pods"' in (shown.items[0].message or "")
        assert "forbidden" in cleaner.ask("history", "pods", "--items").stdout
        left = pods.now(pod)
        assert left is not None
        assert left.metadata.deletion_timestamp is None
    finally:
        account.grant()
    assert outcomes(cleaner.run("pods")) == [(full(pod), ItemState.DONE, "deleted")]
    wait_until(lambda: pods.now(pod) is None, 10, "it is gone")
