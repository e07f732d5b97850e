"""Real ends of real jobs: one message each, with the right cause."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from monitor.job_results.settings import LABEL
from tests.e2e.asker import settings
from tests.e2e.real_failures import full_empty_dir
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.lab.layout import NODE
from tests.lab.manifests import pod_manifest
from tests.support import free_port, wait_until
from tests.support.command import command, running
from tests.support.job_inbox import JobInbox, sees_jobs

pytestmark = pytest.mark.lab("1.35")  # reasons of disruptions
WANTED = {LABEL: "true"}
SOON = 120.0
EVICTION_SECONDS = 240.0  # the kubelet measures volumes once a minute, and removes orphans after as long
RETRY_SECONDS = 120.0  # a Job waits before it tries again
PRIORITY = "/apis/scheduling.k8s.io/v1/priorityclasses"


class Inbox(JobInbox):
    """Waits for the message about one of many jobs."""

    def expect(self, job: str, rule: str, cause: str, within: float = SOON) -> None:
        wait_until(lambda: self.about(job), within, f"a message about {job}")
        assert self.about(job) == [(job, rule, cause)]


@pytest.fixture(scope="module")
def inbox(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inbox]:
    with Inbox() as inbox, daemon(lab, tmp_path_factory.mktemp("results"), inbox):
        yield inbox


@contextmanager
def daemon(lab: Lab, state: Path, inbox: Inbox) -> Iterator[subprocess.Popen[str]]:
    """A daemon that reports the jobs with the label."""
    port = free_port()
    receiver = {"name": "inbox", "kind": "webhook", "url": f"{inbox.base}/"}
    environ = settings(lab, state, port) | {
        "GPUWARDEN_DAEMON__ALERTS__RECEIVERS": json.dumps([receiver]),
        "GPUWARDEN_DAEMON__ALERTS__JOB_RESULTS": "{}",
        "GPUWARDEN_LOG_LEVEL": "warning",  # the test does not read what the daemon says
    }
    with running(command("daemon"), environ, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: sees_jobs(f"http://127.0.0.1:{port}"), 30, "the daemon follows the cluster")
        yield process


@pytest.fixture
def scene(lab: Lab, inbox: Inbox) -> Iterator[Scene]:
    with Scene(lab, "results") as scene:
        yield scene


EXITS: list[tuple[str, dict[str, Any], str, str]] = [
    ("exit-0", {"command": ("true",)}, "JobFinished", "done"),
    ("exit-1", {"command": ("sh", "-c", "exit 1")}, "JobFailed", "crash-error"),
    ("memory", {"command": ("tail", "/dev/zero"), "container": {"resources": {"limits": {"memory": "24Mi"}}}},
     "JobFailed", "crash-out-of-memory"),
    ("deadline", {"spec": {"activeDeadlineSeconds": 2}}, "JobFailed", "deadline"),
    ("bad-command", {"command": ("no-such-program",)}, "JobFailed", "start-no-start-file"),
    ("pull", {"image": "127.0.0.1:1/team/train:1"}, "JobNotStarted", "pull-connection-refused"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fields", "rule", "cause"), EXITS, ids=[case[0] for case in EXITS])
def test_a_pod(
    lab: Lab, pods: list[Any], inbox: Inbox, name: str, fields: dict[str, Any], rule: str, cause: str
) -> None:
    job = f"results-{name}"
    pods.append(lab.run_pod(job, phase=None, labels=WANTED, **fields))
    inbox.expect(job, rule, cause)


def test_an_evicted_pod(lab: Lab, pods: list[Any], undo: ExitStack, tmp_path: Path, inbox: Inbox) -> None:
    fields = full_empty_dir(lab, undo, tmp_path)
    pods.append(lab.run_pod("results-evicted", labels=WANTED, **fields))
    inbox.expect("results-evicted", "JobStopped", "evicted-emptydir", EVICTION_SECONDS)


def test_a_deleted_pod(lab: Lab, inbox: Inbox) -> None:
    lab.delete_pods(lab.run_pod("results-deleted", labels=WANTED))
    inbox.expect("results-deleted", "JobStopped", "deleted")


def test_a_preempted_pod(lab: Lab, pods: list[Any], scene: Scene, inbox: Inbox) -> None:
    scene.create(PRIORITY, {"metadata": {"name": scene.name}, "value": 1000})
    pods.append(lab.run_pod("results-preempted", gpus=len(lab.gpu_ids), labels=WANTED))
    pods.append(lab.run_pod("results-urgent", gpus=1, phase=None, spec={"priorityClassName": scene.name}))
    inbox.expect("results-preempted", "JobStopped", "preempted")


def test_a_pod_whose_node_is_removed(lab: Lab, scene: Scene, inbox: Inbox) -> None:
    lost = scene.node("lost", gpus=8)
    scene.pod("results-lost", gpus=8, node=lost, labels=WANTED)
    path = f"{scene.path('v1', 'pods', 'results-lost')}/status"
    scene.api.patch(path, {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}})
    wait_until(lambda: scene.read("results-lost")["status"]["phase"] == "Running", 20, "it runs")
    time.sleep(2)  # as the daemon sees it
    lab.fake_nodes.remove(lost)
    inbox.expect("results-lost", "JobStopped", "node-lost", EVICTION_SECONDS)


def job_spec(script: str, **spec: Any) -> dict[str, Any]:
    """Spec of a Job whose pods run a script on the lab's node."""
    pod = pod_manifest("x", node=NODE, command=("sh", "-c", script), labels=WANTED)
    return {**spec, "template": {"metadata": {"labels": WANTED}, "spec": pod["spec"]}}


def test_a_job_of_eight_pods_is_one_message(scene: Scene, inbox: Inbox) -> None:
    script = 'if [ "$JOB_COMPLETION_INDEX" = 3 ]; then sleep 5; exit 7; fi; sleep 600'
    spec = job_spec(script, parallelism=8, completions=8, completionMode="Indexed", backoffLimit=0)
    scene.create_here("batch/v1", "jobs", "results-eight", spec=spec)
    inbox.expect("results-eight", "JobFailed", "crash-error")
    assert "Of 8 pods, results-eight-3-" in inbox.description("results-eight")


def test_a_job_that_retries_is_one_message(scene: Scene, inbox: Inbox) -> None:
    scene.create_here("batch/v1", "jobs", "results-retries", spec=job_spec("exit 1", backoffLimit=1))
    inbox.expect("results-retries", "JobFailed", "crash-error", RETRY_SECONDS)


def test_a_job_with_a_deadline(scene: Scene, inbox: Inbox) -> None:
    scene.create_here("batch/v1", "jobs", "results-late", spec=job_spec("sleep 600", activeDeadlineSeconds=3))
    inbox.expect("results-late", "JobFailed", "deadline")


def test_a_job_that_ends_while_the_daemon_is_killed(lab: Lab, pods: list[Any], tmp_path: Path) -> None:
    with Inbox() as inbox:
        with daemon(lab, tmp_path, inbox) as process:
            pods.append(lab.run_pod("results-killed", labels=WANTED, command=("sh", "-c", "sleep 15")))
            time.sleep(7)  # the job is saved
            process.kill()
        lab.cluster.wait_for_phase(pods[0], "Succeeded", 60)
        assert inbox.all() == []
        with daemon(lab, tmp_path, inbox):
            inbox.expect("results-killed", "JobFinished", "done")
        with daemon(lab, tmp_path, inbox):
            time.sleep(10)  # nothing is repeated
        assert inbox.all() == [("results-killed", "JobFinished", "done")]


def test_no_job_was_reported_twice(inbox: Inbox) -> None:
    jobs = [job for job, _, _ in inbox.all()]
    assert sorted(set(jobs)) == sorted(jobs)
    assert "results-urgent" not in jobs
