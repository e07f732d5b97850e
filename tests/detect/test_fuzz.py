"""No event text, pod or snapshot breaks a rule, and every finding can be rendered, labelled and saved."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import monitor.detect.rules
from monitor.cluster.identity import identify
from monitor.cluster.owners import no_owners
from monitor.cluster.platforms import all_rules
from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ClusterContext, ViewInputs
from monitor.detect.base import Rule, RuleContext
from monitor.detect.engine import Engine, detect
from monitor.detect.history import DetectionHistory, SubjectState, UnitState
from monitor.detect.rule_state import RULE_BROKEN
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState, Identity, NodeView, SourceView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.findings import LABELS, Finding
from monitor.facts.kube import EventFact, NodeFact, PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.queues import PodGroupFact, QueueFact, QuotaFact, WorkloadFact
from monitor.facts.services import ServiceFact
from monitor.i18n import LANGUAGES, say
from tests.detect import odd_facts
from tests.detect.builders_nodes import service
from tests.explain.builders import NOW, event, gpu_view, node, pod, running_container, waiting
from tests.support.snapshots import POD, TRAINER, full_snapshot

PLATFORMS = all_rules()
TRAINING = pod(
    "bert-0", node="n1", gpus=2, uid=POD, phase="Running", age=9e4, statuses=(running_container(container_id=TRAINER),)
)
SEEN = (SourceView(name="pods", ok=True), SourceView(name="nodes", ok=True))
MODULES = [
    importlib.import_module(f"monitor.detect.rules.{each.name}")
    for each in pkgutil.iter_modules(monitor.detect.rules.__path__)
]
ALL: tuple[Rule, ...] = tuple(module.RULE for module in MODULES if hasattr(module, "RULE"))
# Without shrinking, which takes minutes: the facts are small already.
CAREFUL = settings(
    deadline=None,
    max_examples=80,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)


def some(fact: Any, most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(odd_facts.of(fact), max_size=most).map(tuple)


def context(world: ClusterFacts, services: tuple[ServiceFact, ...] = (), now: float = NOW) -> RuleContext:
    return RuleContext(world, now, services)


def look_twice(first: RuleContext, then: RuleContext) -> None:
    """Evaluate one context and then another, with the same engine and with the saved history."""
    engine = Engine(ALL, {})
    check(engine.evaluate(first))
    saved = msgspec.json.decode(msgspec.json.encode(engine.history), type=DetectionHistory)
    check(engine.evaluate(then))
    check(detect(ALL, {}, then, saved).findings)


def check(found: tuple[Finding, ...]) -> None:
    for finding in found:
        assert finding.cause != RULE_BROKEN, finding.raw
        assert set(finding.labels) <= set(LABELS), finding
        values = finding.labels.values()
        assert all(isinstance(value, str) and 0 < len(value) <= 253 for value in values), finding.labels
        assert finding.cause != "unknown" or finding.raw is not None, finding
        assert all(text.isprintable() and text for text in words(finding)), finding


def words(finding: Finding) -> list[str]:
    notes = (finding.headline, *finding.evidence, *finding.advice)
    return [say(lang, note.key, note.values) for note in notes for lang in LANGUAGES]


@CAREFUL
@given(
    odd_facts.texts,
    odd_facts.texts,
    st.sampled_from(["ImagePullBackOff", "ContainerCreating", "CrashLoopBackOff", None]),
)
def test_any_text_of_an_event(reason: str, message: str, state: str | None) -> None:
    statuses = (waiting(state, message),) if state else ()
    stuck = pod("bert-0", node="n1" if state else None, gpus=8, age=4000, statuses=statuses)
    world = make_cluster_facts(
        pods=[stuck],
        nodes=[node("n1"), node("n2")],
        events=[event(reason, message), event(reason, message, about=stuck, ago=5)],
        view=ClusterView(at=NOW, sources=SEEN),
    )
    look_twice(context(world), context(world, now=NOW + 4000))


@CAREFUL
@given(st.data())
def test_any_facts_of_kubernetes(data: st.DataObject) -> None:
    def world() -> ClusterFacts:
        return make_cluster_facts(
            pods=data.draw(some(PodFact)),
            nodes=data.draw(some(NodeFact)),
            events=data.draw(some(EventFact)),
            quotas=data.draw(some(QuotaFact, 2)),
            queues=data.draw(some(QueueFact, 2)),
            pod_groups=data.draw(some(PodGroupFact, 1)),
            workloads=data.draw(some(WorkloadFact, 1)),
            view=ClusterView(at=NOW, sources=data.draw(st.sampled_from([SEEN, data.draw(some(SourceView))]))),
        )

    look_twice(context(world()), context(world(), data.draw(some(ServiceFact)), NOW + 700))


@CAREFUL
@given(st.data())
def test_any_snapshot(data: st.DataObject) -> None:
    """The view of odd snapshots is made as the daemon makes it."""
    builder = ViewBuilder(lambda each: identify(each, no_owners, PLATFORMS, {}))
    pods = (pod("p", node="n1", gpus=1, uid="uid-1", phase="Running"), data.draw(odd_facts.bent(TRAINING)))
    nodes = (node("n1"), node("n2", ready=None))

    def look(now: float) -> RuleContext:
        bent = data.draw(odd_facts.bent(full_snapshot()))
        agents = (_agent("n1", bent, now), _agent("n2", data.draw(odd_facts.of(NodeSnapshot)), now))
        agents += data.draw(some(AgentFact, 1))
        view = builder.build(ViewInputs(agents, pods, nodes, ClusterContext(sources=SEEN, pods_known=True)), now).view()
        owners = {"uid-1": Identity(user="ann")}
        return context(make_cluster_facts(pods=pods, nodes=nodes, agents=agents, view=view, identities=owners), now=now)

    look_twice(look(NOW), look(NOW + 700))


def _agent(name: str, snapshot: NodeSnapshot, now: float) -> AgentFact:
    return AgentFact(target=f"{name}:9835", node=name, snapshot=snapshot, received_at=now - 1)


@CAREFUL
@given(odd_facts.of(ClusterView), some(ServiceFact))
def test_any_view(view: ClusterView, services: tuple[ServiceFact, ...]) -> None:
    nodes = {each.name: each for each in view.nodes}  # every GPU belongs to a known node
    nodes |= {each.node: NodeView(name=each.node) for each in view.gpus if each.node not in nodes}
    view = msgspec.structs.replace(view, nodes=tuple(nodes.values()))
    world = make_cluster_facts(view=view, pods=[pod("p", uid="uid-1")], nodes=[node("n1")])
    look_twice(context(world, services), context(world, services, NOW + 4000))


leaves = st.none() | st.booleans() | odd_facts.floats | odd_facts.texts
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(odd_facts.texts, inner, max_size=2),
    max_leaves=4,
)


SUBJECTS = (
    ("", ""),
    ("n1", ""),
    ("n1", "0"),
    ("n1", "/ /dev/sda"),
    ("uid-p", ""),
    ("portal", ""),
    ("team-a/uid-p", ""),
)


@CAREFUL
@given(anything)
def test_a_memory_of_another_version_breaks_no_rule(memory: Any) -> None:
    """What an older or newer program has remembered of a subject may be anything."""
    units: dict[str, UnitState] = {}
    for unit, key in SUBJECTS:
        known = units.get(unit, UnitState()).subjects
        units[unit] = UnitState(subjects=known | {key: SubjectState(memory=memory)})
    failing = pod("p", node="n1", age=4000, statuses=(waiting("ErrImagePull", "no such host"),))
    gpus = (gpu_view("n1", 0, GpuState.ZOMBIE, failing),)
    view = ClusterView(at=NOW, gpus=gpus, nodes=(NodeView(name="n1"),), sources=SEEN)
    agents, down = (_agent("n1", full_snapshot(), NOW),), service("portal", cause="refused")
    nodes = [node("n1", ready=None, ready_since=NOW - 60)]
    world = make_cluster_facts(nodes=nodes, pods=[failing], agents=agents, view=view)
    history = DetectionHistory(units={rule.rule: units for rule in ALL})
    check(detect(ALL, {}, context(world, (down,)), history).findings)


def test_all_rules_are_here() -> None:
    assert {"node-down", "agent-silent", "service-down", "gpu-zombie"} <= {rule.rule for rule in ALL}
