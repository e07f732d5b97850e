"""The daemon as a process: messages about the ends of jobs, also across kill -9, from an API server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from monitor.job_results.settings import LABEL
from tests.support import free_port, wait_until
from tests.support.command import command, quiet_environment, running
from tests.support.job_inbox import SOON, JobInbox, sees_jobs
from tests.support.living_api import LivingApi, kube_node, kube_pod


def at(seconds_ago: float = 0.0) -> str:
    return datetime.fromtimestamp(datetime.now(UTC).timestamp() - seconds_ago, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(name: str, node: str = "n1", **meta: Any) -> dict[str, Any]:
    """A running pod whose owner wants to know how it ends."""
    made = kube_pod(name, node, gpus=1, labels={LABEL: "true"}, creationTimestamp=at(60), **meta)
    made["status"]["containerStatuses"] = [{"name": "main", "state": {"running": {"startedAt": at(50)}}}]
    return made


def ended(given: dict[str, Any], code: int, why: str = "Error", **status: Any) -> dict[str, Any]:
    """The pod after its container has ended."""
    end = {"exitCode": code, "reason": why, "startedAt": at(50), "finishedAt": at()}
    phase = "Failed" if code else "Succeeded"
    containers = [{"name": "main", "state": {"terminated": end}}]
    return given | {"status": {"phase": phase, "containerStatuses": containers, **status}}


def disrupted(given: dict[str, Any], reason: str) -> dict[str, Any]:
    """The pod while Kubernetes deletes it for a reason."""
    meta = given["metadata"] | {"deletionTimestamp": at(-30), "deletionGracePeriodSeconds": 30}
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": at()}]
    return given | {"metadata": meta, "status": given["status"] | {"conditions": conditions}}


@contextmanager
def daemon(api: LivingApi, folder: Path, inbox: JobInbox) -> Iterator[subprocess.Popen[str]]:
    port = free_port()
    environ = quiet_environment(
        folder,
        DAEMON__LISTEN=f"127.0.0.1:{port}",
        DAEMON__KUBERNETES__ENABLED="yes",
        DAEMON__KUBERNETES__KUBECONFIG=api.kubeconfig(folder),
        DAEMON__CYCLE="500ms",
        DAEMON__ALERTS__RECEIVERS=json.dumps([{"name": "inbox", "kind": "webhook", "url": f"{inbox.base}/"}]),
        DAEMON__ALERTS__JOB_RESULTS="{}",
    )
    with running(command("daemon"), environ, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: sees_jobs(f"http://127.0.0.1:{port}"), SOON, "the daemon follows the API server")
        yield process


def knows(folder: Path, name: str) -> bool:
    """Whether a job is saved."""
    return name.encode() in b"".join(file.read_bytes() for file in folder.glob("alerts.db*"))


def test_each_end_is_one_message_with_its_cause(tmp_path: Path) -> None:
    api = LivingApi()
    for node in ("n1", "lost"):
        api.put("nodes", kube_node(node, 8))
    names = ("exit-0", "exit-1", "memory", "evicted", "preempted", "deleted", "deadline", "command")
    given = {name: pod(name) for name in names} | {"lost": pod("lost", "lost")}
    with api.served(), JobInbox() as inbox, daemon(api, tmp_path, inbox):
        for each in given.values():
            api.put("pods", each)
        wait_until(lambda: all(knows(tmp_path, f"job/lab/{name}") for name in given), SOON, "all are seen")
        api.put("pods", ended(given["exit-0"], 0, "Completed"))
        api.put("pods", ended(given["exit-1"], 1))
        api.put("pods", ended(given["memory"], 137, "OOMKilled"))
        api.put("pods", ended(given["deadline"], 137, reason="DeadlineExceeded"))
        api.put("pods", ended(given["command"], 128, "StartError"))
        evicted = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
        api.put("pods", given["evicted"] | {"status": evicted})
        api.put("pods", disrupted(given["preempted"], "PreemptionByScheduler"))
        for name in ("preempted", "deleted"):
            api.delete("pods", f"uid-{name}")
        api.delete("nodes", "uid-lost")
        api.delete("pods", "uid-lost")
        inbox.wait(
            ("exit-0", "JobFinished", "done"),
            ("exit-1", "JobFailed", "crash-error"),
            ("memory", "JobFailed", "crash-out-of-memory"),
            ("deadline", "JobFailed", "deadline"),
            ("command", "JobFailed", "start-other"),
            ("evicted", "JobStopped", "evicted"),
            ("preempted", "JobStopped", "preempted"),
            ("deleted", "JobStopped", "deleted"),
            ("lost", "JobStopped", "node-lost"),
        )


def test_a_killed_daemon_reports_what_has_ended_meanwhile_once(tmp_path: Path) -> None:
    api = LivingApi()
    api.put("nodes", kube_node("n1", 8))
    owner = {"kind": "Job", "name": "eight", "uid": "j1", "apiVersion": "batch/v1", "controller": True}
    workers = [pod(f"eight-{rank}", ownerReferences=[owner]) for rank in range(8)]
    job: dict[str, Any] = {"metadata": {"name": "eight", "namespace": "lab", "uid": "j1"}, "status": {}}
    api.put("jobs", job)
    with api.served(), JobInbox() as inbox:
        with daemon(api, tmp_path, inbox) as process:
            for each in (*workers, pod("gone")):
                api.put("pods", each)
            wait_until(lambda: knows(tmp_path, "eight-7") and knows(tmp_path, "job/lab/gone"), SOON, "all are saved")
            process.kill()
            process.wait()
        for rank, each in enumerate(workers):
            api.put("pods", ended(each, 7 if rank == 3 else 143))
        api.put("jobs", job | {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "x"}]}})
        api.delete("pods", "uid-gone")
        expected = (("eight", "JobFailed", "crash-error"), ("gone", "JobStopped", "unseen"))
        with daemon(api, tmp_path, inbox) as process:
            inbox.wait(*expected)
            process.kill()
            process.wait()
        with daemon(api, tmp_path, inbox):
            api.put("pods", pod("next"))
            wait_until(lambda: knows(tmp_path, "job/lab/next"), SOON, "the daemon has looked at all pods")
            api.put("pods", ended(pod("next"), 0))
            inbox.wait(*expected, ("next", "JobFinished", "done"))
        assert "Of 8 pods" in inbox.description("eight")
