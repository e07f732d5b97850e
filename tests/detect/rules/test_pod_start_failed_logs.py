# ruff: noqa: E501  # tables: one row is one line
"""pod-start-failed with what the logs of the containers say."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.correlation import explained
from monitor.detect.rules.pod_start_failed import RULE
from monitor.facts.cluster import Identity
from monitor.facts.kube import ContainerStatusFact, PodFact, TerminationFact
from monitor.facts.log_tails import LogTailFact
from tests.detect.builders_pods import due, none, one, run, text
from tests.explain.builders import NOW, agent, owned, pod, waiting

LOGGED: list[tuple[str, str, str]] = [
    ("cuda-oom", "out-of-memory", "out of GPU memory"),
    ("gpu-ecc", "gpu-fault", "uncorrectable memory error"),
    ("driver-mismatch", "gpu-driver", "Reboot n1"),
    ("disk-quota", "storage", "quota"),
    ("http-denied", "network", "credentials"),
    ("open-files", "limit", "open files"),
    ("nccl-peer", "distributed", "another rank"),
    ("python-exception", "program", "raised KeyError"),
    ("missing-symbol", "file-not-found", "shared library"),
    ("segfault", "bus-error", "segmentation fault"),
]
FROM_LOGS = {case[1] for case in LOGGED}


def given(*statuses: ContainerStatusFact, **more: Any) -> PodFact:
    return pod(**({"node": "n1", "phase": "Running", "statuses": statuses} | more))


def crashed(code: int = 1, *, number: int = 0, ago: float = 300) -> ContainerStatusFact:
    last = TerminationFact(reason="Error", exit_code=code, finished_at=NOW - ago, container_id=f"run-{number}")
    return waiting("CrashLoopBackOff", "back-off", restart_count=7, last=last)


def tail(cause: str, number: int = 0, **fields: Any) -> LogTailFact:
    known: dict[str, Any] = {"line": "the proving line", "exception": "KeyError"}
    return LogTailFact(container_id=f"run-{number}", cause=cause, **(known | fields))


@pytest.mark.parametrize(("logged", "cause", "says"), LOGGED, ids=[case[0] for case in LOGGED])
def test_the_log_names_the_cause(logged: str, cause: str, says: str) -> None:
    finding = one(RULE, pods=[given(crashed())], agents=[agent("n1", log_tails=(tail(logged),))])
    assert finding.cause == cause
    assert says in text(finding)
    assert "Its log says: the proving line" in text(finding)
    assert "它的日志：the proving line" in text(finding, "zh")
    assert finding.raw == "the proving line"


SILENT = [
    ("the line must not leave the node", tail("cuda-oom", line=None), "out-of-memory"),
    ("a class of a newer agent", tail("cosmic-rays"), "program"),
    ("nothing in the log", tail("unknown", line=None), "program"),
    ("the log of another container", tail("cuda-oom", 1), "program"),
]


@pytest.mark.parametrize(("name", "logged", "cause"), SILENT, ids=[case[0] for case in SILENT])
def test_logs_that_say_less(name: str, logged: LogTailFact, cause: str) -> None:
    assert one(RULE, pods=[given(crashed())], agents=[agent("n1", log_tails=(logged,))]).cause == cause


def test_the_first_report_waits_a_moment_for_the_log() -> None:
    fails = [given(crashed(ago=2))]
    assert none(RULE, pods=fails, agents=[agent("n1", log_tails=())])
    assert due(RULE, pods=fails, agents=[agent("n1", log_tails=())]) == 8
    assert one(RULE, pods=fails, agents=[agent("n1", log_tails=(tail("cuda-oom"),))]).cause == "out-of-memory"
    assert one(RULE, pods=fails, agents=[agent("n1")]).cause == "program"  # an agent that reads no logs
    assert one(RULE, pods=[given(crashed(ago=11))], agents=[agent("n1", log_tails=())]).cause == "program"
    assert one(RULE, pods=[given(crashed(ago=-60))], agents=[agent("n1", log_tails=())]).cause == "program"


@pytest.mark.parametrize(("code", "reason"), [(137, "OOMKilled"), (143, "Error"), (128, "StartError")])
def test_an_exit_that_no_log_explains_is_reported_at_once(code: int, reason: str) -> None:
    last = TerminationFact(reason=reason, exit_code=code, finished_at=NOW - 2, container_id="run-0")
    fails = given(waiting("CrashLoopBackOff", "back-off", restart_count=7, last=last))
    assert one(RULE, pods=[fails], agents=[agent("n1", log_tails=())])


def test_what_the_log_said_is_remembered() -> None:
    """While the next log is unread or the agent is silent; another exit code is another failure."""
    first = run(RULE, pods=[given(crashed())], agents=[agent("n1", log_tails=(tail("cuda-oom"),))])
    again = given(crashed(number=1, ago=2))
    assert one(RULE, memory=first.memory, pods=[again], agents=[agent("n1", log_tails=())]).cause == "out-of-memory"
    assert one(RULE, memory=first.memory, pods=[again]).cause == "out-of-memory"
    assert one(RULE, memory=first.memory, pods=[given(crashed(3, number=1, ago=2))]).cause == "program"


def test_a_program_that_fails_once_is_no_finding() -> None:
    end = ContainerStatusFact(
        name="main", state="terminated", reason="Error", exit_code=1, finished_at=NOW - 5, container_id="run-0"
    )
    failed = given(end, phase="Failed")
    assert none(RULE, pods=[failed], agents=[agent("n1", log_tails=(tail("python-exception"),))])
    assert none(RULE, pods=[failed], agents=[agent("n1", log_tails=(tail("nccl-peer"),))])
    assert one(RULE, pods=[failed], agents=[agent("n1", log_tails=(tail("gpu-ecc"),))]).cause == "gpu-fault"


def ranks(*failures: tuple[str, float]) -> dict[str, Any]:
    """Pods of one job with the class of their log and how long ago they failed."""
    pods = [
        given(crashed(number=number, ago=ago), name=f"rank-{number}", uid=f"uid-rank-{number}")
        for number, (_, ago) in enumerate(failures)
    ]
    tails = tuple(tail(cause, number) for number, (cause, _) in enumerate(failures))
    identities = {member.uid: Identity(user="li", job="bert") for member in pods}
    return {"pods": pods, "identities": identities, "agents": [agent("n1", log_tails=tails)]}


JOBS = [
    ("the first in time", [("cuda-oom", 300), ("cuda-oom", 200), ("cuda-oom", 250)], "rank-0", {"rank-1", "rank-2"}),
    ("a cause before consequences", [("nccl-peer", 300), ("gpu-ecc", 200), ("nccl-timeout", 100)], "rank-1", {"rank-0", "rank-2"}),
    ("only consequences", [("nccl-peer", 200), ("nccl-timeout", 300)], "rank-1", {"rank-0"}),
    ("a failure of its own, much later", [("cuda-oom", 5000), ("disk-full", 300), ("nccl-peer", 100)], "rank-0", {"rank-2"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "failures", "first", "others"), JOBS, ids=[case[0] for case in JOBS])
def test_the_first_failure_of_a_job_explains_the_others(
    name: str, failures: list[tuple[str, float]], first: str, others: set[str]
) -> None:
    findings = run(RULE, **ranks(*failures)).findings
    (cause,) = [finding for finding in findings if finding.explains]
    assert cause.labels["pod"] == first
    assert f"{len(others)} other pod" in text(cause)
    attributed = {f.labels["pod"] for f in explained(tuple(findings)) if f.explained_by == cause.key}
    assert attributed == others


def test_pods_without_a_job_explain_nothing() -> None:
    facts = ranks(("gpu-ecc", 300), ("nccl-peer", 200)) | {"identities": owned(rank_0="li", rank_1="li")}
    assert not any(finding.explains for finding in run(RULE, **facts).findings)
