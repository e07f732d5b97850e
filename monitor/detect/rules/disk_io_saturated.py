"""disk-io-saturated: a disk is busy all the time and requests pile up; with the pods of its node.

No fact says how much each pod reads and writes: those that wait for a disk (state D) are named first, then those that
run there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Delay, Latency, Ratio, Rule, RuleContext, RuleResult, Seconds
from monitor.detect.lib.storage import NodeReport, container_owner, memory_sections, node_reports
from monitor.detect.visibility import label_value
from monitor.facts.cluster_facts import World
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.storage import DiskIoFact
from monitor.facts.text import Text, Value

CAUSES: tuple[str, ...] = ()
_MAX_PAUSE_SECONDS = 60.0  # a pause shorter than this, between two checkpoints, is none
_KEEP_UNSEEN_SECONDS = 3600.0
_MAX_NAMED_PODS = 5  # pods


@dataclass(frozen=True)
class Limits:
    """How busy, with how many requests waiting, for how long. An SSD can be busy all the time without a queue."""

    busy: Ratio = 0.90
    queue: float = 4.0
    after: Seconds = 600.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Find the disks that cannot keep up. Remember since when each is busy, and how long its queue was then."""
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
            kept = _remember(before.get(key), fact, limits, context.now)
            if kept is None:
                continue
            busy[key] = kept
            if context.now - kept["since"] >= limits.after and _is_not_draining(kept, limits):
                findings.append(_finding(context, report, fact, kept, labels))
    unseen = {k: kept for k, kept in before.items() if k not in busy and _may_return(k, kept, reports.silent, context)}
    return RuleResult(findings=tuple(findings), memory={"busy": busy | unseen}, blind=tuple(blind))


def _may_return(key: str, kept: Any, silent: frozenset[str], context: RuleContext) -> bool:
    return key.partition(" ")[0] in silent and context.now - kept["last"] < _KEEP_UNSEEN_SECONDS


def _labels(report: NodeReport, fact: DiskIoFact) -> dict[str, str]:
    """A device is not a label: the first mount that it carries stands for it, else its own name."""
    return {"node": label_value(report.node), "mount": label_value(fact.mounts[0] if fact.mounts else fact.device)}


def _remember(kept: Any, fact: DiskIoFact, limits: Limits, now: float) -> dict[str, Any] | None:
    """Return since when a disk is busy: with the queue at first and now, evened out; None if it is not."""
    ratio, queue = fact.busy_ratio or 0.0, fact.queue_length or 0.0
    if kept:  # by a clock that may have been set back since
        kept = {**kept, "since": min(kept["since"], now), "last": min(kept["last"], now)}
    if ratio > limits.busy and queue >= limits.queue:
        if not kept:
            return {"since": now, "last": now, "first": queue, "queue": queue}
        return {**kept, "last": now, "queue": 0.8 * kept["queue"] + 0.2 * queue}
    return kept if kept and now - kept["last"] <= _MAX_PAUSE_SECONDS else None


def _is_not_draining(kept: dict[str, Any], limits: Limits) -> bool:
    """Return whether the queue has not begun to shrink: one that falls to half of what it was is being worked off."""
    return bool(kept["queue"] >= max(limits.queue, kept["first"] / 2))


def _finding(
    context: RuleContext, report: NodeReport, fact: DiskIoFact, kept: dict[str, Any], labels: dict[str, str]
) -> Finding:
    queue = round(kept["queue"])
    values: dict[str, Value] = {"node": report.node, "device": fact.device, "share": fact.busy_ratio or 0.0}
    mounts = Text(key="disk-io-saturated.mounts", values={"mounts": ", ".join(fact.mounts[:3])})
    return Finding(
        rule="disk-io-saturated",
        severity=Severity.WARNING,
        cause="disk-io-saturated",
        labels=labels,
        headline=Text(
            key="disk-io-saturated", values={**values, "queue": queue, "seconds": context.now - kept["since"]}
        ),
        evidence=(
            Text(key="disk-io-saturated.queue", values={"before": round(kept["first"]), "queue": queue}),
            *((mounts,) if fact.mounts else ()),
            *_pods(report, context.facts),
        ),
        advice=(Text(key="disk-io-saturated.advice", values={"node": report.node}),),
        since=kept["since"],
    )


def _pods(report: NodeReport, facts: World) -> list[Text]:
    """Return the pods that may be the reason: those that wait for a disk, then the others that run."""
    waiting: Counter[str] = Counter(
        process.container_id
        for process in report.snapshot.gpu_processes or ()
        if process.state == "D" and process.container_id is not None
    )
    found: Counter[tuple[str, str]] = Counter()
    for container in report.containers.values():
        if container.state == "running" and not container.sandbox:
            found[container_owner(container, facts)] += waiting[container.id]
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:_MAX_NAMED_PODS]
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
    detect,
    latency={ANY_CAUSE: Latency("after", Delay.FIRST_SEEN, _MAX_PAUSE_SECONDS, collector="disk_io")},
)
