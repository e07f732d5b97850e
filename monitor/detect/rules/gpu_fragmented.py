"""gpu-fragmented: a job is pending although enough GPUs are free, but not on one node; with pods to move."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.labels import label_value
from monitor.detect.lib.moves import Move, fewest_moves
from monitor.detect.visibility import resources_unavailable
from monitor.explain.fit import NodeFit, fit_all, gpu_resource, requested_gpus
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

CAUSES: tuple[str, ...] = ()
NAME = "gpu-fragmented"
MAX_SHAPES = 6  # of selector, affinity and tolerations, per evaluation; oldest pods first
MAX_PLANS = 3


@dataclass(frozen=True)
class Limits:
    """How long a job has to wait."""

    after: Seconds = 600.0


@dataclass(frozen=True)
class _FreeGpus:
    """Nodes as pods of one shape see them, and the GPUs free on usable ones."""

    fits: tuple[NodeFit, ...]
    most: NodeFit | None  # the node with the most free GPUs
    free: int
    nodes: int
    largest: int

    def too_scattered(self, asked: int) -> bool:
        """Whether enough GPUs are free but not on one node; requests beyond any node are not meant."""
        return self.most is not None and self.most.free < asked <= min(self.free, self.largest)


def _free_gpus(fits: tuple[NodeFit, ...]) -> _FreeGpus:
    usable = [fit for fit in fits if fit.usable and fit.total]
    return _FreeGpus(
        fits=fits,
        most=max(usable, key=lambda fit: (fit.free, fit.node.name), default=None),
        free=sum(fit.free for fit in usable),
        nodes=sum(fit.free > 0 for fit in usable),
        largest=max((fit.total for fit in usable), default=0),
    )


@dataclass
class _FitCache:
    """Free GPUs per pod shape, and plans per shape and request; both computed once."""

    facts: ClusterFacts
    free_by_shape: dict[tuple[object, ...], _FreeGpus] = field(default_factory=dict)
    plans: dict[tuple[object, ...], tuple[Move, ...] | None] = field(default_factory=dict)

    def seen_by(self, pod: PodFact) -> _FreeGpus | None:
        """Nodes as a pod sees them; None if there are too many shapes."""
        shape = _shape(pod, self.facts)
        if shape not in self.free_by_shape:
            if len(self.free_by_shape) >= MAX_SHAPES:
                return None
            self.free_by_shape[shape] = _free_gpus(fit_all(pod, self.facts))
        return self.free_by_shape[shape]

    def plan(self, pod: PodFact, fits: Sequence[NodeFit]) -> tuple[Move, ...] | None:
        """The fewest moves that help; None if none do or the plan limit is reached."""
        alike = _shape(pod, self.facts), *sorted(pod.requests.items())
        if alike not in self.plans and len(self.plans) < MAX_PLANS:
            self.plans[alike] = fewest_moves(pod, fits, self.facts)
        return self.plans.get(alike)


def detect(context: RuleContext, _memory: Any) -> RuleResult:
    """Jobs that would fit if the free GPUs were on one node."""
    if resources_unavailable(context, "pods", "nodes"):
        return RuleResult(blind=(Scope(labels={}),))
    findings, blind = [], []
    cache = _FitCache(context.facts)
    for pods in _jobs(context):
        pod = max(pods, key=lambda pod: requested_gpus(pod, context.facts))
        free_gpus = cache.seen_by(pod)
        if free_gpus is None:
            blind.append(Scope(labels=_labels(pods, context.facts)))
        elif free_gpus.too_scattered(requested_gpus(pod, context.facts)):
            findings.append(_finding(pods, pod, free_gpus, cache.plan(pod, free_gpus.fits), context))
    return RuleResult(findings=tuple(findings), blind=tuple(blind))


def _shape(pod: PodFact, facts: ClusterFacts) -> tuple[object, ...]:
    selector = tuple(sorted(pod.node_selector.items()))
    return gpu_resource(pod, facts), selector, pod.node_affinity, pod.tolerations


def _jobs(context: RuleContext) -> list[list[PodFact]]:
    """Unscheduled pods requesting GPUs, by job, longest waiting first."""
    facts, jobs = context.facts, defaultdict(list)
    for pod in facts.pods:
        if pod.node is not None or pod.phase not in ("Pending", None) or pod.deletion_at is not None:
            continue
        limits: Limits = context.limits.of({"namespace": pod.namespace, "queue": facts.identity(pod).queue or ""})
        waited = context.now - pod.created_at if pod.created_at is not None else 0.0
        if not pod.scheduling_gates and waited >= limits.after and requested_gpus(pod, facts) > 0:
            jobs[pod.namespace, facts.identity(pod).job or pod.uid].append(pod)
    return sorted(jobs.values(), key=lambda pods: (min(pod.created_at or 0.0 for pod in pods), pods[0].uid))


def _labels(pods: Sequence[PodFact], facts: ClusterFacts) -> dict[str, str]:
    identity = facts.identity(pods[0])
    labels = {"namespace": pods[0].namespace, "job": identity.job, "user": identity.user, "queue": identity.queue}
    if len(pods) == 1:
        labels["pod"] = pods[0].name
    return {name: label_value(value) for name, value in labels.items() if value}


def _finding(
    pods: Sequence[PodFact],
    pod: PodFact,
    free_gpus: _FreeGpus,
    plan: tuple[Move, ...] | None,
    context: RuleContext,
) -> Finding:
    facts = context.facts
    since = min(pod.created_at or context.now for pod in pods)
    values: dict[str, Value] = {
        "job": facts.identity(pod).job or pod.name,
        "namespace": pod.namespace,
        "user": facts.user(pod),
        "asked": requested_gpus(pod, facts),
        "free": free_gpus.free,
        "most": free_gpus.most.free if free_gpus.most else 0,
        "node": free_gpus.most.node.name if free_gpus.most else "?",
        "nodes": free_gpus.nodes,
        "seconds": context.now - since,
    }
    return Finding(
        rule=NAME,
        severity=Severity.WARNING,
        cause=NAME,
        labels=_labels(pods, facts),
        headline=Text(key=NAME, values=values),
        evidence=(Text(key=f"{NAME}.moves", values=_move_values(plan)),) if plan else (),
        advice=(_advice(plan, values),),
        since=since,
    )


def _move_values(plan: Sequence[Move]) -> dict[str, Value]:
    moves = "; ".join(
        f"{move.pod.namespace}/{move.pod.name} ({move.gpus}) {move.source} -> {move.target}" for move in plan
    )
    return {"count": len(plan), "moves": moves}


def _advice(plan: Sequence[Move] | None, values: dict[str, Value]) -> Text:
    if not plan:
        return Text(key=f"{NAME}.advice", values=values)
    pods = ", ".join(f"{move.pod.namespace}/{move.pod.name}" for move in plan)
    return Text(key=f"{NAME}.moves.advice", values={"node": plan[0].source, "pods": pods})


RULE = Rule(NAME, Limits, CAUSES, whole_cluster(detect), SubjectKind.CLUSTER, latency={ANY_CAUSE: Latency("after")})
