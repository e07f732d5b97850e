# ruff: noqa: E501  # a case is a row of a table
"""The engine: which subjects are evaluated and when, what is held, remembered, correlated and bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest
from msgspec import structs

from monitor.detect.base import NOTHING, UNKNOWN, Limits, Override, Rule, RuleContext, RuleResult, SubjectKind, lasting
from monitor.detect.bounds import MAX_FINDINGS_PER_NODE, TOO_MANY
from monitor.detect.engine import ADOPTION_SECONDS, Detection, Engine, detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rule_state import RULE_BROKEN
from monitor.detect.rules import RULES
from monitor.detect.subjects import ClusterDisk, GpuSubject, ImageCopies, NodeSubject
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState, NodeView, SourceView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.gpu import GpuInventory
from monitor.facts.kube import PodFact
from monitor.facts.node import CollectorFact
from monitor.facts.services import ServiceFact
from monitor.facts.storage import DiskFact, ImageCacheFact, ImageFact
from monitor.facts.text import Text
from monitor.i18n import LANGUAGES, say
from tests.explain.builders import NOW, agent, event, gpu_view, node, pod

SEEN = (SourceView(name="pods", ok=True), SourceView(name="nodes", ok=True))
LOST = (SourceView(name="pods", ok=False, why="stale"), SourceView(name="nodes", ok=True))
STANDALONE = (SourceView(name="kubernetes", ok=False, why="switched off"),)
ON_N1 = (Scope(labels={"node": "n1"}),)


@dataclass(frozen=True)
class None_:
    """A rule without limits."""


@dataclass(frozen=True)
class After:
    """A rule with one limit."""

    after: float = 60.0


def finding(rule: str = "a", **more: Any) -> Finding:
    given: dict[str, Any] = {
        "severity": Severity.WARNING, "cause": "x", "labels": {"node": "n1"}, "headline": Text(key="card-memory")
    }  # fmt: skip
    return Finding(rule=rule, **(given | more))


def rule(name: str, evaluate: Any, scope: SubjectKind = SubjectKind.CLUSTER, limits: Any = None_, **more: Any) -> Rule:
    return Rule(name, limits, ("x",), evaluate, scope, **more)


def finds(name: str, *findings: Finding, memory: Any = None, blind: tuple[Scope, ...] = ()) -> Rule:
    """A rule that finds the same whatever the facts are."""
    return rule(name, lambda *_: RuleResult(findings, memory, blind))


def unready(node: NodeSubject, _context: RuleContext, memory: Any, _now: float) -> RuleResult:
    """A node that is not ready. The memory counts the evaluations."""
    found = (finding(labels={"node": node.name}),) if node.fact is not None and not node.fact.ready else ()
    return RuleResult(found, (memory or 0) + 1)


UNREADY = rule("a", unready, SubjectKind.NODE, uses=("node",))


@dataclass
class Recorder:
    """A rule that records which subjects it is given."""

    scope: SubjectKind
    name_of: Callable[[Any], str]
    given: list[str] = field(default_factory=list)

    def rule(self, **more: Any) -> Rule:
        return rule("a", self._evaluate, self.scope, **more)

    def _evaluate(self, subject: Any, _context: RuleContext, _memory: Any, _now: float) -> RuleResult:
        self.given.append(self.name_of(subject))
        return NOTHING

    def taken(self) -> list[str]:
        """Names of the subjects since the last call."""
        names, self.given = sorted(self.given), []
        return names


def context(
    *, now: float = NOW, sources: Sequence[SourceView] = SEEN, services: Sequence[ServiceFact] = (), **facts: Any
) -> RuleContext:
    given = {"view": ClusterView(at=now, sources=tuple(sources))} | facts
    return RuleContext(make_cluster_facts(**given), now, tuple(services))


def run(
    *rules: Rule,
    before: DetectionHistory | None = None,
    limits: dict[str, Limits[Any]] | None = None,
    given: RuleContext | None = None,
) -> Detection:
    return detect(rules, limits or {}, given or context(), before or DetectionHistory())


def saved(history: DetectionHistory) -> DetectionHistory:
    """The history after a restart."""
    return msgspec.json.decode(msgspec.json.encode(history), type=DetectionHistory)


def told(found: Sequence[Finding]) -> list[tuple[str, bool]]:
    """Node of each finding and whether it is held."""
    return [(each.labels["node"], each.held) for each in found]


def test_what_is_found_is_in_a_stable_order() -> None:
    one, two = finding("a"), finding("b")
    found = run(finds("b", two), finds("a", one)).findings
    assert found == run(finds("a", one), finds("b", two)).findings == (one, two)


def test_a_rule_that_is_off_finds_nothing_and_forgets() -> None:
    before = run(finds("a", finding(), memory=1)).history
    after = run(finds("a", finding(), memory=1), before=before, limits={"a": Limits(None_(), enabled=False)})
    assert (after.findings, after.history.units) == ((), {})


def test_each_rule_is_given_its_own_limits_and_its_own_memory() -> None:
    seen: dict[str, tuple[Any, Any]] = {}

    def note(name: str) -> Rule:
        def evaluate(_facts: ClusterFacts, context: RuleContext, memory: Any, _now: float) -> RuleResult:
            seen[name] = (context.limits, memory)
            return RuleResult(memory=name)

        return rule(name, evaluate)

    limits = Limits(None_(), (Override({"node": "n*"}, None_()),))
    before = run(note("a"), note("b"), limits={"a": limits}).history
    assert seen == {"a": (limits, None), "b": (Limits(None_()), None)}
    run(note("a"), note("b"), before=before)
    assert seen == {"a": (Limits(None_()), "a"), "b": (Limits(None_()), "b")}


def test_limits_of_a_subject_are_those_of_the_first_override_that_matches() -> None:
    def evaluate(node: NodeSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
        after = context.limits.of({"node": node.name}).after
        return lasting("x", after, memory, now, lambda since: finding(labels={"node": node.name}, since=since))

    slow = Limits(After(), (Override({"node": "n2"}, After(90.0)), Override({"node": "*"}, After(30.0))))
    engine = Engine([rule("a", evaluate, SubjectKind.NODE, After)], {"a": slow})
    given = context(nodes=[node("n1"), node("n2")])
    found = [told(engine.evaluate(replace(given, now=NOW + after))) for after in (0, 30, 89, 90)]
    assert found == [[], [("n1", False)], [("n1", False)], [("n1", False), ("n2", False)]]


def test_a_rule_is_given_the_rules_that_it_suppresses() -> None:
    seen: list[tuple[str, ...]] = []

    def evaluate(_facts: ClusterFacts, context: RuleContext, _memory: Any, _now: float) -> RuleResult:
        seen.append(context.symptoms)
        return NOTHING

    symptoms = [replace(finds(name), suppressed_by=("cause",)) for name in ("z", "a")]
    run(rule("cause", evaluate), *symptoms, finds("other"))
    assert seen == [("a", "z")]


# Only what has changed is evaluated


def changed(heard: AgentFact, received_at: float = NOW + 5, **parts: Any) -> AgentFact:
    """The next answer of an agent, with these parts of its snapshot replaced."""
    assert heard.snapshot is not None
    return structs.replace(heard, received_at=received_at, snapshot=structs.replace(heard.snapshot, **parts))


def disk(mount: str = "/", **more: Any) -> DiskFact:
    given: dict[str, Any] = {"device": "/dev/sda", "fstype": "ext4", "size_bytes": 100, "used_bytes": 50}
    return DiskFact(mount=mount, **(given | more))


def nas(used: int) -> DiskFact:
    return disk("/data", device="nas:/data", fstype="nfs", roles=("nas",), used_bytes=used)


A1 = agent(
    "n1",
    disk=(disk(), nas(1)),
    logs=(),
    images=(ImageCacheFact(runtime="docker", images=(ImageFact(id="i", names=("x:1",)),)),),
)
A2 = agent("n2", disk=(nas(2),), logs=())
P1, P2 = pod("p1", node="n1"), pod("p2", node="n2")
SERVICE = ServiceFact(name="harbor", kind="http", target="x", ok=True, at=NOW)
GPUS = (gpu_view("n1", 0, GpuState.FREE), gpu_view("n2", 0, GpuState.FREE))
VIEW = ClusterView(at=NOW, sources=SEEN, gpus=GPUS, nodes=(NodeView(name="n1"), NodeView(name="n2")))
BUSIER = {"view": structs.replace(VIEW, gpus=(GPUS[0], gpu_view("n2", 0, GpuState.FREE, utilization_ratio=0.9)))}
BASE: dict[str, Any] = {
    "nodes": [node("n1"), node("n2")],
    "agents": [A1, A2],
    "pods": [P1, P2],
    "view": VIEW,
    "services": [SERVICE],
}
NODE_NAME: Callable[[NodeSubject], str] = lambda subject: subject.name  # noqa: E731  # a table is easier to read
POD_NAME: Callable[[PodFact], str] = lambda subject: subject.name  # noqa: E731
GPU_NAME: Callable[[GpuSubject], str] = lambda subject: f"{subject.view.node} {subject.view.index}"  # noqa: E731
DISK_NAME: Callable[[ClusterDisk], str] = lambda subject: f"{subject.location} {subject.fact.used_bytes}"  # noqa: E731
IMAGE_NAME: Callable[[ImageCopies], str] = lambda subject: f"{len(subject.copies)} copies"  # noqa: E731
CHANGED: list[tuple[str, SubjectKind, Callable[[Any], str], tuple[str, ...], dict[str, Any], list[str]]] = [
    ("nothing", SubjectKind.NODE, NODE_NAME, ("logs", "node"), {}, []),
    ("only the time of an answer", SubjectKind.NODE, NODE_NAME, ("logs", "node"), {"agents": [changed(A1), A2]}, []),
    ("a part that the rule uses", SubjectKind.NODE, NODE_NAME, ("logs",), {"agents": [changed(A1, logs=None), A2]}, ["n1"]),
    ("a part that it does not use", SubjectKind.NODE, NODE_NAME, ("logs",), {"agents": [changed(A1, disk=()), A2]}, []),
    ("an agent falls silent", SubjectKind.NODE, NODE_NAME, (), {"agents": [A1, structs.replace(A2, silent_since=NOW)]}, ["n2"]),
    ("an agent is gone", SubjectKind.NODE, NODE_NAME, (), {"agents": [A1]}, ["n2"]),
    ("the node in Kubernetes", SubjectKind.NODE, NODE_NAME, ("node",), {"nodes": [node("n1", ready=False), node("n2")]}, ["n1"]),
    ("the node in Kubernetes, not used", SubjectKind.NODE, NODE_NAME, ("logs",), {"nodes": [node("n1", ready=False), node("n2")]}, []),
    ("a pod on the node", SubjectKind.NODE, NODE_NAME, ("pods",), {"pods": [P2]}, ["n1"]),
    ("a pod on the node, not used", SubjectKind.NODE, NODE_NAME, ("logs",), {"pods": [P2]}, []),
    ("a node is added", SubjectKind.NODE, NODE_NAME, ("node",), {"nodes": [node("n1"), node("n2"), node("n3")]}, ["n3"]),
    ("a pod", SubjectKind.POD, POD_NAME, (), {"pods": [P1, structs.replace(P2, phase="Failed")]}, ["p2"]),
    ("an event of a pod", SubjectKind.POD, POD_NAME, (), {"events": [event("Failed", "x", about=P1)]}, ["p1"]),
    ("a part of the pod's node", SubjectKind.POD, POD_NAME, ("logs",), {"agents": [changed(A1, logs=None), A2]}, ["p1"]),
    ("the agent of its node falls silent", SubjectKind.POD, POD_NAME, ("logs",), {"agents": [structs.replace(A1, silent_since=NOW), A2]}, ["p1"]),
    ("a part of its node, not used", SubjectKind.POD, POD_NAME, (), {"agents": [changed(A1, logs=None), A2]}, []),
    ("a GPU", SubjectKind.GPU, GPU_NAME, (), {"view": structs.replace(VIEW, gpus=(GPUS[0], gpu_view("n2", 0, GpuState.BUSY)))}, ["n2 0"]),
    ("only the figures of a GPU", SubjectKind.GPU, GPU_NAME, (), BUSIER, []),
    ("the figures of a GPU, which it uses", SubjectKind.GPU, GPU_NAME, ("gpus",), BUSIER, ["n2 0"]),
    ("a local disk and so all of its node", SubjectKind.MOUNT, DISK_NAME, (), {"agents": [changed(A1, disk=(disk(used_bytes=60), nas(1))), A2]}, ["n1 60", "nas:/data 2"]),
    ("a NAS on one node", SubjectKind.MOUNT, DISK_NAME, (), {"agents": [A1, changed(A2, disk=(nas(3),))]}, ["nas:/data 3"]),
    ("an image that is gone on all nodes", SubjectKind.IMAGE, IMAGE_NAME, (), {"agents": [changed(A1, images=()), A2]}, []),
    ("an image on another node", SubjectKind.IMAGE, IMAGE_NAME, (), {"agents": [A1, changed(A2, images=A1.snapshot.images)]}, ["2 copies"]),  # type: ignore[union-attr]
    ("a service", SubjectKind.SERVICE, lambda subject: subject.name, (), {"services": [SERVICE, structs.replace(SERVICE, name="pg")]}, ["pg"]),
    ("the API server is lost", SubjectKind.SERVICE, lambda subject: subject.name, (), {"view": structs.replace(VIEW, sources=LOST)}, ["harbor", "kubernetes"]),
    ("the cluster, by what it uses", SubjectKind.CLUSTER, lambda _: "all", ("pods",), {"pods": [P1]}, ["all"]),
    ("the cluster, by a part of a node", SubjectKind.CLUSTER, lambda _: "all", ("logs",), {"agents": [changed(A1, logs=None), A2]}, ["all"]),
    ("the cluster, by what it does not use", SubjectKind.CLUSTER, lambda _: "all", ("nodes",), {"pods": [P1]}, []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "scope", "name_of", "uses", "change", "expect"), CHANGED, ids=[row[0] for row in CHANGED]
)
def test_only_what_has_changed_is_evaluated(
    name: str,
    scope: SubjectKind,
    name_of: Callable[[Any], str],
    uses: tuple[str, ...],
    change: dict[str, Any],
    expect: list[str],
) -> None:
    recorder = Recorder(scope, name_of)
    engine = Engine([recorder.rule(uses=uses)], {})
    engine.evaluate(context(**BASE))
    assert recorder.taken() != []
    engine.evaluate(context(**(BASE | change), now=NOW + 5))
    assert recorder.taken() == expect


@pytest.mark.parametrize("now", [NOW - 2, NOW + 1])
def test_a_clock_that_was_set_back_makes_everything_due(now: float) -> None:
    recorder = Recorder(SubjectKind.NODE, NODE_NAME)
    engine = Engine([recorder.rule()], {})
    engine.evaluate(context(**BASE))
    recorder.taken()
    engine.evaluate(context(**BASE, now=now))
    assert recorder.taken() == (["n1", "n2"] if now < NOW else [])


def test_everything_is_evaluated_when_kubernetes_is_lost_or_back() -> None:
    recorder = Recorder(SubjectKind.NODE, NODE_NAME)
    engine = Engine([recorder.rule(kube=("pods",))], {})
    given = {name: value for name, value in BASE.items() if name != "view"}
    counts = []
    for sources in (SEEN, LOST, LOST, SEEN, SEEN):
        engine.evaluate(context(**given, sources=sources))
        counts.append(len(recorder.taken()))
    assert counts == [2, 0, 0, 2, 0]


def test_a_silent_agent_makes_only_its_node_due() -> None:
    recorder = Recorder(SubjectKind.NODE, NODE_NAME)
    engine = Engine([recorder.rule()], {})
    for agents, well in (([A1, A2], True), ([A1, structs.replace(A2, silent_since=NOW)], False)):
        recorder.taken()
        engine.evaluate(context(agents=agents, sources=(*SEEN, SourceView(name="agents", ok=well))))
    assert recorder.taken() == ["n2"]


# Time


def due(at: dict[str, float | None]) -> tuple[Rule, list[str]]:
    """A rule about nodes that are due at these times, and the nodes that were evaluated."""
    evaluated: list[str] = []

    def evaluate(node: NodeSubject, _context: RuleContext, _memory: Any, _now: float) -> RuleResult:
        evaluated.append(node.name)
        return RuleResult(next_at=at[node.name])

    return rule("a", evaluate, SubjectKind.NODE, uses=("node",)), evaluated


def test_a_subject_is_evaluated_again_when_it_is_due_and_only_then() -> None:
    at: dict[str, float | None] = {"n1": NOW + 10, "n2": NOW + 20, "n3": None}
    timed, evaluated = due(at)
    engine, given = Engine([timed], {}), context(nodes=[node("n1"), node("n2"), node("n3")])
    assert engine.next_at is None
    engine.evaluate(given)
    assert engine.next_at == NOW + 10
    evaluated.clear()
    at["n1"] = None
    for after in (9.9, 10, 15, 20):
        engine.evaluate(replace(given, now=NOW + after))
    assert evaluated == ["n1", "n2"]
    assert engine.next_at == NOW + 20  # n2 says so again


def test_an_earlier_evaluation_replaces_the_time() -> None:
    at: dict[str, float | None] = {"n1": NOW + 10}
    timed, evaluated = due(at)
    engine = Engine([timed], {})
    engine.evaluate(context(nodes=[node("n1")]))
    at["n1"] = NOW + 30
    engine.evaluate(context(nodes=[node("n1", ready=False)], now=NOW + 5))
    assert engine.next_at == NOW + 30
    engine.evaluate(context(nodes=[node("n1", ready=False)], now=NOW + 10))
    assert evaluated == ["n1", "n1"]
    engine.evaluate(context(now=NOW + 11))  # the node is gone
    assert engine.next_at is None


def test_of_several_subjects_of_a_unit_the_first_is_due() -> None:
    def evaluate(gpu: GpuSubject, *_: Any) -> RuleResult:
        return RuleResult(next_at=NOW + 10 * (2 - gpu.view.index))

    view = structs.replace(VIEW, gpus=(gpu_view("n1", 0, GpuState.FREE), gpu_view("n1", 1, GpuState.FREE)))
    engine = Engine([rule("a", evaluate, SubjectKind.GPU)], {})
    engine.evaluate(context(view=view))
    assert engine.next_at == NOW + 10


def test_ages_are_current_without_an_evaluation() -> None:
    found = finding(
        since=NOW - 60, evidence=(Text(key="k", values={"seconds": 0.0}), Text(key="k", values={"left": 1}))
    )
    engine, given = Engine([finds("a", found), finds("b", finding("b"))], {}), context()
    engine.evaluate(given)
    aged, ageless = engine.evaluate(replace(given, now=NOW + 5))
    assert aged.headline.values == {"seconds": 65.0}
    assert [text.values for text in aged.evidence] == [{"seconds": 65.0}, {"left": 1}]
    assert ageless.headline.values == {}


# Held


def full(disk: ClusterDisk, _context: RuleContext, _memory: Any, _now: float) -> RuleResult:
    return RuleResult((finding(labels={"node": disk.report.node}),)) if disk.fact.used_bytes == 100 else NOTHING


def state_of(node: NodeSubject, _context: RuleContext, _memory: Any, _now: float) -> RuleResult:
    """A rule that reads the logs and does not know what a log without a size means."""
    logs = node.report.snapshot.logs
    if logs is None:
        return UNKNOWN
    return RuleResult((finding(labels={"node": node.name}),), "memory") if not logs else NOTHING


FULL = agent("n1", disk=(disk(used_bytes=100),), logs=())
UNANSWERED = agent("n1", disk=(disk(used_bytes=None),))
ABSENT = agent("n1", collectors=(CollectorFact(name="disk", outcome="absent", interval_seconds=1.0),))
NEEDS_DISK = rule("a", full, SubjectKind.MOUNT, needs=("disk",), kube=("pods",))
NEEDS_LOGS = rule("a", state_of, SubjectKind.NODE, uses=("logs",))
HELD: list[tuple[str, Rule, dict[str, Any], list[tuple[str, bool]]]] = [
    ("found again", NEEDS_DISK, {"agents": [FULL]}, [("n1", False)]),
    ("well", NEEDS_DISK, {"agents": [agent("n1", disk=(disk(),))]}, []),
    ("the part is missing", NEEDS_DISK, {"agents": [agent("n1")]}, [("n1", True)]),
    ("there is nothing to read", NEEDS_DISK, {"agents": [ABSENT]}, []),
    ("the subject does not answer", NEEDS_DISK, {"agents": [UNANSWERED]}, [("n1", True)]),
    ("the subject is gone", NEEDS_DISK, {"agents": [agent("n1", disk=(disk("/other"),))]}, []),
    ("the agent is silent", NEEDS_DISK, {"agents": [structs.replace(FULL, silent_since=NOW)]}, [("n1", True)]),
    ("the agent is gone, the node is not", NEEDS_DISK, {"nodes": [node("n1")], "agents": [A2]}, [("n1", True)]),
    ("the node is gone", NEEDS_DISK, {"nodes": [node("n2")], "agents": [A2]}, []),
    ("nothing is known at all", NEEDS_DISK, {}, [("n1", True)]),
    ("Kubernetes is lost", NEEDS_DISK, {"agents": [agent("n1", disk=(disk(),))], "sources": LOST}, [("n1", True)]),
    ("there is no Kubernetes", NEEDS_DISK, {"agents": [agent("n1", disk=(disk(),))], "sources": STANDALONE}, [("n1", True)]),
    ("there is no Kubernetes, and none is needed", replace(NEEDS_DISK, without_kubernetes=True), {"agents": [agent("n1", disk=(disk(),))], "sources": STANDALONE}, []),
    ("Kubernetes is lost, and would be needed", replace(NEEDS_DISK, without_kubernetes=True), {"agents": [agent("n1", disk=(disk(),))], "sources": LOST}, [("n1", True)]),
    ("the rule cannot tell", NEEDS_LOGS, {"agents": [agent("n1")]}, [("n1", True)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "facts", "expect"), HELD, ids=[row[0] for row in HELD])
@pytest.mark.parametrize("restart", [False, True])
def test_what_cannot_be_known_is_held(
    name: str, given: Rule, facts: dict[str, Any], expect: list[tuple[str, bool]], restart: bool
) -> None:
    engine = Engine([given], {})
    assert told(engine.evaluate(context(agents=[FULL], nodes=[node("n1")], now=NOW - 5))) == [("n1", False)]
    if restart:
        engine = Engine([given], {}, saved(engine.history))
    assert told(engine.evaluate(context(**facts))) == expect


def test_a_stale_answer_is_no_answer() -> None:
    old = structs.replace(agent("n1", disk=(disk(),)), received_at=NOW - 121)
    before = run(NEEDS_DISK, given=context(agents=[FULL])).history
    assert told(run(NEEDS_DISK, before=before, given=context(agents=[old])).findings) == [("n1", True)]


def test_memory_is_held_too_and_what_is_known_again_counts_again() -> None:
    engine = Engine([NEEDS_LOGS], {})
    memories, found = [], []
    for logs in ((), None, None, ()):
        found.append(told(engine.evaluate(context(agents=[agent("n1", logs=logs)]))))
        memories.append(engine.history.units["a"]["n1"].subjects[""].memory)
    assert memories == ["memory"] * 4
    assert found == [[("n1", False)], [("n1", True)], [("n1", True)], [("n1", False)]]


def test_an_unknown_state_of_a_gpu_holds_what_was_found_about_it() -> None:
    def evaluate(gpu: GpuSubject, *_: Any) -> RuleResult:
        return RuleResult((finding(labels={"node": "n1"}),)) if gpu.view.state is GpuState.ZOMBIE else NOTHING

    states = (GpuState.ZOMBIE, GpuState.UNKNOWN, GpuState.FREE)
    engine, found = Engine([rule("a", evaluate, SubjectKind.GPU, needs=("gpu",))], {}), []
    heard = agent("n1", gpu=GpuInventory(gpus=()))
    for state in states:
        view = structs.replace(VIEW, gpus=(gpu_view("n1", 0, state),))
        found.append(told(engine.evaluate(context(view=view, agents=[heard]))))
    assert found == [[("n1", False)], [("n1", True)], []]


def test_a_pod_that_is_gone_is_no_longer_found() -> None:
    always = rule("a", lambda *_: RuleResult((finding(),), 1), SubjectKind.POD, needs=("logs",), kube=("pods",))
    engine = Engine([always], {})
    engine.evaluate(context(pods=[P1], agents=[A1]))
    assert (engine.evaluate(context(agents=[A1])), engine.history.units) == ((), {})


# Held by a rule about the whole cluster


BLIND: list[tuple[str, tuple[Scope, ...], list[tuple[str, bool]]]] = [
    ("all is seen", (), []),
    ("its node is not seen", (Scope(labels={"node": "n1"}),), [("n1", True)]),
    ("another node is not seen", (Scope(labels={"node": "n3"}),), []),
    ("nothing is seen", (Scope(labels={}),), [("n1", True), ("n2", True)]),
    ("its node is not seen, for another rule", (Scope(labels={"node": "n1"}, rules=("b",)),), []),
]


@pytest.mark.parametrize(("name", "blind", "expect"), BLIND, ids=[row[0] for row in BLIND])
def test_what_a_rule_about_the_cluster_cannot_judge_is_held(
    name: str, blind: tuple[Scope, ...], expect: list[tuple[str, bool]]
) -> None:
    before = run(finds("a", finding(), finding(labels={"node": "n2"}))).history
    assert told(run(finds("a", blind=blind), before=before).findings) == expect


def test_what_is_held_is_held_for_as_long_as_nothing_is_known_and_then_counts_again() -> None:
    blind = finds("a", blind=(Scope(labels={}),))
    history = run(finds("a", finding())).history
    for _ in range(3):
        history = run(blind, before=history).history
    assert [each.held for each in history.findings] == [True]
    assert run(finds("a"), before=history).findings == ()


def test_what_is_found_anew_is_not_held_even_if_part_of_it_is_not_seen() -> None:
    before = run(finds("a", finding(cause="x"))).history
    found = run(finds("a", finding(cause="y"), blind=(Scope(labels={}),)), before=before).findings
    assert [(each.cause, each.held) for each in found] == [("y", False)]


def test_one_rule_does_not_hold_what_another_found() -> None:
    before = run(finds("a"), finds("b", finding("b"))).history
    assert run(finds("a", blind=(Scope(labels={}),)), finds("b"), before=before).findings == ()


# Causes and symptoms


def explained(*findings: Finding) -> dict[str, str | None]:
    return {each.rule: each.explained_by for each in run(*(finds(each.rule, each) for each in findings)).findings}


DOWN = finding("node-down", explains=ON_N1)
EXPLAINED: list[tuple[str, tuple[Finding, ...], dict[str, str | None]]] = [
    ("a symptom", (DOWN, finding("pod")), {"node-down": None, "pod": "node-down|node=n1"}),
    ("on another node", (DOWN, finding("pod", labels={"node": "n2"})), {"node-down": None, "pod": None}),
    ("a more precise subject", (DOWN, finding("pod", labels={"node": "n1", "pod": "p"})), {"node-down": None, "pod": "node-down|node=n1"}),
    ("of a rule that it does not explain", (finding("disk", explains=(Scope(labels={"node": "n1"}, rules=("pull",)),)), finding("pod")), {"disk": None, "pod": None}),
    ("two that explain each other explain nothing", (DOWN, finding("disk", explains=ON_N1)), {"node-down": None, "disk": None}),
    ("a cause has a cause", (DOWN, finding("agent", explains=(Scope(labels={}, rules=("pod",)),)), finding("pod", labels={"node": "n2"})), {"node-down": None, "agent": "node-down|node=n1", "pod": "agent|node=n1"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "expect"), EXPLAINED, ids=[row[0] for row in EXPLAINED])
def test_causes_and_symptoms(name: str, given: tuple[Finding, ...], expect: dict[str, str | None]) -> None:
    assert explained(*given) == expect


def test_a_symptom_stands_for_itself_once_its_cause_is_over() -> None:
    before = run(finds("node-down", DOWN), finds("pod", finding("pod"))).history
    after = run(finds("node-down"), finds("pod", blind=ON_N1), before=before).findings
    assert [(each.rule, each.explained_by, each.held) for each in after] == [("pod", None, True)]


def test_a_symptom_is_explained_though_only_its_cause_has_changed() -> None:
    symptom = rule("pod", lambda node, *_: RuleResult((finding("pod", labels={"node": node.name}),)), SubjectKind.NODE)
    cause = rule("a", lambda node, *args: replace_explains(unready(node, *args)), SubjectKind.NODE, uses=("node",))
    engine, found = Engine([symptom, cause], {}), []
    for ready in (True, False, True):
        result = engine.evaluate(context(nodes=[node("n1", ready=ready)]))
        found.append([each.explained_by for each in result if each.rule == "pod"])
    assert found == [[None], ["a|node=n1"], [None]]


def replace_explains(result: RuleResult) -> RuleResult:
    return replace(result, findings=tuple(structs.replace(each, explains=ON_N1) for each in result.findings))


# Findings about several subjects


def one_for_all(findings: Sequence[Finding], _context: RuleContext) -> Sequence[Finding]:
    """One finding if more than one node is not ready."""
    return findings if len(findings) < 2 else [finding(labels={"service": "all"}, held=all(f.held for f in findings))]


def test_findings_about_several_subjects_become_one_and_several_again() -> None:
    engine, found = Engine([replace(UNREADY, correlate=one_for_all)], {}), []
    for first, second in ((False, True), (False, False), (False, False), (True, False)):
        result = engine.evaluate(context(nodes=[node("n1", ready=first), node("n2", ready=second)]))
        found.append([each.labels for each in result])
    assert found == [[{"node": "n1"}], [{"service": "all"}], [{"service": "all"}], [{"node": "n2"}]]


def test_what_is_correlated_is_correlated_after_a_restart() -> None:
    correlated, given = (
        replace(UNREADY, correlate=one_for_all),
        context(nodes=[node("n1", ready=False), node("n2", ready=False)]),
    )
    first = run(correlated, given=given)
    assert run(correlated, given=given, before=saved(first.history)).findings == first.findings


def test_a_finding_that_two_subjects_have_is_one() -> None:
    same = rule("a", lambda *_: RuleResult((finding(labels={"service": "x"}),)), SubjectKind.NODE)
    assert len(run(same, given=context(nodes=[node("n1"), node("n2")])).findings) == 1


# Bounds


def many(count: int) -> Rule:
    found = tuple(finding(labels={"node": "n1", "pod": f"p{index:04d}"}) for index in range(count))
    return rule("a", lambda *_: RuleResult(found, 1), SubjectKind.NODE)


def test_findings_of_a_node_are_limited_also_after_a_restart() -> None:
    given, rules = context(nodes=[node("n1")]), [many(MAX_FINDINGS_PER_NODE + 7)]
    first = detect(rules, {}, given, DetectionHistory())
    again = detect(rules, {}, given, saved(first.history))
    for found in (first.findings, again.findings):
        assert len(found) == MAX_FINDINGS_PER_NODE + 1
        (left_out,) = (each for each in found if each.cause == TOO_MANY)
        assert left_out.headline.values["count"] == 7
    assert len(detect([many(MAX_FINDINGS_PER_NODE)], {}, given, DetectionHistory()).findings) == MAX_FINDINGS_PER_NODE


# Broken rules


def breaks_on_n1(node: NodeSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    if node.name in ("n1", "n3") and node.fact is not None and node.fact.unschedulable:
        raise ZeroDivisionError("division by zero")
    return unready(node, context, memory, now)


def test_a_rule_that_breaks_says_so_and_costs_nothing_but_the_subject() -> None:
    engine = Engine([replace(UNREADY, evaluate=breaks_on_n1), finds("b", finding("b"))], {})
    down = [node(name, ready=False) for name in ("n1", "n2", "n3")]
    assert len(engine.evaluate(context(nodes=down))) == 4
    odd = [node("n1", unschedulable=True), node("n2"), node("n3", unschedulable=True)]
    found = engine.evaluate(context(nodes=odd))
    assert [(each.key, each.cause, each.held) for each in found] == [
        ("a|node=n1", "x", True),
        ("a|node=n3", "x", True),
        ("a|service=gpuwarden", RULE_BROKEN, False),
        ("b|node=n1", "x", False),
    ]
    assert {unit: state.subjects[""].memory for unit, state in engine.history.units["a"].items()} == {
        "n1": 1, "n2": 2, "n3": 1
    }  # fmt: skip
    broken = found[2]
    assert [say(lang, broken.headline.key, broken.headline.values) for lang in LANGUAGES] == [
        "Rule a could not be evaluated: ZeroDivisionError: division by zero. Its last findings are kept.",
        "规则 a 无法检查：ZeroDivisionError: division by zero。上一次的结果保持不变。",
    ]


@pytest.mark.parametrize("after", [[node("n1")], []])
def test_a_rule_that_works_again_is_no_longer_broken(after: list[Any]) -> None:
    engine = Engine([replace(UNREADY, evaluate=breaks_on_n1)], {})
    assert [each.cause for each in engine.evaluate(context(nodes=[node("n1", unschedulable=True)]))] == [RULE_BROKEN]
    assert engine.evaluate(context(nodes=after)) == ()


def test_a_rule_that_broke_before_a_restart_is_asked_again() -> None:
    broken = run(replace(UNREADY, evaluate=breaks_on_n1), given=context(nodes=[node("n1", unschedulable=True)]))
    assert run(UNREADY, given=context(nodes=[node("n1")]), before=saved(broken.history)).findings == ()


# The history


def test_history_survives_a_restart() -> None:
    memory = {"n1": {"changes": [1.5, 2.0], "ready": True, "word": "x", "nothing": None}}
    found = finding(explains=ON_N1, since=NOW, evidence=(Text(key="k", values={"a": 1, "b": 1.5, "c": "x"}),), raw="r")
    history = run(finds("a", found, memory=memory), finds("b", finding("b"))).history
    again = saved(history)
    assert again == history
    assert run(finds("a", blind=(Scope(labels={}),)), before=again).findings[0].evidence == found.evidence


def test_each_subject_has_its_own_memory_that_survives_a_restart() -> None:
    engine, nodes = Engine([UNREADY], {}), [node("n1"), node("n2")]
    engine.evaluate(context(nodes=nodes))
    engine.evaluate(context(nodes=[node("n1", ready=False), nodes[1]]))
    engine = Engine([UNREADY], {}, saved(engine.history))
    engine.evaluate(context(nodes=nodes))
    assert {unit: state.subjects[""].memory for unit, state in engine.history.units["a"].items()} == {"n1": 3, "n2": 2}
    engine.evaluate(context(nodes=nodes[:1]))
    assert engine.history.units["a"].keys() == {"n1"}


def test_a_history_of_rules_that_are_gone_is_dropped() -> None:
    before = run(finds("old", finding("old"), memory=1)).history
    assert run(finds("a", memory=2), before=before).history == run(finds("a", memory=2)).history


def test_findings_of_an_older_version_are_held_until_they_are_found_again_or_time_has_passed() -> None:
    old = DetectionHistory(findings=(finding(), finding(labels={"node": "n2"}), finding("gone")))
    engine = Engine([UNREADY], {}, old)
    found = []
    for after, ready in ((0, True), (5, False), (10, True), (ADOPTION_SECONDS - 1, True), (ADOPTION_SECONDS, True)):
        found.append(told(engine.evaluate(context(nodes=[node("n1", ready=ready)], now=NOW + after))))
        engine = Engine([UNREADY], {}, saved(engine.history))  # the daemon may restart in between
    assert found == [[("n1", True), ("n2", True)], [("n1", False), ("n2", True)], [("n2", True)], [("n2", True)], []]


def test_findings_of_an_older_version_of_a_rule_that_is_off_are_dropped() -> None:
    old = DetectionHistory(findings=(finding(),))
    assert run(UNREADY, before=old, limits={"a": Limits(None_(), enabled=False)}).findings == ()


@pytest.mark.parametrize("listed", RULES, ids=lambda each: each.rule)
def test_what_a_rule_remembers_of_nothing_can_be_saved(listed: Rule) -> None:
    found = detect([listed], {}, context(), DetectionHistory())
    assert RULE_BROKEN not in [each.cause for each in found.findings]
    assert detect([listed], {}, context(), saved(found.history)).findings == found.findings
