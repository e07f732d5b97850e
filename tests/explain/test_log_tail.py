"""Explanations of exits by what the agent found in the log."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.explain.first_failure import CONSEQUENCE_CAUSES
from monitor.explain.keys import Key
from monitor.explain.log_tail import crash_member
from monitor.explain.pod import explain_pod
from monitor.facts.cluster import Identity
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import ContainerStatusFact, PodFact, TerminationFact
from monitor.facts.log_tails import CONSEQUENCES, LogCause, LogTailFact
from monitor.i18n import say
from tests.explain.builders import NOW, agent, node, pod

SAY_NOTHING = (LogCause.APP, LogCause.UNKNOWN)
TOKEN = "hf_PLANTEDplantedPLANTEDplanted0000"


def ended(code: int = 1, *, ago: float = 30.0, reason: str = "Error", **more: Any) -> ContainerStatusFact:
    return ContainerStatusFact(
        name="main", state="terminated", reason=reason, exit_code=code, finished_at=NOW - ago, **more
    )


def failed(name: str = "bert-0", **more: Any) -> PodFact:
    status = ended(**({"container_id": f"id-{name}"} | more))
    return pod(name=name, uid=f"uid-{name}", node="gpu-01", phase="Failed", statuses=(status,))


def tail(cause: str, name: str = "bert-0", **more: Any) -> LogTailFact:
    return LogTailFact(container_id=f"id-{name}", cause=cause, **({"line": "the line"} | more))


def explain(explained: PodFact, *tails: LogTailFact, **facts: Any) -> tuple[str, str, str]:
    """Cause, and the explanation in English and Chinese."""
    given: dict[str, Any] = {
        "pods": [explained],
        "nodes": [node("gpu-01")],
        "agents": [agent("gpu-01", log_tails=tails)],
    }
    found = explain_pod(explained, make_cluster_facts(**(given | facts)), NOW)
    texts = (found.headline, *found.evidence, *found.advice)
    english, chinese = ("\n".join(say(language, text.key, text.values) for text in texts) for language in ("en", "zh"))
    return found.cause, english, chinese


@pytest.mark.parametrize("cause", [cause for cause in LogCause if cause not in SAY_NOTHING])
def test_every_class_has_texts_and_advice(cause: LogCause) -> None:
    code, english, chinese = explain(failed(), tail(cause.value, exception="KeyError", rank=3))
    assert code.startswith("crash-")
    assert "Its log says: the line" in english
    assert "它的日志：the line" in chinese
    assert "Rank 3 failed first" in english
    assert "{" not in english + chinese


@pytest.mark.parametrize("cause", [cause.value for cause in SAY_NOTHING] + ["of a newer agent"])
def test_a_log_that_says_nothing_leaves_the_exit_code(cause: str) -> None:
    assert explain(failed(), tail(cause))[0] == "crash-error"
    assert explain(failed(code=139), tail(cause))[0] == "crash-segfault"


OTHERS = [
    ("an out-of-memory kill", failed(code=137, reason="OOMKilled"), "crash-out-of-memory"),
    ("killed from outside", failed(code=137), "crash-killed"),
    ("asked to stop", failed(code=143), "crash-terminated"),
    ("another container", failed(container_id="other"), "crash-error"),
    ("an unknown container", failed(container_id=None), "crash-error"),
]


@pytest.mark.parametrize(("name", "explained", "cause"), OTHERS, ids=[case[0] for case in OTHERS])
def test_exits_that_the_log_does_not_explain(name: str, explained: PodFact, cause: str) -> None:
    assert explain(explained, tail("cuda-oom"))[0] == cause


def test_the_log_says_more_than_the_termination_message() -> None:
    explained = failed(message="No such file or directory")
    assert explain(explained, tail("mount-dead"))[0] == "crash-mount-dead"


def test_an_exception_without_a_name_is_not_named() -> None:
    assert explain(failed(), tail("python-exception"))[0] == "crash-error"
    assert "raised KeyError" in explain(failed(), tail("python-exception", exception="KeyError"))[1]


def test_the_previous_run_of_a_container_that_runs_again() -> None:
    last = TerminationFact(exit_code=1, finished_at=NOW - 60, container_id="id-bert-0")
    status = ContainerStatusFact(name="main", state="waiting", reason="CrashLoopBackOff", container_id="new", last=last)
    looping = pod(name="bert-0", node="gpu-01", phase="Running", statuses=(status,))
    assert explain(looping, tail("dns"))[0] == "crash-dns"


def test_a_token_of_an_old_agent_is_masked_again() -> None:
    _, english, chinese = explain(failed(), tail("http-denied", line=f"401 for https://u:{TOKEN}@hub?token={TOKEN}"))
    assert TOKEN not in english + chinese


def test_why_names_the_pod_that_failed_first() -> None:
    pods = [failed("rank-0", ago=30), failed("rank-1", ago=20), failed("rank-2", ago=40)]
    facts = {"pods": pods, "identities": {each.uid: Identity(job="bert") for each in pods}}
    tails = tail("nccl-peer", "rank-0"), tail("gpu-ecc", "rank-1"), tail("nccl-timeout", "rank-2")
    for symptom in (pods[0], pods[2]):
        _, english, chinese = explain(symptom, *tails, **facts)
        assert "Pod rank-1 of the same job failed first, on gpu-01" in english
        assert "Pod rank-1 最先失败" in chinese
    assert "failed first" not in explain(pods[1], *tails, **facts)[1]
    alone = {"identities": {each.uid: Identity(job=each.name) for each in pods}}
    assert "failed first" not in explain(pods[0], *tails, **(facts | alone))[1]


def test_consequences_are_the_same_for_classes_and_texts() -> None:
    end = TerminationFact(exit_code=1)
    members = {crash_member(end, tail(cause.value)) for cause in CONSEQUENCES} - {None}
    causes = {f"crash-{member}".lower().replace("_", "-") for member in members if member is not None}
    assert causes <= CONSEQUENCE_CAUSES
    assert all(cause.upper().replace("-", "_") in Key.__members__ for cause in CONSEQUENCE_CAUSES)


def test_an_agent_that_reads_no_logs() -> None:
    found = make_cluster_facts(pods=[failed()], nodes=[node("gpu-01")], agents=[agent("gpu-01")])
    assert explain_pod(failed(), found, NOW).cause == "crash-error"
    assert msgspec.json.decode(b'{"container_id":"x","cause":"y","of_a_newer":1}', type=LogTailFact).cause == "y"
