"""disk-io-saturated: a disk is permanently busy and requests queue up; with the pods of its node.

I/O per pod is unknown: pods with processes waiting for a disk (state D) are listed first, then the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import (
    ANY_CAUSE,
    Delay,
    Latency,
    Ratio,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    whole_cluster,
)
from monitor.detect.labels import label_value
from monitor.detect.lib.storage import container_owner, memory_sections, node_reports
from monitor.detect.subjects import NodeReport
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.storage import DiskIoFact
from monitor.facts.text import Text, Value

CAUSES: tuple[str, ...] = ()
_MAX_PAUSE_SECONDS = 60.0  # a shorter pause, as between checkpoints, does not end the busy period
_KEEP_UNSEEN_SECONDS = 3600.0
_MAX_NAMED_PODS = 5


@dataclass(frozen=True)
class Limits:
    """Busy share, queue length and duration. An SSD can be permanently busy without a queue."""

    busy: Ratio = 0.90
    queue: float = 4.0
    after: Seconds = 600.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Saturated disks. The memory holds since when each is busy, and its queue length."""
    (before,) = memory_sections(memory, "busy")
    reports = node_reports(context)
    busy: dict[str, Any] = {}
    findings, blind = [], list(reports.blind_scopes("disk_io"))
    for report in reports.nodes.values():
        for fact in report.section("disk_io") or ():
            labels = _labels(report, fact)
            key = f"{report.node} {fact.device}"
            if fact.busy_ratio is None or fact.queue_length is None:
                blind.append(Scope(labels=labels))
                busy |= {key: before[key]} if key in before else {}
                continue
            limits: Limits = context.limits.of(labels)
            entry = _remember(before.get(key), fact, limits, context.now)
            if entry is None:
                continue
            busy[key] = entry
            if context.now - entry["since"] >= limits.after and _is_not_draining(entry, limits):
                findings.append(_finding(context, report, fact, entry, labels))
    unseen = {
        k: entry for k, entry in before.items() if k not in busy and _may_return(k, entry, reports.silent, context)
    }
    return RuleResult(findings=tuple(findings), memory={"busy": busy | unseen}, blind=tuple(blind))


def _may_return(key: str, entry: Any, silent: frozenset[str], context: RuleContext) -> bool:
    return key.partition(" ")[0] in silent and context.now - entry["last"] < _KEEP_UNSEEN_SECONDS


def _labels(report: NodeReport, fact: DiskIoFact) -> dict[str, str]:
    """The first mount stands for the device, which is not a label."""
    return {"node": label_value(report.node), "mount": label_value(fact.mounts[0] if fact.mounts else fact.device)}


def _remember(entry: Any, fact: DiskIoFact, limits: Limits, now: float) -> dict[str, Any] | None:
    """Start of the busy period with its first and smoothed current queue; None if the disk is not busy."""
    ratio, queue = fact.busy_ratio or 0.0, fact.queue_length or 0.0
    if entry:  # the clock may have been set back
        entry = {**entry, "since": min(entry["since"], now), "last": min(entry["last"], now)}
    if ratio > limits.busy and queue >= limits.queue:
        if not entry:
            return {"since": now, "last": now, "first": queue, "queue": queue}
        return {**entry, "last": now, "queue": 0.8 * entry["queue"] + 0.2 * queue}
    return entry if entry and now - entry["last"] <= _MAX_PAUSE_SECONDS else None


def _is_not_draining(entry: dict[str, Any], limits: Limits) -> bool:
    """Whether the queue is not shrinking: half of its first length means it is being worked off."""
    return bool(entry["queue"] >= max(limits.queue, entry["first"] / 2))


def _finding(
    context: RuleContext, report: NodeReport, fact: DiskIoFact, entry: dict[str, Any], labels: dict[str, str]
) -> Finding:
    queue = round(entry["queue"])
    values: dict[str, Value] = {"node": report.node, "device": fact.device, "share": fact.busy_ratio or 0.0}
    mounts = Text(key="disk-io-saturated.mounts", values={"mounts": ", ".join(fact.mounts[:3])})
    return Finding(
        rule="disk-io-saturated",
        severity=Severity.WARNING,
        cause="disk-io-saturated",
        labels=labels,
        headline=Text(
            key="disk-io-saturated", values={**values, "queue": queue, "seconds": context.now - entry["since"]}
        ),
        evidence=(
            Text(key="disk-io-saturated.queue", values={"before": round(entry["first"]), "queue": queue}),
            *((mounts,) if fact.mounts else ()),
            *_pods(report, context.facts),
        ),
        advice=(Text(key="disk-io-saturated.advice", values={"node": report.node}),),
        since=entry["since"],
    )


def _pods(report: NodeReport, facts: ClusterFacts) -> list[Text]:
    """Pods that may be the cause: those waiting for a disk, then the other running ones."""
    waiting: Counter[str] = Counter(
        process.container_id
        for process in report.snapshot.gpu_processes or ()
        if process.state == "D" and process.container_id is not None
    )
    owners: Counter[tuple[str, str]] = Counter()
    for container in report.containers.values():
        if container.state == "running" and not container.sandbox:
            owners[container_owner(container, facts)] += waiting[container.id]
    ordered = sorted(owners.items(), key=lambda item: (-item[1], item[0]))[:_MAX_NAMED_PODS]
    return [
        Text(key="disk-io-saturated.waiting", values={"pod": pod, "user": user, "count": count})
        if count
        else Text(key="disk-io-saturated.pod", values={"pod": pod, "user": user})
        for (pod, user), count in ordered
    ]


RULE = Rule(
    "disk-io-saturated",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    latency={ANY_CAUSE: Latency("after", Delay.FIRST_SEEN, _MAX_PAUSE_SECONDS, collector="disk_io")},
)
