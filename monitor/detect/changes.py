"""What has changed between two evaluations, found by identity: unchanged facts stay the same objects."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from monitor.facts.changes import (
    AGENT,
    ALL_PARTS,
    KUBERNETES_NODE,
    PODS,
    SHARED_KINDS,
    Changes,
    changed_gpu_parts,
)
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.node import changed_parts


def changes_between(before: ClusterFacts, after: ClusterFacts) -> Changes:
    """Changes from one moment to the next; services and deletions are compared by the caller."""
    events = _different(before.events_by_uid, after.events_by_uid)
    pods = _different(before.pod_by_uid, after.pod_by_uid) | _different(before.identities, after.identities)
    nodes = _changed_nodes(before, after, pods | events)
    kinds = {name for name in SHARED_KINDS if getattr(before, name) != getattr(after, name)}
    kinds |= {"pods"} if pods else set()
    pending = before.pending_by_uid.keys() | after.pending_by_uid.keys()
    kinds |= {"pending_pods"} if pods & pending else set()
    kinds |= {"nodes"} if any(KUBERNETES_NODE in parts for parts in nodes.values()) else set()
    kinds |= {"events"} if events or before.events_by_name != after.events_by_name else set()
    return Changes(nodes, frozenset(pods | events), frozenset(kinds))


def _changed_nodes(before: ClusterFacts, after: ClusterFacts, pods: set[str]) -> dict[str, frozenset[str]]:
    changed: dict[str, set[str]] = {}
    for pod in (known.get(uid) for uid in pods for known in (before.pod_by_uid, after.pod_by_uid)):
        if pod is not None and pod.node is not None:
            changed.setdefault(pod.node, set()).add(PODS)
    for part, old, new in (
        (KUBERNETES_NODE, before.node_by_name, after.node_by_name),
        (AGENT, _without_times(before), _without_times(after)),
    ):
        for name in _different(old, new):
            changed.setdefault(name, set()).add(part)
    for name in _different(before.gpus_by_node, after.gpus_by_node):
        gpus = (facts.gpus_by_node.get(name, ()) for facts in (before, after))
        changed.setdefault(name, set()).update(changed_gpu_parts(*gpus))
    for name in before.agent_of_node.keys() | after.agent_of_node.keys():
        parts = _changed_agent(name, before, after)
        if parts:
            changed.setdefault(name, set()).update(parts)
    return {name: frozenset(parts) for name, parts in changed.items()}


def _without_times(facts: ClusterFacts) -> dict[str, object]:
    """Nodes as the view shows them, without the time of the last answer, which changes with every poll."""
    return {name: replace(view, heard_at=None) for name, view in facts.view_of_node.items()}


def _changed_agent(name: str, before: ClusterFacts, after: ClusterFacts) -> frozenset[str]:
    """Changed parts of an agent. Its times change with every poll, which alone does not count."""
    old, new = before.agent_of_node.get(name), after.agent_of_node.get(name)
    if old is new:
        return frozenset()
    if old is None or new is None or new.snapshot is None:
        return ALL_PARTS
    parts = changed_parts(old.snapshot, new.snapshot)
    same = (old.silent_since, old.error, old.target) == (new.silent_since, new.error, new.target)
    return parts if same else parts | {AGENT}


def _different(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """Keys whose values differ; equal objects are compared by identity first."""
    changed = {key for key, value in after.items() if before.get(key) is not value and before.get(key) != value}
    return changed | (before.keys() - after.keys())
