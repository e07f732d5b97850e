"""What the rules about pods have in common. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from monitor.detect.base import RuleContext
from monitor.detect.visibility import label_value, resources_unavailable
from monitor.explain.explain import reference
from monitor.explain.quote import quote
from monitor.facts.agents import AgentFact
from monitor.facts.cluster_facts import FINISHED, World
from monitor.facts.findings import Scope
from monitor.facts.kube import PodFact
from monitor.facts.text import Value

MAX_RAW_CHARS = 1000
MIN_CLOCK_SKEW_SECONDS = 2.0  # smaller differences are the way the answer took
EVERYTHING = Scope(labels={})


def blind_scopes(context: RuleContext) -> tuple[Scope, ...]:
    """Return everything, while Kubernetes cannot be asked about pods: nothing ends because nobody can be asked."""
    return (EVERYTHING,) if resources_unavailable(context, "pods") else ()


def live_pods(pods: Iterable[PodFact]) -> Iterable[PodFact]:
    """Yield the pods that are on a node, have not ended, and are not on their way out."""
    return (pod for pod in pods if pod.node is not None and pod.deletion_at is None and pod.phase not in FINISHED)


def pod_labels(pod: PodFact, facts: World, **more: str | None) -> dict[str, str]:
    """Return the labels of a pod and of whose it is, and more where something says so."""
    who = reference(pod, facts)
    named = {"pod": pod.name, "namespace": pod.namespace, "node": pod.node, "user": who.user, "job": who.job}
    return label_values({**named, "queue": who.queue, **more})


def label_values(labels: dict[str, str | None]) -> dict[str, str]:
    """Return the labels that have a value, none longer than Kubernetes itself allows names to be."""
    return {name: label_value(value) for name, value in labels.items() if value}


def pod_values(pod: PodFact, facts: World, **more: Value) -> dict[str, Value]:
    """Return the values with which a sentence names a pod."""
    who: dict[str, Value] = {"pod": pod.name, "namespace": pod.namespace, "user": facts.user(pod)}
    return {**who, "node": pod.node or "?", **more}


@lru_cache(maxsize=8192)  # what is wrong now was mostly wrong a moment ago
def raw_text(message: str | None, limit: int = MAX_RAW_CHARS) -> str | None:
    """Return what another program said, without its secrets and not too long; None if it said nothing."""
    return quote(message, limit) or None


def clock_skew(agent: AgentFact) -> float:
    """Return how far the clock of an agent's node is behind ours."""
    if agent.snapshot is None or agent.received_at is None:
        return 0.0
    behind = agent.received_at - agent.snapshot.at
    return behind if abs(behind) > MIN_CLOCK_SKEW_SECONDS else 0.0
