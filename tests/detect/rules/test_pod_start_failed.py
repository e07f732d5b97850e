# ruff: noqa: E501  # tables: one row is one line
from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.lib.start_failures import CAUSES
from monitor.detect.rules.pod_start_failed import RULE
from monitor.facts.kube import ConditionFact, ContainerStatusFact, PodFact, TerminationFact
from tests.detect.builders_pods import PODS_UNSEEN, due, held, none, one, rule_context, run, text
from tests.detect.rules.test_pod_start_failed_logs import FROM_LOGS
from tests.detect.running import evaluate
from tests.explain.builders import NOW, looping, owned, pod, running_container, waiting

NO_FILE = 'OCI runtime create failed: exec: "/start.sh": stat /start.sh: no such file or directory: unknown'
DENIED = 'OCI runtime create failed: exec: "/start.sh": permission denied: unknown'
MISMATCH = "OCI runtime create failed: error running hook #0: stderr: nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown"
CGROUP = "OCI runtime create failed: unable to apply cgroup configuration: mkdir /sys/fs/cgroup/memory/kubepods: no space left on device: unknown"
APPARMOR = 'load apparmor profile /tmp/x: parser error(""): exec: "apparmor_parser": executable file not found in $PATH'
DEAD = 'failed to stat "/var/lib/kubelet/pods/a/volumes/b": transport endpoint is not connected'
SECRET = 'secret "token" not found'


def given(*statuses: ContainerStatusFact, **more: Any) -> PodFact:
    return pod(**({"node": "n1", "phase": "Running", "statuses": statuses} | more))


def ended(code: int, *, ago: float = 5, **more: Any) -> ContainerStatusFact:
    fields: dict[str, Any] = {
        "name": "main",
        "state": "terminated",
        "reason": "Error",
        "exit_code": code,
        "finished_at": NOW - ago,
    }
    return ContainerStatusFact(**(fields | more))


CASES: list[tuple[str, PodFact, str, str]] = [
    ("command not found", given(looping(127)), "file-not-found", "exit code 127"),
    ("module not found", given(looping(1, message="ModuleNotFoundError: No module named 'torch'")), "file-not-found", "torch"),
    ("data not found", given(looping(1, message="FileNotFoundError: /data/x")), "file-not-found", "/data/x"),
    ("start file not found", given(waiting("RunContainerError", NO_FILE)), "file-not-found", "/start.sh"),
    ("start file not found, looping", given(looping(128, reason="StartError", message=NO_FILE)), "file-not-found", "/start.sh"),
    ("not executable", given(looping(126)), "not-executable", "chmod +x"),
    ("denied by the runtime", given(waiting("CreateContainerError", DENIED)), "not-executable", "permission denied"),
    ("no right to a file", given(looping(1, message="PermissionError: [Errno 13] /data")), "permission", "/data"),
    ("out of memory", given(looping(137, reason="OOMKilled")), "out-of-memory", "OOMKilled"),
    ("killed", given(looping(137)), "out-of-memory", "SIGKILL"),
    ("bus error", given(looping(135)), "bus-error", "/dev/shm"),
    ("segmentation fault", given(looping(139)), "bus-error", "SIGSEGV"),
    ("a secret is missing", given(waiting("CreateContainerConfigError", SECRET)), "config", "token"),
    ("a plain error, again and again", given(looping(1)), "program", "exit code 1"),
    ("driver and library differ", given(waiting("RunContainerError", MISMATCH)), "gpu-driver", "Drain and reboot n1"),
    ("no cgroup", given(waiting("RunContainerError", CGROUP)), "node-trouble", "cgroup"),
    ("no AppArmor", given(waiting("CreateContainerError", APPARMOR)), "security-profile", "apparmor_parser"),
    ("a dead mount", given(waiting("CreateContainerError", DEAD)), "volume", "FUSE"),
    ("nobody knows", given(waiting("CreateContainerError", "the moon is full")), "unknown", "moon"),
    ("for the first time, and it says why", given(ended(127)), "file-not-found", "exit code 127"),
    ("an init container", given(ended(126, init=True)), "not-executable", "exit code 126"),
    ("the pod has failed", given(ended(137, reason="OOMKilled"), phase="Failed"), "out-of-memory", "OOMKilled"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fails", "cause", "says"), CASES, ids=[case[0] for case in CASES])
def test_each_cause(name: str, fails: PodFact, cause: str, says: str) -> None:
    finding = one(RULE, pods=[fails], identities=owned(bert_0="li"))
    assert finding.cause == cause
    assert (finding.labels["pod"], finding.labels["container"], finding.labels["user"]) == ("bert-0", "main", "li")
    assert says in text(finding)
    assert "bert-0" in text(finding, "zh")
    assert finding.raw


def test_every_cause_has_a_case() -> None:
    assert {case[2] for case in CASES} | {case[3] for case in REMOVED} | FROM_LOGS == set(CAUSES)


# A pod that the kubelet removes may have no container status at all.
REMOVED: list[tuple[str, str, str, str, str]] = [
    ("no device", "UnexpectedAdmissionError", "Allocate failed due to rpc error: code = Unknown desc = failed to find gpu id, which is unexpected", "refused", "device plugin"),
    ("no room", "OutOfnvidia.com/gpu", "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu", "refused", "Submit it again"),
    ("its own volume", "Evicted", 'Usage of EmptyDir volume "shm" exceeds the limit "8Gi".', "evicted", "sizeLimit"),
    ("the node's disk", "Evicted", "The node was low on resource: ephemeral-storage. Container app was using 34260Ki", "evicted", "Free space on n1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reason", "message", "cause", "says"), REMOVED, ids=[case[0] for case in REMOVED])
def test_removed_by_the_kubelet(name: str, reason: str, message: str, cause: str, says: str) -> None:
    finding = one(RULE, pods=[given(phase="Failed", reason=reason, message=message)], identities=owned(bert_0="li"))
    assert (finding.cause, finding.labels["pod"], finding.labels["user"]) == (cause, "bert-0", "li")
    assert says in text(finding)
    assert finding.raw == message.strip()
    assert "bert-0" in text(finding, "zh")


QUIET = [
    ("it runs", given(running_container())),
    ("it ran into trouble once and runs", given(running_container(restart_count=1, last=TerminationFact(exit_code=1)))),
    ("it is waiting for its image", given(waiting("ImagePullBackOff"))),
    ("it is being created", given(waiting("ContainerCreating"))),
    ("an init container is done", given(ended(0, init=True))),
    ("an error for the first time", given(ended(1))),
    ("a program failed, as programs do", given(ended(1), phase="Failed")),
    ("it failed long ago", given(ended(127, ago=3601), phase="Failed")),
    (
        "its node threw it out long ago",
        given(ended(137, ago=3601), phase="Failed", reason="Evicted", created_at=NOW - 9000),
    ),
    (
        "it was preempted",
        given(
            ended(137),
            phase="Failed",
            conditions=(ConditionFact(type="DisruptionTarget", status=True, reason="PreemptionByScheduler"),),
        ),
    ),
    (
        "its sidecar was killed at the end",
        given(ended(0), ended(137, name="proxy", init=True, sidecar=True), phase="Running"),
    ),
    ("its node was shut down", given(ended(137), phase="Failed", reason="Terminated")),
    ("it is being deleted", given(looping(137), deletion_at=NOW)),
    ("it has done its work", given(ended(1), phase="Succeeded")),
]


@pytest.mark.parametrize(("name", "fine"), QUIET, ids=[case[0] for case in QUIET])
def test_no_trouble(name: str, fine: PodFact) -> None:
    assert none(RULE, pods=[fine])


def test_a_moment_of_running_between_two_crashes_is_no_recovery() -> None:
    last = TerminationFact(exit_code=137, reason="OOMKilled", finished_at=NOW - 300)
    first = run(RULE, pods=[given(looping(137, reason="OOMKilled"))])
    again = given(running_container(started_at=NOW - 5, restart_count=8, last=last))
    assert one(RULE, memory=first.memory, pods=[again]).cause == "out-of-memory"
    steady = given(running_container(started_at=NOW - 601, restart_count=8, last=last))
    assert none(RULE, memory=first.memory, pods=[steady])


def test_since_when_is_remembered_and_forgotten_with_the_pod() -> None:
    first = run(RULE, pods=[given(looping(127))])
    later = evaluate(RULE, rule_context(now=NOW + 60, pods=[given(looping(127))], limits=RULE.limits()), first.memory)
    assert [finding.since for finding in later.findings] == [NOW]
    assert run(RULE, memory=later.memory).memory == {}


def test_held_while_pods_cannot_be_seen() -> None:
    before = {"pods": [given(looping(127))]}
    assert [left.held for left in held(RULE, before, {"view": PODS_UNSEEN})] == [True]
    assert held(RULE, before, {}) == ()


RAN = TerminationFact(exit_code=137, reason="OOMKilled", finished_at=NOW - 300)
DUE: list[tuple[str, PodFact, float | None]] = [
    ("it runs steadily", given(running_container(started_at=NOW - 5, restart_count=8, last=RAN)), 595),
    ("a first error that may not recur", given(ended(1, ago=20)), 40),
    ("a failed pod is no longer reported", given(ended(127, ago=600), phase="Failed"), 3000),
    ("it loops", given(looping(127)), None),
]


@pytest.mark.parametrize(("name", "fails", "seconds"), DUE, ids=[case[0] for case in DUE])
def test_when_time_alone_changes_it(name: str, fails: PodFact, seconds: float | None) -> None:
    assert due(RULE, memory={"uid-bert-0": {"main": NOW - 900}}, pods=[fails]) == seconds


def test_it_says_how_long_it_ran_not_how_long_it_has_failed() -> None:
    memory = {"uid-bert-0": {"main": NOW - 9000}}
    assert "It had run for 1 min 40 s" in text(one(RULE, memory=memory, pods=[given(looping(127))]))
