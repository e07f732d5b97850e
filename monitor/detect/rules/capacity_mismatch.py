"""capacity-mismatch: the driver, the device plugin and the kubelet count a node's cards differently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds
from monitor.detect.lib import gpus
from monitor.detect.lib.gpu_counts import GpuCounts, gpus_are_shared, gpu_counts_by_node
from monitor.detect.visibility import label_value
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

CAUSES = ("device-plugin", "unhealthy-device")
PLUGIN, UNHEALTHY = CAUSES


@dataclass(frozen=True)
class Limits:
    """How long it has to last: while a kubelet or a device plugin restarts, a node has no cards at all."""

    after: Seconds = 300.0


def detect(situation: RuleContext, memory: Any) -> RuleResult:
    """Find the nodes whose cards are counted differently."""
    reports = gpus.reporting_agents(situation)
    blind = gpus.find_blind_spots(situation, reports, "gpu", kube=("nodes",))
    found = {} if blind.everything else dict(_mismatches(situation))
    since = gpus.track_since(memory, {f"{node}/{cause}": None for node, (cause, _) in found.items()}, blind, situation.now)
    findings = []
    for node, (cause, counts) in found.items():
        limits: Limits = situation.limits.of({"node": node})
        began = since[f"{node}/{cause}"]
        if situation.now - began >= limits.after:
            findings.append(_finding(node, cause, counts, began, situation.now))
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _mismatches(situation: RuleContext) -> Iterator[tuple[str, tuple[str, GpuCounts]]]:
    """Yield the nodes that differ: a card that was taken out of use, else a device plugin that counts wrongly."""
    for node, counts in gpu_counts_by_node(situation).items():
        if counts.allocatable < counts.capacity:
            yield node, (UNHEALTHY, counts)
        elif counts.capacity != counts.cards and not gpus_are_shared(situation, node, counts):
            yield node, (UNHEALTHY if counts.capacity > counts.cards else PLUGIN, counts)


def _finding(node: str, cause: str, counts: GpuCounts, since: float, now: float) -> Finding:
    values: dict[str, Value] = {
        "node": node,
        "cards": counts.cards,
        "capacity": counts.capacity,
        "allocatable": counts.allocatable,
        "seconds": now - since,
    }
    return Finding(
        rule="capacity-mismatch",
        severity=Severity.WARNING,
        cause=cause,
        labels={"node": label_value(node)},
        headline=Text(key=f"capacity-mismatch.{cause}", values=values),
        evidence=(Text(key="capacity-mismatch.counts", values=values),),
        advice=(Text(key=f"capacity-mismatch.{cause}.advice", values=values),),
        since=since,
    )


RULE = Rule("capacity-mismatch", Limits, CAUSES, detect, suppressed_by=("node-down",))
