"""Rule contexts with GPUs, built by the real join, and checks on findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.node_join import GpuMemory
from monitor.cluster.view import ViewBuilder, ViewMemory
from monitor.cluster.view_inputs import ClusterContext, ViewInputs
from monitor.detect.base import Limits, Override, Rule, RuleContext
from monitor.detect.engine import detect
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState, Identity, SourceView
from monitor.facts.devices import NO_DEVICES, DeviceFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.findings import LABELS, Finding
from monitor.facts.kube import NodeFact, PodFact
from monitor.i18n import CATALOGS, LANGUAGES, fields, say
from tests.cluster.builders import NOW, node, uuid
from tests.detect.running import Evaluated, evaluate, history_of

ALICE = Identity(user="alice", job="bert", queue="vc1", platform="volcano", workload_kind="VolcanoJob")


@dataclass(frozen=True)
class GpuContext(RuleContext):
    """Context with the view that its facts were joined into."""

    view: ClusterView = field(default_factory=lambda: ClusterView(at=NOW))


def rule_context(
    *agents: AgentFact,
    pods: tuple[PodFact, ...] = (),
    nodes: tuple[NodeFact, ...] | None = None,
    identities: dict[str, Identity] | None = None,
    memory: ViewMemory | None = None,
    pods_known: bool = True,
    devices: DeviceFacts = NO_DEVICES,
    now: float = NOW,
) -> GpuContext:
    """Context as the daemon builds it: agents joined with pods."""
    who = {pod.uid: ALICE for pod in pods} | (identities or {})
    if nodes is None:
        nodes = tuple(node(name, gpu_count(agents, name)) for name in sorted({each.node or "" for each in agents}))
    builder = ViewBuilder(lambda pod: who.get(pod.uid, Identity()), limits=StateLimits(), memory=memory)
    sources = (SourceView(name="pods", ok=pods_known), SourceView(name="nodes", ok=pods_known))
    around = ClusterContext(sources=sources, pods_known=pods_known, devices=devices)
    view = builder.build(ViewInputs(agents=agents, pods=pods, nodes=nodes, around=around), now).view()
    facts = make_cluster_facts(
        pods=builder.pods, nodes=builder.nodes, agents=agents, view=view, identities=who, devices=devices
    )
    return GpuContext(facts, now, view=view)


def gpu_count(agents: tuple[AgentFact, ...], name: str) -> int:
    found = [a.snapshot.gpu for a in agents if a.node == name and a.snapshot is not None]
    return len(found[0].gpus) if found and found[0] is not None else 8


def remembered(state: str, seconds: float, index: int = 0, idle: float | None = None, name: str = "n1") -> ViewMemory:
    """Memory of the join for one GPU: seconds in a state, and seconds idle."""
    idle_since = NOW - idle if idle is not None else None
    return ViewMemory(cards={f"{name}/{uuid(index, name)}": GpuMemory(GpuState(state), NOW - seconds, idle_since)})


def idle(seconds: float, *indexes: int, name: str = "n1") -> ViewMemory:
    """Memory of the join for GPUs that have been idle for `seconds`."""
    known = GpuMemory(GpuState.BUSY, NOW - 90_000, NOW - seconds)
    return ViewMemory(cards={f"{name}/{uuid(index, name)}": known for index in indexes})


def run(rule: Rule, given: RuleContext, memory: Any = None, limits: Any = None, **exceptions: Any) -> Evaluated:
    """Run one rule, by default with its default limits; `exceptions` are limits by node."""
    overrides = tuple(Override({"node": name}, other) for name, other in exceptions.items())
    own = Limits(limits if limits is not None else rule.limits(), overrides)
    found = evaluate(rule, RuleContext(given.facts, given.now, given.services, prices=given.prices, limits=own), memory)
    for finding in found.findings:
        assert_speaks(rule, finding)
    return found


def causes(found: Evaluated) -> list[tuple[str, str]]:
    """Severity and cause of each finding."""
    return [(finding.severity.value, finding.cause) for finding in found.findings]


def after_silence(rule: Rule, before: RuleContext, blind: RuleContext, memory: Any = None) -> tuple[Finding, ...]:
    """Findings of the engine for the second context after the first."""
    first = detect((rule,), {}, before, history_of(rule, memory))
    assert first.findings, "there is nothing that could be held"
    return detect((rule,), {}, blind, first.history).findings


def said(finding: Finding, lang: str = "en") -> str:
    """All texts of a finding."""
    notes = (finding.headline, *finding.evidence, *finding.advice)
    return "\n".join(say(lang, note.key, note.values) for note in notes)


def assert_speaks(rule: Rule, finding: Finding) -> None:
    """Cause and labels are declared, and every text exists in both languages."""
    assert finding.rule == rule.rule
    assert finding.cause in (rule.causes or (rule.rule,))
    assert finding.headline.key == (f"{rule.rule}.{finding.cause}" if rule.causes else rule.rule)
    assert set(finding.labels) <= set(LABELS)
    assert all(0 < len(value) <= 253 for value in finding.labels.values())
    assert finding.advice
    assert finding.cause != "unknown" or finding.raw
    for lang in LANGUAGES:
        text = said(finding, lang)
        assert text.replace("\n", "").isprintable()
        assert ("，" in text or "：" in text or "。" in text) is (lang == "zh"), text


def catalog_problems(rule: Rule) -> list[str]:
    """Texts of a rule that are missing, or have different fields in the two languages."""
    english, chinese = CATALOGS["en"], CATALOGS["zh"]
    keys = [key for key in {*english, *chinese} if key.startswith(f"{rule.rule}.")]
    wrong = [key for key in keys if fields(english.get(key, "")) != fields(chinese.get(key, "{missing}"))]
    return sorted([*wrong, *(cause for cause in rule.causes if f"{rule.rule}.{cause}" not in english)])
