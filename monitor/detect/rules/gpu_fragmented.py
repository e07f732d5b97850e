"""gpu-fragmented: a job waits although enough GPUs are free, only not on one node; and what could be moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, Seconds
from monitor.detect.lib.moves import Move, fewest_moves
from monitor.detect.visibility import label_value, resources_unavailable
from monitor.explain.fit import NodeFit, fit_all, gpu_resource, gpus_asked
from monitor.facts.cluster_facts import World
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

CAUSES: tuple[str, ...] = ()
NAME = "gpu-fragmented"
MAX_SHAPES = 6  # so many kinds of wishes (selector, affinity, tolerations) are looked at in one go, oldest first
MAX_PLANS = 3


@dataclass(frozen=True)
class Limits:
    """How long a job has to wait before its waiting is said to be due to fragments."""

    after: Seconds = 600.0


@dataclass(frozen=True)
class _FreeGpus:
    """The nodes as pods of one shape see them, and what is free on those that they may use."""

    fits: tuple[NodeFit, ...]
    most: NodeFit | None  # the node with the most free GPUs
    free: int
    nodes: int
    largest: int

    def too_scattered(self, asked: int) -> bool:
        """Return whether there is enough, only not on one node. What no node could ever take is not meant."""
        return self.most is not None and self.most.free < asked <= min(self.free, self.largest)


def _free_gpus(fits: tuple[NodeFit, ...]) -> _FreeGpus:
    usable = [each for each in fits if each.usable and each.total]
    return _FreeGpus(
        fits=fits,
        most=max(usable, key=lambda each: (each.free, each.node.name), default=None),
        free=sum(each.free for each in usable),
        nodes=sum(each.free > 0 for each in usable),
        largest=max((each.total for each in usable), default=0),
    )


@dataclass
class _FitCache:
    """The nodes as pods of one shape see them, asked once a shape; and plans, made once for pods that are alike."""

    facts: World
    free_by_shape: dict[tuple[object, ...], _FreeGpus] = field(default_factory=dict)
    plans: dict[tuple[object, ...], tuple[Move, ...] | None] = field(default_factory=dict)

    def seen_by(self, pod: PodFact) -> _FreeGpus | None:
        """Return the nodes as a pod sees them; None when there are too many kinds of pods."""
        shape = _shape(pod, self.facts)
        if shape not in self.free_by_shape:
            if len(self.free_by_shape) >= MAX_SHAPES:
                return None
            self.free_by_shape[shape] = _free_gpus(fit_all(pod, self.facts))
        return self.free_by_shape[shape]

    def plan(self, pod: PodFact, fits: Sequence[NodeFit]) -> tuple[Move, ...] | None:
        """Return the fewest moves that help; None if none do, or enough has been planned."""
        alike = _shape(pod, self.facts), *sorted(pod.requests.items())
        if alike not in self.plans and len(self.plans) < MAX_PLANS:
            self.plans[alike] = fewest_moves(pod, fits, self.facts)
        return self.plans.get(alike)


def detect(context: RuleContext, _memory: Any) -> RuleResult:
    """Find the jobs that would fit into what is free, if it were on one node."""
    if resources_unavailable(context, "pods", "nodes"):
        return RuleResult(blind=(Scope(labels={}),))
    findings, blind = [], []
    cluster = _FitCache(context.facts)
    for pods in _jobs(context):
        pod = max(pods, key=lambda each: gpus_asked(each, context.facts))
        free_gpus = cluster.seen_by(pod)
        if free_gpus is None:
            blind.append(Scope(labels=_labels(pods, context.facts)))
        elif free_gpus.too_scattered(gpus_asked(pod, context.facts)):
            findings.append(_finding(pods, pod, free_gpus, cluster.plan(pod, free_gpus.fits), context))
    return RuleResult(findings=tuple(findings), blind=tuple(blind))


def _shape(pod: PodFact, facts: World) -> tuple[object, ...]:
    selector = tuple(sorted(pod.node_selector.items()))
    return gpu_resource(pod, facts), selector, pod.node_affinity, pod.tolerations


def _jobs(context: RuleContext) -> list[list[PodFact]]:
    """Return the pods that wait for GPUs and for a node, by job; who has waited longest comes first."""
    facts, jobs = context.facts, defaultdict(list)
    for pod in facts.pods:
        if pod.node is not None or pod.phase not in ("Pending", None) or pod.deletion_at is not None:
            continue
        limits: Limits = context.limits.of({"namespace": pod.namespace, "queue": facts.identity(pod).queue or ""})
        waited = context.now - pod.created_at if pod.created_at is not None else 0.0
        if not pod.scheduling_gates and waited >= limits.after and gpus_asked(pod, facts) > 0:
            jobs[pod.namespace, facts.identity(pod).job or pod.uid].append(pod)
    return sorted(jobs.values(), key=lambda pods: (min(pod.created_at or 0.0 for pod in pods), pods[0].uid))


def _labels(pods: Sequence[PodFact], facts: World) -> dict[str, str]:
    who = facts.identity(pods[0])
    named = {"namespace": pods[0].namespace, "job": who.job, "user": who.user, "queue": who.queue}
    if len(pods) == 1:
        named["pod"] = pods[0].name
    return {name: label_value(value) for name, value in named.items() if value}


def _finding(
    pods: Sequence[PodFact],
    pod: PodFact,
    free_gpus: _FreeGpus,
    plan: tuple[Move, ...] | None,
    context: RuleContext,
) -> Finding:
    facts = context.facts
    since = min(each.created_at or context.now for each in pods)
    values: dict[str, Value] = {
        "job": facts.identity(pod).job or pod.name,
        "namespace": pod.namespace,
        "user": facts.user(pod),
        "asked": gpus_asked(pod, facts),
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
        f"{each.pod.namespace}/{each.pod.name} ({each.gpus}) {each.source} -> {each.target}" for each in plan
    )
    return {"count": len(plan), "moves": moves}


def _advice(plan: Sequence[Move] | None, values: dict[str, Value]) -> Text:
    if not plan:
        return Text(key=f"{NAME}.advice", values=values)
    pods = ", ".join(f"{each.pod.namespace}/{each.pod.name}" for each in plan)
    return Text(key=f"{NAME}.moves.advice", values={"node": plan[0].source, "pods": pods})


RULE = Rule(NAME, Limits, CAUSES, detect, latency={ANY_CAUSE: Latency("after")})
