# ruff: noqa: E501  # tables: one row is one line
from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.detect.rules.pod_silent import CAUSES, RULE, Limits
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, Identity
from monitor.facts.kube import PodContainerFact, PodFact
from monitor.facts.workload import LogFact
from tests.detect.builders_pods import PODS_UNSEEN, after_change, due, held, none, one, text
from tests.explain.builders import GPU, NOW, agent, gpu_view, owned, pod, running_container, view

MAIN, SIDE = "a" * 64, "b" * 64
WITH_GPU = PodContainerFact(name="main", limits={GPU: 4.0})


def runs(age: float = 5000, **more: Any) -> PodFact:
    fields: dict[str, Any] = {"node": "n1", "phase": "Running", "gpus": 4, "containers": (WITH_GPU,)}
    return pod(**(fields | {"statuses": (running_container(container_id=MAIN, started_at=NOW - age),)} | more))


def log(of: str = MAIN, *, size: int | None = 10, quiet: float | None = 0, **more: Any) -> LogFact:
    return LogFact(container_id=of, size_bytes=size, written_at=None if quiet is None else NOW - quiet, **more)


def on(*logs: LogFact) -> AgentFact:
    return agent("n1", logs=logs)


CASES = [
    ("empty", runs(age=901), log(size=0, quiet=901), "never-logged", "15 min 1 s", "15 分钟 1 秒"),
    ("stopped", runs(), log(quiet=3601), "stopped-logging", "1 h", "1 小时"),
    ("not readable", runs(age=901), log(size=None, quiet=None, error="x.log: no such file"), "log-unreadable", "15 min 1 s", "15 分钟 1 秒"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "fact", "cause", "en", "zh"), CASES, ids=[case[0] for case in CASES])
def test_each_cause(name: str, given: PodFact, fact: LogFact, cause: str, en: str, zh: str) -> None:
    finding = one(RULE, pods=[given], agents=[on(fact)], identities=owned(bert_0="li"))
    assert finding.cause == cause
    assert en in text(finding)
    assert zh in text(finding, "zh")
    assert (finding.labels["container"], finding.labels["node"], finding.labels["user"]) == ("main", "n1", "li")


def test_every_cause_has_a_case() -> None:
    assert [case[3] for case in CASES] == list(CAUSES)


QUIET: list[tuple[str, PodFact, LogFact]] = [
    ("empty, and young", runs(age=899), log(size=0)),
    ("it wrote within the hour", runs(), log(quiet=3599)),
    ("it started within the hour", runs(age=3599), log(quiet=9000)),
    ("no GPUs", runs(gpus=0, containers=()), log(size=0)),
    (
        "nobody knows when it started",
        runs(statuses=(running_container(container_id=MAIN, started_at=None),)),
        log(size=0),
    ),
    ("it waits", runs(phase="Pending"), log(size=0)),
    ("it is being deleted", runs(deletion_at=NOW), log(size=0)),
    ("its log is not known", runs(), log("c" * 64, size=0)),
    ("how large its log is, is not known", runs(), log(size=None, quiet=None)),
    ("not readable yet", runs(age=5), log(size=None, quiet=None, error="x.log: no such file")),
]


@pytest.mark.parametrize(("name", "given", "fact"), QUIET, ids=[case[0] for case in QUIET])
def test_not_silent(name: str, given: PodFact, fact: LogFact) -> None:
    assert none(RULE, pods=[given], agents=[on(fact)])


def test_a_sidecar_that_talks_does_not_hide_it() -> None:
    both = (
        running_container(container_id=MAIN, started_at=NOW - 5000),
        running_container(name="proxy", container_id=SIDE, started_at=NOW - 5000),
    )
    containers = (WITH_GPU, PodContainerFact(name="proxy"))
    given = runs(statuses=both, containers=containers)
    assert one(RULE, pods=[given], agents=[on(log(size=0), log(SIDE))]).labels["container"] == "main"
    assert none(RULE, pods=[given], agents=[on(log(), log(SIDE, size=0))])


def test_a_notebook_need_not_talk() -> None:
    assert none(
        RULE, pods=[runs()], agents=[on(log(size=0))], identities={"uid-bert-0": Identity(workload_kind="Notebook")}
    )


def test_an_inference_service_need_not_talk() -> None:
    service = {"uid-bert-0": Identity(job="chat", inference=True)}
    assert none(RULE, pods=[runs()], agents=[on(log(size=0))], identities=service)


def test_it_says_what_its_cards_do() -> None:
    cards = view(cards=[gpu_view("n1", 0, GpuState.BUSY, runs(), utilization_ratio=0.9, memory_used_bytes=2**30)])
    assert "GPU: 90% busy, 1 GiB" in text(one(RULE, pods=[runs()], agents=[on(log(size=0))], view=cards))


def test_the_node_s_clock_is_not_ours() -> None:
    """It is 2,000 s behind: what looks like silence was written a moment ago."""
    behind = msgspec.structs.replace(on(log(quiet=4000)), received_at=NOW + 2000)
    assert none(RULE, pods=[runs()], agents=[behind])


def test_a_limit_of_its_own() -> None:
    assert none(RULE, limits=Limits(empty=9000), pods=[runs()], agents=[on(log(size=0))])


BLIND: list[tuple[str, dict[str, Any]]] = [
    ("the agent is silent", {"agents": [msgspec.structs.replace(on(log()), silent_since=NOW)]}),
    ("the agent is gone", {"agents": []}),
    ("the logs are not known", {"agents": [agent("n1")]}),
    ("pods cannot be seen", {"agents": [on(log())], "view": PODS_UNSEEN}),
]


@pytest.mark.parametrize(("name", "after"), BLIND, ids=[case[0] for case in BLIND])
def test_held(name: str, after: dict[str, Any]) -> None:
    before = {"pods": [runs()], "agents": [on(log(size=0))]}
    assert [left.held for left in held(RULE, before, {"pods": [runs()]} | after)] == [True]
    assert held(RULE, before, {"pods": [runs()], "agents": [on(log())]}) == ()


def test_when_time_alone_changes_it() -> None:
    assert due(RULE, pods=[runs(age=300)], agents=[on(log(size=0))]) == 600
    assert due(RULE, pods=[runs()], agents=[on(log(quiet=600))]) == 3000
    assert due(RULE, pods=[runs()], agents=[on(log(size=0))]) is None


def test_a_log_that_grows_again_resolves_it() -> None:
    before, after = ({"pods": [runs()], "agents": [on(log(quiet=quiet))]} for quiet in (3601, 0))
    assert after_change(RULE, before, after) == ()
    assert [finding.cause for finding in after_change(RULE, after, before)] == ["stopped-logging"]


def test_the_use_of_its_cards_is_current() -> None:
    given = {"pods": [runs()], "agents": [on(log(size=0))]}
    low, high = (view(cards=[gpu_view("n1", 0, GpuState.BUSY, runs(), utilization_ratio=x)]) for x in (0.1, 0.9))
    (finding,) = after_change(RULE, given | {"view": low}, given | {"view": high})
    assert "GPU: 90% busy" in text(finding)
