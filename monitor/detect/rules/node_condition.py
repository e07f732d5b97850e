"""node-condition: another tool has marked a node as faulty, by a condition or taint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from monitor.base.globs import matches_any_glob
from monitor.base.text import shorten
from monitor.detect.base import NOTHING, Delay, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding, shorten_raw
from monitor.detect.labels import label_value
from monitor.detect.lib.gpus import numeric_values, track_since
from monitor.detect.lib.node_conditions import (
    CAUSES,
    RULE_NAME,
    SEVERITIES,
    ReportedFault,
    condition_fault,
    taint_fault,
)
from monitor.detect.subjects import NodeSubject
from monitor.facts.findings import Finding, Scope
from monitor.facts.kube import NodeFact
from monitor.facts.text import Text, Value

MAX_FAULTS = 20  # per node
MAX_MESSAGE_CHARS = 300
Meaning = Literal[CAUSES]  # type: ignore[valid-type]  # the causes of the table


@dataclass(frozen=True)
class Limits:
    """How long a condition has to last, which are ignored, and what further ones mean."""

    after: Seconds = 60.0
    ignored: tuple[str, ...] = ()
    conditions: dict[str, Meaning] = field(default_factory=dict)
    taints: tuple[str, ...] = ()


def evaluate(node: NodeSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """What other tools have marked a node with: one finding for each condition or taint."""
    if node.fact is None or node.fact.deletion_at is not None:
        return NOTHING
    limits: Limits = context.limits.of({"node": node.name})
    faults = {fault.name: fault for fault in _faults(node.fact, limits)}
    since = track_since(numeric_values(memory), {name: fault.since for name, fault in faults.items()}, now)
    begins = {name: since[name] + limits.after for name in faults}
    reported = [fault for name, fault in faults.items() if begins[name] <= now]
    findings = tuple(_finding(node.name, fault, since[fault.name]) for fault in reported)
    return RuleResult(findings, since or None, next_at=min((at for at in begins.values() if at > now), default=None))


def _faults(node: NodeFact, limits: Limits) -> Iterator[ReportedFault]:
    conditions = (condition_fault(condition, limits.conditions) for condition in node.conditions)
    taints = (taint_fault(taint, limits.taints) for taint in node.taints)
    known = (fault for fault in (*conditions, *taints) if fault is not None)
    wanted = [fault for fault in known if not matches_any_glob(fault.name, limits.ignored)]
    yield from sorted(wanted, key=lambda fault: CAUSES.index(fault.cause))[:MAX_FAULTS]


def _finding(node: str, fault: ReportedFault, since: float) -> Finding:
    message = shorten(fault.says, MAX_MESSAGE_CHARS)
    values: dict[str, Value] = {"node": node, "condition": fault.name}
    evidence = [Text(f"{RULE_NAME}.{'taint' if fault.taint else 'says'}", values | {"message": message or "?"})]
    labels = {"node": label_value(node), "condition": label_value(fault.name)}
    # A taint follows from what the conditions say.
    same_node = Scope(labels={"node": labels["node"]}, rules=(RULE_NAME,), causes=("isolated",))
    return make_finding(
        RULE_NAME, fault.cause, labels, values, severity=SEVERITIES[fault.cause], evidence=evidence, since=since,
        explains=() if fault.taint else (same_node,), raw=shorten_raw(fault.says) or None,
    )  # fmt: skip


RULE = Rule(
    RULE_NAME, Limits, CAUSES, evaluate, SubjectKind.NODE, uses=("node",), kube=("nodes",),
    suppressed_by=("disk-full", "gpu-fault", "gpu-hot", "kernel-fault", "mount-lost", "node-down"),
    latency=Latency("after", Delay.FIRST_SEEN),
)  # fmt: skip
