"""gpu-underused: jobs that hardly use their GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from monitor.detect.engine import Engine
from monitor.detect.rules.gpu_underused import RULE, Limits
from monitor.facts import ContainerUsageFact, HostFact, ShmFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Identity
from monitor.facts.kube import ContainerStatusFact
from tests.cluster.builders import GIB, NOW, agent, card, device, pod, process
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, idle, rule_context, run, said

CONTAINER = "c" * 64
UP = ContainerStatusFact(name="c", state="running", started_at=NOW - 9000, container_id=CONTAINER)
JOB = pod("job", statuses=(UP,))
ON_CARD = process(pod_uid=JOB.uid, container_id=CONTAINER)


def busy(ratio: float = 0.1, used: int = 60 * GIB, peak: float | None = None, **parts: Any) -> AgentFact:
    fact = card(utilization_ratio=ratio, utilization_peak_ratio=peak, memory_used_bytes=used)
    return agent(fact, devices=(device(JOB),), processes=(ON_CARD,), **parts)


def watched(mean: float, seconds: float, ago: float = 15) -> dict[str, Any]:
    """A record covering `seconds`, last updated `ago`."""
    quarter = seconds / 4
    parts = [(NOW - ago - seconds + i * quarter, mean * quarter, quarter) for i in range(4)]
    return {"record": [NOW - ago, *(figure for part in parts for figure in part)]}


def usage(cores: float, limit: float | None = None) -> tuple[ContainerUsageFact, ...]:
    return (ContainerUsageFact(container_id=CONTAINER, cpu_cores=cores, cpu_limit_cores=limit),)


def shm(used: int, size: int) -> tuple[ShmFact, ...]:
    return (ShmFact(size_bytes=size, used_bytes=used, device=1, container_id=CONTAINER),)


HOST = HostFact(cpus=96, memory_total_bytes=1, memory_available_bytes=1, cpu_seconds_total={"iowait": 1000.0})
WAITED = {"io": {"n1": [NOW - 401, 200.0, NOW - 201, 400.0]}}
LOW = watched(0.1, 7200)


@dataclass(frozen=True)
class Case:
    name: str
    agent: AgentFact
    expect: list[str]
    memory: Any = field(default_factory=lambda: LOW)


CASES = (
    Case("nothing to be seen", busy(), ["unknown"]),
    Case("not watched for long enough", busy(), [], watched(0.1, 7180)),
    Case("just long enough", busy(), ["unknown"], watched(0.1, 7185)),
    Case("a fifth is enough", busy(0.2), [], watched(0.2, 7200)),
    Case("just below", busy(0.19), ["unknown"], watched(0.199, 7200)),
    Case("low just now", busy(0.0, peak=0.05), [], watched(0.5, 7200)),
    Case("high just now", busy(1.0), ["unknown"], watched(0.1, 7200)),
    Case("for the first time", busy(), [], None),
    Case("the CPU limit", busy(container_usage=usage(3.7, 4)), ["cpu-limit"]),
    Case("much CPU, no limit", busy(container_usage=usage(30.0)), ["unknown"]),
    Case("/dev/shm is full", busy(shm=shm(9 * GIB, 10 * GIB)), ["shm-small"]),
    Case("/dev/shm as it comes", busy(shm=shm(0, 64 * 1024**2)), ["shm-small"]),
    Case("/dev/shm is fine", busy(shm=shm(GIB, 10 * GIB)), ["unknown"]),
    Case("the node is waiting for its disks", busy(host=HOST), ["io-wait"], LOW | WAITED),
    Case("in bursts", busy(peak=0.95), ["data-loading"]),
    Case("little memory", busy(used=10 * GIB), ["low-batch"]),
    Case("garbage in the memory", busy(), [], {"record": [NOW, "x"], "io": 3}),
    Case("too short a record", busy(), [], {"record": [NOW]}),
    Case("a record of words", busy(), [], {"record": [NOW - 15, "a", "b", "c"]}),
    Case("other garbage", busy(), [], "x"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_underused(case: Case) -> None:
    found = run(RULE, rule_context(case.agent, pods=(JOB,)), {JOB.uid: case.memory})
    assert [cause for _, cause in causes(found)] == case.expect


def test_a_notebook_is_not_meant() -> None:
    who = {JOB.uid: Identity(user="bob", platform="kubeflow-notebook", workload_kind="Notebook")}
    assert causes(run(RULE, rule_context(busy(), pods=(JOB,), identities=who), {JOB.uid: LOW})) == []


def test_an_inference_service_is_not_meant() -> None:
    who = {JOB.uid: Identity(user="bob", job="chat", inference=True)}
    assert causes(run(RULE, rule_context(busy(), pods=(JOB,), identities=who), {JOB.uid: LOW})) == []


def test_cards_that_do_nothing_are_not_meant() -> None:
    """One card of two works well: the other is gpu-idle's, and must not spoil the mean."""
    two = agent(
        card(0, utilization_ratio=0.9),
        card(1),
        devices=(device(JOB), device(JOB, 1)),
        processes=(ON_CARD, process(101, 1, pod_uid=JOB.uid)),
    )
    found = run(RULE, rule_context(two, pods=(JOB,), memory=idle(9000, 1)), {JOB.uid: watched(0.9, 7200)})
    assert found.memory[JOB.uid]["record"][-2] == pytest.approx(0.9 * 15)


def test_what_was_not_seen_is_not_zero() -> None:
    memory = {JOB.uid: watched(0.5, 7200, ago=1000)}
    late = run(RULE, rule_context(busy(0.0, peak=0.0), pods=(JOB,)), memory).memory[JOB.uid]
    assert sum(late["record"][3::3]) <= 7200


def test_a_day_of_looks_keeps_the_record_small_and_forgets_the_morning() -> None:
    memory: Any = None
    for step in range(0, 36_000, 60):
        ratio = 0.9 if step < 18_000 else 0.05
        now = NOW + step
        given = rule_context(busy(ratio, received_at=now), pods=(JOB,), now=now)
        found = run(RULE, given, memory)
        memory = found.memory
        assert len(memory[JOB.uid]["record"]) <= 1 + 3 * 6
    assert causes(found) == [("warning", "unknown")]


def test_what_it_says() -> None:
    (finding,) = run(RULE, rule_context(busy(container_usage=usage(3.7, 4)), pods=(JOB,)), {JOB.uid: LOW}).findings
    assert finding.labels == {
        "node": "n1", "pod": "job", "namespace": "team", "user": "alice", "job": "bert", "queue": "vc1",
    }  # fmt: skip
    for part in ("used 1 GPU at 10% on average over 2 h", "3.7 of its limit of 4 cores", "alice"):
        assert part in said(finding)
    assert "CPU 限额" in said(finding, "zh")


def test_limits_of_one_node() -> None:
    assert causes(run(RULE, rule_context(busy(), pods=(JOB,)), {JOB.uid: LOW}, None, n1=Limits(below=0.05))) == []


BEFORE = rule_context(busy(), pods=(JOB,))
HIDDEN = {
    "the agent is silent": rule_context(busy(received_at=NOW - 90), pods=(JOB,)),
    "Kubernetes cannot be asked": rule_context(busy(), pods=(JOB,), pods_known=False),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_held_while_nothing_is_known(name: str) -> None:
    (finding,) = after_silence(RULE, BEFORE, HIDDEN[name], {JOB.uid: LOW})
    assert finding.held
    assert run(RULE, HIDDEN[name], {JOB.uid: LOW}).memory == {JOB.uid: LOW}


def test_pods_that_are_gone_are_forgotten() -> None:
    assert run(RULE, rule_context(agent(card())), {JOB.uid: LOW}).memory == {}


def test_a_pause_is_not_counted_but_what_was_before_is_kept() -> None:
    pause = rule_context(agent(card(), devices=(device(JOB),), processes=(ON_CARD,)), pods=(JOB,), memory=idle(9000, 0))
    found = run(RULE, pause, {JOB.uid: LOW})
    assert (found.findings, found.memory) == ((), {JOB.uid: LOW})


def test_a_busy_pod_is_sampled_even_if_nothing_changes() -> None:
    engine = Engine((RULE,), {})
    engine.evaluate(BEFORE)
    assert engine.next_at == NOW + 30


def test_words() -> None:
    assert catalog_problems(RULE) == []
