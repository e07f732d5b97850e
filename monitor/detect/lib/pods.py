"""Shared by the pod rules: labels, values and quoted messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from monitor.detect.base import MAX_RAW_CHARS, RuleResult
from monitor.detect.labels import label_value, label_values
from monitor.explain.pod import pod_reference
from monitor.explain.quote import quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Scope
from monitor.facts.kube import PodFact
from monitor.facts.text import Value

EVERYTHING = Scope(labels={})
REFRESH_SECONDS = 30.0  # after which an explanation is compared with facts about other pods and nodes


def is_live(pod: PodFact) -> bool:
    """Whether a pod is on a node and has neither finished nor been deleted."""
    return pod.node is not None and pod.deletion_at is None and not pod.finished


def combined(results: Iterable[RuleResult]) -> RuleResult:
    """Results about parts of a pod as one; without memory."""
    known = tuple(results)
    due = (result.next_at for result in known if result.next_at is not None)
    return RuleResult(tuple(f for result in known for f in result.findings), next_at=min(due, default=None))


def pod_identity(pod: PodFact) -> dict[str, str]:
    """Labels that select all findings about a pod."""
    return {"namespace": label_value(pod.namespace), "pod": label_value(pod.name)}


def pod_labels(pod: PodFact, facts: ClusterFacts, **more: str | None) -> dict[str, str]:
    """Labels of a pod and its owner, and `more` where set."""
    owner = pod_reference(pod, facts)
    labels = {"pod": pod.name, "namespace": pod.namespace, "node": pod.node, "user": owner.user, "job": owner.job}
    return label_values({**labels, "queue": owner.queue, **more})


def pod_values(pod: PodFact, facts: ClusterFacts, **more: Value) -> dict[str, Value]:
    """Values that identify a pod in a text."""
    values: dict[str, Value] = {"pod": pod.name, "namespace": pod.namespace, "user": facts.user(pod)}
    return {**values, "node": pod.node or "?", **more}


def advice_keys(*causes: str, family: str = "") -> tuple[str, ...]:
    """Keys of the advice that monitor.explain gives for its causes: crash_killed_advice for crash-killed."""
    return tuple(f"{family}{cause}-advice".replace("-", "_") for cause in causes)


@lru_cache(maxsize=8192)  # most messages recur in every evaluation
def raw_text(message: str | None, limit: int = MAX_RAW_CHARS) -> str | None:
    """A quoted message, without secrets and cut to `limit`; None if empty."""
    return quote(message, limit) or None
