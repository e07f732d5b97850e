"""gpu-idle: GPUs that a live pod holds without using them, and cases that only look like it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec import structs

from monitor.cluster.view import ViewMemory
from monitor.detect.engine import Engine
from monitor.detect.rules.gpu_idle import RULE, Limits
from monitor.facts import HostFact, LogFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Identity
from monitor.facts.kube import ContainerStatusFact, PodFact
from tests.cluster.builders import NOW, agent, card, device, pod, process
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, idle, rule_context, run, said

CONTAINER = "c" * 64
UNIT = "team/bert"


def runs(seconds: float, **more: Any) -> tuple[ContainerStatusFact, ...]:
    return (ContainerStatusFact(name="c", state="running", started_at=NOW - seconds, container_id=CONTAINER, **more),)


JOB = pod("job", statuses=runs(9000))
NOTEBOOK = pod("notebook", statuses=runs(9000))
WHO = {NOTEBOOK.uid: Identity(user="bob", job="notebook", platform="jupyterhub", workload_kind="Notebook")}


def one(power: float | None = None, who: PodFact = JOB, **parts: Any) -> AgentFact:
    fact = card(power_watts=power, power_limit_watts=parts.pop("limit", 400.0))
    return agent(fact, devices=(device(who),), **parts)


def logged(ago: float, size: int = 100, **more: Any) -> tuple[LogFact, ...]:
    return (LogFact(container_id=CONTAINER, size_bytes=size, written_at=NOW - ago, **more),)


def host(iowait: float) -> HostFact:
    return HostFact(cpus=96, memory_total_bytes=1, memory_available_bytes=1, cpu_seconds_total={"iowait": iowait})


ON_CARD = process(pod_uid=JOB.uid, container_id=CONTAINER)
EIGHT = tuple(device(JOB, index) for index in range(8))


@dataclass(frozen=True)
class Case:
    name: str
    agent: AgentFact
    expect: tuple[tuple[str, str], ...] = ()
    idle: ViewMemory = field(default_factory=lambda: idle(1800, 0))
    pod: PodFact = JOB
    memory: Any = None
    limits: Limits = Limits()  # noqa: RUF009  # frozen


WARNING, CRITICAL = (("warning", "idle-job"),), (("critical", "idle-job"),)
CASES = (
    Case("half an hour", one(), WARNING),
    Case("just below", one(), idle=idle(1799, 0)),
    Case("two hours", one(), CRITICAL, idle=idle(7200, 0)),
    Case("just below two hours", one(), WARNING, idle=idle(7199, 0)),
    Case("idle for days, but the pod is new", one(), idle=idle(90_000, 0), pod=pod("job", statuses=runs(1700))),
    Case("idle for days, the pod old enough", one(), WARNING, idle=idle(90_000, 0),
         pod=pod("job", statuses=runs(1800))),
    Case("its container was restarted", one(), idle=idle(7200, 0), pod=pod("job", statuses=runs(60))),
    Case("never in the first quarter of an hour, whatever the limit", one(), idle=idle(7200, 0),
         pod=pod("job", statuses=runs(899)), limits=Limits(warning_after=60)),
    Case("a quarter of an hour, with a shorter limit", one(), WARNING, idle=idle(7200, 0),
         pod=pod("job", statuses=runs(900)), limits=Limits(warning_after=60)),
    Case("a notebook", one(who=NOTEBOOK), (("warning", "idle-notebook"),), pod=NOTEBOOK),
    Case("notebooks have limits of their own", one(who=NOTEBOOK), pod=NOTEBOOK,
         limits=Limits(notebook_warning_after=14400)),
    Case("it hangs: log and card have stopped", one(processes=(ON_CARD,), logs=logged(1500)),
         (("warning", "hung-job"),)),
    Case("it still logs", one(processes=(ON_CARD,), logs=logged(60)), WARNING),
    Case("it is through: nothing on the card", one(logs=logged(1500)), WARNING),
    Case("it never logged", one(processes=(ON_CARD,), logs=logged(1500, size=0)), WARNING),
    Case("its log cannot be read", one(processes=(ON_CARD,), logs=logged(1500, error="denied")), WARNING),
    Case("the node's clock is an hour behind: it logs", agent(card(), devices=(device(JOB),), processes=(ON_CARD,),
         logs=logged(3601), at=NOW - 3601), WARNING),
    Case("a process waits for a disk", one(processes=(process(pod_uid=JOB.uid, state="D", state_since=NOW - 2),)),
         (("warning", "waiting-for-data"),)),
    Case("the node waits for I/O", one(host=host(600.0)), (("warning", "waiting-for-data"),),
         memory={"io": {"n1": [NOW - 401, 200.0, NOW - 201, 400.0]}}),
    Case("the node hardly waits", one(host=host(600.0)), WARNING, memory={"io": {"n1": [NOW - 401, 400.0] * 2}}),
    Case("no kernel runs, but it draws power", one(power=300.0), memory={"power": {"n1/0": [60.0, 0.0]}}),
    Case("it drew power a while ago", one(power=60.0), memory={"power": {"n1/0": [60.0, NOW - 1799]}}),
    Case("long ago", one(power=60.0), WARNING, memory={"power": {"n1/0": [60.0, NOW - 1800]}}),
    Case("an open context more than doubles what a small card draws", one(power=27.0, limit=70.0), WARNING,
         memory={"power": {"n1/0": [10.0, 0.0]}}),
    Case("garbage in the memory", one(power=60.0), WARNING, memory={"power": {"n1/0": "x"}, "io": {"n1": [1]}}),
    Case("other garbage", one(power=60.0), WARNING, memory=[1]),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_idle(case: Case) -> None:
    given = rule_context(case.agent, pods=(case.pod,), identities=WHO, memory=case.idle)
    unit = f"team/{identity.job}" if (identity := WHO.get(case.pod.uid)) else UNIT
    found = run(RULE, given, {unit: case.memory}, case.limits)
    assert tuple(causes(found)) == case.expect


def test_a_pod_of_which_no_start_is_known_is_not_idle() -> None:
    unstarted = pod("job", started_at=None, created_at=None, statuses=(ContainerStatusFact(name="c", state="waiting"),))
    assert causes(run(RULE, rule_context(one(who=unstarted), pods=(unstarted,), memory=idle(9000, 0)))) == []


def test_a_faulty_gpu_of_a_job_is_not_idle() -> None:
    """It has a rule of its own; the other one is reported."""
    two = agent(card(0, lost=True), card(1), devices=(device(JOB, 0), device(JOB, 1)))
    found = run(RULE, rule_context(two, pods=(JOB,), memory=idle(9000, 0, 1)))
    assert [each.labels["gpu"] for each in found.findings] == ["1"]


def test_memory_traffic_is_work() -> None:
    working = agent(card(memory_activity_ratio=0.01), devices=(device(JOB),))
    assert causes(run(RULE, rule_context(working, pods=(JOB,), memory=idle(9000, 0)))) == []


def eight(*idle_for: float) -> Any:
    """A job with eight GPUs, idle for these seconds; 0 means busy."""
    facts = [card(index, utilization_ratio=0.0 if seconds else 0.9) for index, seconds in enumerate(idle_for)]
    known = [idle(seconds, index).cards for index, seconds in enumerate(idle_for) if seconds]
    memory = ViewMemory(cards={key: value for each in known for key, value in each.items()})
    return rule_context(agent(*facts, devices=EIGHT), pods=(JOB,), memory=memory)


GROUPS: tuple[tuple[str, tuple[float, ...], list[tuple[str, str]]], ...] = (
    ("some cards of one job: one finding", (0, 0, 1800, 1800, 1800, 1800, 1800, 1800), [("warning", "partially-idle")]),
    ("for hours", (0, 0, 0, 0, 0, 0, 7200, 7200), [("critical", "partially-idle")]),
    ("not yet", (0, 0, 0, 0, 0, 0, 1799, 1799), []),
    ("all of them: one finding a card", (1800,) * 8, [("warning", "idle-job")] * 8),
    ("they stopped one after the other: it is not partly idle", (1800, *(1790,) * 7), [("warning", "idle-job")]),
)


@pytest.mark.parametrize(("name", "cards", "expect"), GROUPS, ids=[each[0] for each in GROUPS])
def test_jobs_with_several_cards(name: str, cards: tuple[float, ...], expect: list[tuple[str, str]]) -> None:
    assert causes(run(RULE, eight(*cards))) == expect


def test_a_job_over_two_nodes_is_one_finding_without_a_pod() -> None:
    other = pod("worker", node="n2", statuses=runs(9000))
    busy = agent(card(0, "n2", utilization_ratio=0.8), node="n2", devices=(device(other, 0, "n2"),))
    (finding,) = run(RULE, rule_context(one(), busy, pods=(JOB, other), memory=idle(1800, 0))).findings
    assert finding.cause == "partially-idle"
    assert finding.labels == {"namespace": "team", "user": "alice", "job": "bert", "queue": "vc1"}
    assert "1 of 2 have been idle for 30 min" in said(finding)
    assert "n1:0" in said(finding)


def test_what_it_says() -> None:
    hung = one(processes=(ON_CARD,), logs=logged(1500))
    (finding,) = run(RULE, rule_context(hung, pods=(JOB,), memory=idle(2000, 0))).findings
    assert "Pod team/job seems to hang: GPU 0 on n1 has been idle for 33 min 20 s" in said(finding)
    assert "Its last log line is 25 min old" in said(finding)
    assert "疑似卡死" in said(finding, "zh")
    assert finding.since == NOW - 2000


def test_a_shared_card_is_nobodys() -> None:
    other = pod("other", statuses=runs(9000))
    shared = agent(card(), devices=(device(JOB, replica=0), device(other, replica=1)))
    (finding,) = run(RULE, rule_context(shared, pods=(JOB, other), memory=idle(1800, 0))).findings
    assert finding.labels == {"node": "n1", "gpu": "0"}


IDLE = rule_context(one(), pods=(JOB,), memory=idle(1800, 0))
HIDDEN = {
    "the agent is silent": rule_context(one(received_at=NOW - 90), pods=(JOB,)),
    "Kubernetes cannot be asked": rule_context(one(), pods=(JOB,), pods_known=False),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_held_while_nothing_is_known(name: str) -> None:
    (finding,) = after_silence(RULE, IDLE, HIDDEN[name])
    assert (finding.held, finding.cause) == (True, "idle-job")


def test_a_job_of_which_one_node_is_silent_is_held_as_it_was() -> None:
    other = pod("worker", node="n2", statuses=runs(9000))
    busy = agent(card(0, "n2", utilization_ratio=0.8), node="n2", devices=(device(other, 0, "n2"),))
    silent = agent(card(0, "n2"), node="n2", devices=(device(other, 0, "n2"),), received_at=NOW - 90)
    before = rule_context(one(), busy, pods=(JOB, other), memory=idle(1800, 0))
    found = after_silence(RULE, before, rule_context(one(), silent, pods=(JOB, other), memory=idle(1800, 0)))
    assert [(each.cause, each.held) for each in found] == [("partially-idle", True)]


def test_what_it_draws_is_remembered_of_cards_that_exist() -> None:
    known = {UNIT: {"power": {"n1/0": [70.0, 5.0], "gone/0": [1.0, 2.0]}}}
    found = run(RULE, rule_context(one(power=60.0), pods=(JOB,)), known)
    assert found.memory[UNIT]["power"] == {"n1/0": [60.0, 5.0]}


def test_a_card_did_not_work_in_the_future_when_a_clock_was_set_back() -> None:
    known = {UNIT: {"power": {"n1/0": [60.0, NOW + 86400]}}}
    found = run(RULE, rule_context(one(power=60.0), pods=(JOB,)), known)
    assert found.memory[UNIT]["power"] == {"n1/0": [60.0, NOW]}


@pytest.mark.parametrize(
    ("seconds", "expect"), [(600, 300.0), (1000, 800.0), (1800, 60.0)], ids=["half", "limit", "reported"]
)
def test_when_time_alone_changes_something(seconds: float, expect: float) -> None:
    """Half the limit is when a GPU no longer counts as working; texts about a reported one are renewed."""
    engine = Engine((RULE,), {})
    engine.evaluate(rule_context(one(), pods=(JOB,), memory=idle(seconds, 0)))
    assert engine.next_at == NOW + expect


def test_a_restart_of_its_container_counts_at_once() -> None:
    engine, unchanged = Engine((RULE,), {}), one()
    assert len(engine.evaluate(rule_context(unchanged, pods=(JOB,), memory=idle(1800, 0)))) == 1
    restarted = rule_context(unchanged, pods=(pod("job", statuses=runs(60)),), memory=idle(1800, 0))
    assert engine.evaluate(restarted) == ()


def test_a_card_shared_by_two_jobs_is_one_finding() -> None:
    other = pod("other", statuses=runs(9000))
    shared = agent(card(), devices=(device(JOB, replica=0), device(other, replica=1)))
    who = {other.uid: Identity(user="bob", job="gpt")}
    (finding,) = run(RULE, rule_context(shared, pods=(JOB, other), identities=who, memory=idle(1800, 0))).findings
    assert finding.labels == {"node": "n1", "gpu": "0"}


def test_a_job_is_held_while_a_node_does_not_say_who_holds_its_cards() -> None:
    other = pod("worker", node="n2", statuses=runs(9000))
    busy = agent(card(0, "n2", utilization_ratio=0.8), node="n2", devices=(device(other, 0, "n2"),))
    assert busy.snapshot is not None
    unsaid = structs.replace(busy, snapshot=structs.replace(busy.snapshot, pod_devices=None))
    before = rule_context(one(), busy, pods=(JOB, other), memory=idle(1800, 0))
    found = after_silence(RULE, before, rule_context(one(), unsaid, pods=(JOB, other), memory=idle(1800, 0)))
    assert [(each.cause, each.held) for each in found] == [("partially-idle", True)]


def test_what_is_held_ends_when_the_node_reports_again_without_the_pod() -> None:
    engine, silent = Engine((RULE,), {}), one(received_at=NOW - 90)
    assert len(engine.evaluate(IDLE)) == 1
    assert [finding.held for finding in engine.evaluate(rule_context(silent, pods=(JOB,)))] == [True]
    assert [finding.held for finding in engine.evaluate(rule_context(silent))] == [True]
    assert engine.evaluate(rule_context(agent(card()))) == ()


def test_a_pod_deleted_from_a_silent_node_hides_its_job_no_longer() -> None:
    other = pod("worker", node="n2", statuses=runs(9000))
    silent = agent(card(0, "n2"), node="n2", devices=(device(other, 0, "n2"),), received_at=NOW - 90)
    engine, own = Engine((RULE,), {}), one()
    assert engine.evaluate(rule_context(own, silent, pods=(JOB, other), memory=idle(1800, 0))) == ()
    (finding,) = engine.evaluate(rule_context(own, silent, pods=(JOB,), memory=idle(1800, 0)))
    assert finding.cause == "idle-job"


def test_words() -> None:
    assert catalog_problems(RULE) == []


SERVICE = {JOB.uid: Identity(user="alice", job="chat", inference=True)}
CHAT = "team/chat"


def hours(letters: str) -> dict[str, Any]:
    return {CHAT: {"at": NOW - 60, "past": letters, "idle": 0.0, "seen": 0.0}}


def serving(letters: str = "", idle_for: float = 90_000) -> tuple[Any, ...]:
    context = rule_context(one(power=60.0), pods=(JOB,), identities=SERVICE, memory=idle(idle_for, 0))
    return run(RULE, context, hours(letters)).findings


def test_an_inference_service_that_waits_is_no_idle_job() -> None:
    assert serving() == ()
    assert run(RULE, rule_context(one(power=60.0), pods=(JOB,), memory=idle(90_000, 0))).findings != ()


def test_hours_at_which_an_inference_service_is_idle() -> None:
    (finding,) = serving(("b" * 18 + "i" * 6) * 3)
    assert (finding.cause, finding.severity.value) == ("idle-inference", "info")
    assert finding.labels == {"namespace": "team", "user": "alice", "job": "chat"}
    assert "Inference service team/chat left its 1 GPU idle at" in said(finding)
    assert "on each of the last 3 days" in said(finding)
    assert "推理服务 team/chat 最近 3 天每天" in said(finding, "zh")


def test_an_inference_service_that_nobody_uses() -> None:
    (finding,) = serving("i" * 72)
    assert (finding.cause, finding.severity.value) == ("unused-inference", "warning")
    assert "has not used its 1 GPU in the last 3 days" in said(finding)
    assert "没有使用" in said(finding, "zh")


def test_its_hours_are_remembered_while_it_works() -> None:
    context = rule_context(one(power=60.0), pods=(JOB,), identities=SERVICE)
    assert run(RULE, context, hours("b" * 9)).memory[CHAT]["past"].startswith("b" * 9)
