"""Which nodes reach which registries, kept current from the probes and pulls that have changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set

from monitor.detect.lib.pulls import FailedPull, failed_pulls
from monitor.detect.lib.registries import (
    RegistryFailure,
    RegistryReachability,
    probe_failure,
    pull_failure,
    registry_of_url,
)
from monitor.detect.observation import ABSENT, Observation
from monitor.detect.subject_index import WHOLE_CLUSTER, SubjectIndex, Subjects
from monitor.detect.visibility import clock_skew
from monitor.facts.agents import AgentFact
from monitor.facts.changes import AGENT, Changes
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.services import ServiceFact

_PROBES = "probes"
_PARTS = frozenset((AGENT, _PROBES, "collectors"))
_REGISTRY_KINDS = ("registry", "harbor")


class RegistryIndex(SubjectIndex):
    """All registries as one subject, since failures of several nodes or registries may have one cause."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._registries: dict[str, set[str]] = {}  # that a node probes, by node
        self._reached_at: defaultdict[str, dict[str, float]] = defaultdict(dict)  # by registry and node
        self._failed: defaultdict[str, dict[str, RegistryFailure]] = defaultdict(dict)  # probes by registry and node
        self._blind: set[str] = set()
        self._pulls: dict[str, list[FailedPull]] = {}  # by pod
        self._daemon_reached: dict[str, bool] = {}
        self._changed = True

    def update(self, changes: Changes, seen: Observation) -> None:
        if changes.complete:
            self._clear()
        facts, daemon_reached = seen.facts, _daemon_reached(seen.context.services)
        nodes = [node for node, parts in changes.nodes.items() if not _PARTS.isdisjoint(parts)]
        for node in nodes:
            self._read_probes(node, facts.agent_of_node.get(node))
        pulls = [self._read_pulls(pod, facts) for pod in changes.pods]
        self._changed = changes.complete or bool(nodes) or any(pulls) or daemon_reached != self._daemon_reached
        self._daemon_reached = daemon_reached

    def _read_probes(self, node: str, agent: AgentFact | None) -> None:
        """Replace the probes of a node. Those of a silent agent are stale."""
        for registry in self._registries.pop(node, ()):
            self._reached_at[registry].pop(node, None)
            self._failed[registry].pop(node, None)
        self._blind.discard(node)
        if agent is None:
            return
        if _is_blind(agent):
            self._blind.add(node)
            return
        for probe in (agent.snapshot.probes if agent.snapshot is not None else None) or ():
            registry = registry_of_url(probe.target)
            self._registries.setdefault(node, set()).add(registry)
            if probe.ok:
                self._reached_at[registry][node] = probe.at + clock_skew(agent)
            else:
                self._failed[registry][node] = probe_failure(node, registry, probe)

    def _read_pulls(self, uid: str, facts: ClusterFacts) -> bool:
        """Replace the failing pulls of a pod. Return whether there were or are any."""
        pod, before = facts.pod_by_uid.get(uid), self._pulls.pop(uid, None)
        pulls = failed_pulls(pod, facts) if pod is not None else []
        if pulls:
            self._pulls[uid] = pulls
        return bool(before or pulls)

    def changed(self, _changes: Changes, _parts: Set[str]) -> Iterable[str]:
        return (WHOLE_CLUSTER,) if self._changed else ()

    def subjects(self, _unit: str, _seen: Observation) -> Subjects:
        failures = {registry: dict(by_node) for registry, by_node in self._failed.items() if by_node}
        for pull in (pull for uid in sorted(self._pulls) for pull in self._pulls[uid]):
            failure = pull_failure(pull, self._reached_at.get(pull.registry, {}))
            if failure is not None:
                by_node = failures.setdefault(failure.registry, {})
                known = by_node.get(failure.node)
                by_node[failure.node] = known.joined(failure) if known is not None else failure
        return {"": RegistryReachability(failures, self._reached_at, self._daemon_reached, frozenset(self._blind))}

    def observers(self, _unit: str) -> tuple[str, ...]:
        return ()


def _is_blind(agent: AgentFact) -> bool:
    """Whether the probes of an agent are unknown now."""
    if agent.silent_since is not None or agent.snapshot is None:
        return True
    outcome = next((fact.outcome for fact in agent.snapshot.collectors if fact.name == _PROBES), None)
    return agent.snapshot.probes is None and outcome not in (None, ABSENT)


def _daemon_reached(services: Iterable[ServiceFact]) -> dict[str, bool]:
    """Whether the daemon reaches each registry that it probes."""
    reached: dict[str, bool] = {}
    for service in services:
        if service.kind in _REGISTRY_KINDS:
            registry = registry_of_url(service.target)
            reached[registry] = reached.get(registry, True) and service.ok
    return reached
