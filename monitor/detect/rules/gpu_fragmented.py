"""gpu-fragmented: a job is pending although enough GPUs are free, but not on one node; with pods to move."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from monitor.detect.base import Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_values
from monitor.detect.lib.memory import recalled
from monitor.detect.lib.moves import Move, fewest_moves
from monitor.detect.lib.pods import REFRESH_SECONDS
from monitor.explain.fit import NodeFit, fit_all, gpu_resource, gpus_in_words, requested_gpus
from monitor.facts.alert_identity import identifying_labels
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope
from monitor.facts.gpu_resources import resource_kind
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

NAME = "gpu-fragmented"
MAX_SHAPES = 6  # of selector, affinity and tolerations, per evaluation; oldest pods first
MAX_PLANS = 3


@dataclass(frozen=True)
class Limits:
    """How long a job has to wait."""

    after: Seconds = 600.0


@dataclass(frozen=True)
class _Nodes:
    """Nodes as pods of one shape see them."""

    fits: tuple[NodeFit, ...]

    @cached_property
    def usable(self) -> list[NodeFit]:
        """Nodes with GPUs that the pods may use, most free GPUs first."""
        with_gpus = (fit for fit in self.fits if fit.usable and fit.total)
        return sorted(with_gpus, key=lambda fit: (fit.free, fit.node.name), reverse=True)

    @cached_property
    def free(self) -> int:
        return sum(fit.free for fit in self.usable)

    @cached_property
    def with_free_count(self) -> int:
        """Number of usable nodes with free GPUs."""
        return sum(fit.free > 0 for fit in self.usable)

    @cached_property
    def _largest(self) -> int:
        return max((fit.total for fit in self.usable), default=0)

    def too_scattered(self, asked: int) -> bool:
        """Whether enough GPUs are free but not on one node; requests beyond any node are not meant."""
        return bool(self.usable) and self.usable[0].free < asked <= min(self.free, self._largest)


@dataclass
class _FitCache:
    """Nodes per pod shape, and plans per shape and request; both computed once."""

    facts: ClusterFacts
    nodes: dict[tuple[object, ...], _Nodes] = field(default_factory=dict)
    plans: dict[tuple[object, ...], tuple[Move, ...] | None] = field(default_factory=dict)

    def seen_by(self, pod: PodFact) -> _Nodes | None:
        """Nodes as a pod sees them; None if there are too many shapes."""
        shape = _shape(pod, self.facts)
        if shape not in self.nodes and len(self.nodes) < MAX_SHAPES:
            self.nodes[shape] = _Nodes(fit_all(pod, self.facts))
        return self.nodes.get(shape)

    def plan(self, pod: PodFact, fits: Sequence[NodeFit]) -> tuple[Move, ...] | None:
        """The fewest moves that help; None if none do or the plan limit is reached."""
        alike = _shape(pod, self.facts), *sorted(pod.requests.items())
        if alike not in self.plans and len(self.plans) < MAX_PLANS:
            self.plans[alike] = fewest_moves(pod, fits, self.facts)
        return self.plans.get(alike)


class _Judged(msgspec.Struct, frozen=True):
    """What was last found, when, and about which pods; `unknown` are jobs of further shapes."""

    at: float
    pods: tuple[str, ...]
    findings: tuple[Finding, ...]
    unknown: tuple[Scope, ...]


def evaluate(facts: ClusterFacts, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """Jobs that would fit if the free GPUs were on one node.

    That takes a look at every node, and is decided again only if other pods wait or after a while.
    """
    jobs, next_late = _jobs(context)
    if not jobs:
        return RuleResult(next_at=next_late)
    judged, pods = recalled(memory, _Judged), tuple(pod.uid for job in jobs for pod in job)
    if judged is None or judged.pods != pods or not judged.at <= now < judged.at + REFRESH_SECONDS:
        judged = _judge(jobs, pods, facts, now)
    next_at = min(judged.at + REFRESH_SECONDS, next_late or math.inf)
    return RuleResult(judged.findings, msgspec.to_builtins(judged), judged.unknown, next_at)


def _judge(jobs: Sequence[Sequence[PodFact]], uids: tuple[str, ...], facts: ClusterFacts, now: float) -> _Judged:
    findings, unknown, cache = [], [], _FitCache(facts)
    for pods in jobs:
        pod = max(pods, key=lambda pod: requested_gpus(pod, facts))
        nodes = cache.seen_by(pod)
        if nodes is None:
            unknown.append(Scope(labels=identifying_labels(NAME, _labels(pods, facts))))
        elif nodes.too_scattered(requested_gpus(pod, facts)):
            findings.append(_finding(pods, pod, nodes, cache.plan(pod, nodes.fits), facts))
    return _Judged(now, uids, tuple(findings), tuple(unknown))


def _shape(pod: PodFact, facts: ClusterFacts) -> tuple[object, ...]:
    selector = tuple(sorted(pod.node_selector.items()))
    return gpu_resource(pod, facts), selector, pod.node_affinity, pod.tolerations


def _jobs(context: RuleContext) -> tuple[list[list[PodFact]], float | None]:
    """Unscheduled pods requesting GPUs, by job, longest waiting first, and when another has waited long enough."""
    facts, jobs, next_late = context.facts, defaultdict(list), list[float]()
    for pod in facts.pending_pods:
        if pod.created_at is None or pod.scheduling_gates or not _requests_devices(pod, facts):
            continue
        limits: Limits = context.limits.of({"namespace": pod.namespace, "queue": facts.identity(pod).queue or ""})
        if context.now - pod.created_at < limits.after:
            next_late.append(pod.created_at + limits.after)
        else:
            jobs[pod.namespace, facts.identity(pod).job or pod.uid].append(pod)
    ordered = sorted(jobs.values(), key=lambda pods: (min(pod.created_at or 0.0 for pod in pods), pods[0].uid))
    return ordered, min(next_late, default=None)


def _requests_devices(pod: PodFact, facts: ClusterFacts) -> bool:
    """Whether a pod requests whole devices or slices. Where a share of a card fits, only its scheduler knows."""
    kind = resource_kind(gpu_resource(pod, facts))
    return requested_gpus(pod, facts) > 0 and (kind is None or (kind.countable and not kind.per_card))


def _labels(pods: Sequence[PodFact], facts: ClusterFacts) -> dict[str, str]:
    identity = facts.identity(pods[0])
    labels = {"namespace": pods[0].namespace, "job": identity.job, "user": identity.user, "queue": identity.queue}
    if len(pods) == 1:
        labels["pod"] = pods[0].name
    return label_values(labels)


def _finding(
    pods: Sequence[PodFact], pod: PodFact, nodes: _Nodes, plan: tuple[Move, ...] | None, facts: ClusterFacts
) -> Finding:
    most = nodes.usable[0]
    values: dict[str, Value] = {"job": facts.identity(pod).job or pod.name, "namespace": pod.namespace}
    values |= {"user": facts.user(pod), "asked": gpus_in_words(pod, facts), "free": nodes.free, "most": most.free}
    values |= {"node": most.node.name, "nodes": nodes.with_free_count}
    since = min(pod.created_at or 0.0 for pod in pods)
    if not plan:
        return make_finding(NAME, NAME, _labels(pods, facts), values, since=since)
    moves = (f"{move.pod.namespace}/{move.pod.name} ({move.gpus}) {move.source} -> {move.target}" for move in plan)
    moved = ", ".join(f"{move.pod.namespace}/{move.pod.name}" for move in plan)
    return make_finding(
        NAME, NAME, _labels(pods, facts), values, since=since,
        evidence=(Text(f"{NAME}.moves", {"count": len(plan), "moves": "; ".join(moves)}),),
        advice_key=f"{NAME}.moves.advice", advice_values={"node": plan[0].source, "pods": moved},
    )  # fmt: skip


RULE = Rule(
    NAME, Limits, (), evaluate, SubjectKind.CLUSTER, uses=("pods",), kube=("pods", "nodes"), latency=Latency("after")
)
