"""Nodes as one evaluation observes them, and what it cannot observe: missing facts are not evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from monitor.detect.base import Rule, RuleContext, SubjectKind
from monitor.detect.subjects import NodeReport, NodeSubject
from monitor.detect.visibility import clock_skew, resources_lost, resources_unavailable
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.node import NodeSnapshot

STALE_AFTER_SECONDS = 120.0  # older snapshots are ignored
ABSENT = "absent"
_GPU_SCOPES = (SubjectKind.GPU, SubjectKind.JOB)


class _Sight(NamedTuple):
    """What one rule can see: nothing at all, or everything but what some nodes hide. `hidden` is by node."""

    blind: bool
    parts: tuple[str, ...]
    of_gpus: bool
    hidden: dict[str, bool]


@dataclass(frozen=True)
class Observation:
    """Facts of one evaluation; nodes are joined once for all rules."""

    context: RuleContext
    _nodes: dict[str, NodeSubject] = field(default_factory=dict, init=False)
    _sights: dict[str, _Sight] = field(default_factory=dict, init=False)  # by rule
    _hidden: dict[tuple[tuple[str, ...], bool], dict[str, bool]] = field(default_factory=dict, init=False)

    @property
    def facts(self) -> ClusterFacts:
        return self.context.facts

    def is_known(self, node: str) -> bool:
        """Whether Kubernetes, an agent or the view knows a node."""
        facts = self.facts
        return node in facts.node_by_name or node in facts.agent_of_node or node in facts.view_of_node

    def node(self, name: str) -> NodeSubject:
        """A node as all sources know it."""
        known = self._nodes.get(name)
        if known is None:
            facts, agent = self.facts, self.facts.agent_of_node.get(name)
            fact, view = facts.node_by_name.get(name), facts.view_of_node.get(name)
            known = self._nodes[name] = NodeSubject(name, fact, agent, view, self._report(name, agent))
        return known

    def _report(self, name: str, agent: AgentFact | None) -> NodeReport | None:
        if agent is None or agent.snapshot is None or agent.received_at is None or agent.silent_since is not None:
            return None
        fresh = self.context.now - agent.received_at <= STALE_AFTER_SECONDS
        return NodeReport(name, agent.snapshot, clock_skew(agent)) if fresh else None

    def blinds(self, rule: Rule, observers: Iterable[str]) -> bool:
        """Whether the rule lacks facts of Kubernetes or of one of these nodes."""
        sight = self._sights.get(rule.rule)
        if sight is None:
            sight = self._sights[rule.rule] = self._sight(rule)
        if sight.blind or not sight.parts:
            return sight.blind
        for node in observers:
            hides = sight.hidden.get(node)
            if hides is None:
                hides = sight.hidden[node] = self._hides(node, sight)
            if hides:
                return True
        return False

    def _sight(self, rule: Rule) -> _Sight:
        lost = resources_lost if rule.without_kubernetes else resources_unavailable
        nothing_known = not self.facts.agent_of_node and not self.facts.node_by_name
        of_gpus = "gpu" in rule.needs or rule.scope in _GPU_SCOPES
        return _Sight(
            blind=(bool(rule.kube) and lost(self.context, *rule.kube)) or (bool(rule.needs) and nothing_known),
            parts=rule.needs,
            of_gpus=of_gpus,
            hidden=self._hidden.setdefault((rule.needs, of_gpus), {}),
        )

    def _hides(self, name: str, sight: _Sight) -> bool:
        """Whether a node lacks parts that a rule needs. One that is gone hides nothing."""
        return self.is_known(name) and self._lacks(name, sight.parts, sight.of_gpus)

    def _lacks(self, name: str, parts: tuple[str, ...], of_gpus: bool) -> bool:
        report = self.node(name).current
        if report is None or _lacks(report.snapshot, parts):
            return True
        gpus = self.facts.gpus_by_node.get(name, ()) if of_gpus else ()
        return GpuState.UNKNOWN in [gpu.state for gpu in gpus]


def _lacks(snapshot: NodeSnapshot, parts: tuple[str, ...]) -> bool:
    """Whether a part is missing. One whose collector reports that there is nothing to read is not."""
    missing = [part for part in parts if getattr(snapshot, part) is None]
    if not missing:
        return False
    return not {fact.name for fact in snapshot.collectors if fact.outcome == ABSENT}.issuperset(missing)
