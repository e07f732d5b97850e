"""disk-io-saturated: a disk is permanently busy and requests queue up; with the pods of its node.

I/O per pod is unknown: pods with processes waiting for a disk (state D) are listed first, then the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from msgspec import Struct, structs, to_builtins

from monitor.detect.base import Delay, Latency, Ratio, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_value
from monitor.detect.lib.memory import recalled
from monitor.detect.lib.storage import container_owner
from monitor.detect.subjects import NodeReport, NodeSubject
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope
from monitor.facts.storage import DiskIoFact
from monitor.facts.text import Text, Value

NAME = "disk-io-saturated"
_MAX_PAUSE_SECONDS = 60.0  # a shorter pause, as between checkpoints, does not end the busy period
_MAX_GAP_SECONDS = 3600.0  # after a longer gap in the reports, a new busy period begins
_MAX_NAMED_PODS = 5


@dataclass(frozen=True)
class Limits:
    """Busy share, queue length and duration. An SSD can be permanently busy without a queue."""

    busy: Ratio = 0.90
    queue: float = 4.0
    after: Seconds = 600.0


class _BusyPeriod(Struct, frozen=True):
    """When a disk became busy and when it last was, its first and smoothed queue, and the latest sample counted."""

    since: float
    last: float
    first: float
    queue: float
    sample: float


def evaluate(node: NodeSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """Saturated disks of a node. The memory holds the busy period of each."""
    before = recalled(memory, dict[str, _BusyPeriod]) or {}
    periods: dict[str, _BusyPeriod] = {}
    findings, blind, due = [], [], list[float]()
    for fact in node.report.snapshot.disk_io or ():
        labels, period = _labels(node.name, fact), before.get(fact.device)
        limits: Limits = context.limits.of(labels)
        known = fact.busy_ratio is not None and fact.queue_length is not None
        if known:
            period = _continued(period, fact, limits, now)
        else:
            blind.append(Scope(labels=labels))
        if period is None:
            continue
        periods[fact.device] = period
        due += (at for at in (period.since + limits.after, period.last + _MAX_PAUSE_SECONDS) if at > now)
        if known and now >= period.since + limits.after and _is_not_draining(period, limits):
            findings.append(_finding(context.facts, node.report, fact, period, labels))
    return RuleResult(tuple(findings), to_builtins(periods) or None, tuple(blind), min(due, default=None))


def _labels(node: str, fact: DiskIoFact) -> dict[str, str]:
    """The first mount stands for the device, which is not a label."""
    return {"node": label_value(node), "mount": label_value(fact.mounts[0] if fact.mounts else fact.device)}


def _continued(period: _BusyPeriod | None, fact: DiskIoFact, limits: Limits, now: float) -> _BusyPeriod | None:
    """The busy period including the current sample, which counts once; None if the disk is not busy."""
    ratio, queue, sample = fact.busy_ratio or 0.0, fact.queue_length or 0.0, fact.queue_seconds_total
    if period is not None:  # the clock may have been set back
        period = structs.replace(period, since=min(period.since, now), last=min(period.last, now))
    if ratio <= limits.busy or queue < limits.queue:
        return period if period is not None and now < period.last + _MAX_PAUSE_SECONDS else None
    if period is not None and sample == period.sample:
        return period
    if period is None or now - period.last >= _MAX_GAP_SECONDS:
        return _BusyPeriod(now, now, queue, queue, sample)
    return structs.replace(period, last=now, queue=0.8 * period.queue + 0.2 * queue, sample=sample)


def _is_not_draining(period: _BusyPeriod, limits: Limits) -> bool:
    """Whether the queue is not shrinking: half of its first length means it is being worked off."""
    return period.queue >= max(limits.queue, period.first / 2)


def _finding(
    facts: ClusterFacts, report: NodeReport, fact: DiskIoFact, period: _BusyPeriod, labels: dict[str, str]
) -> Finding:
    queue = round(period.queue)
    values: dict[str, Value] = {"node": report.node, "device": fact.device, "share": fact.busy_ratio or 0.0}
    evidence = [Text("disk-io-saturated.queue", {"before": round(period.first), "queue": queue})]
    if fact.mounts:
        evidence.append(Text("disk-io-saturated.mounts", {"mounts": ", ".join(fact.mounts[:3])}))
    return make_finding(
        NAME, NAME, labels, values | {"queue": queue}, evidence=(*evidence, *_pods(report, facts)),
        advice_values={"node": report.node}, since=period.since,
    )  # fmt: skip


def _pods(report: NodeReport, facts: ClusterFacts) -> list[Text]:
    """Pods that may be the cause: those waiting for a disk, then the other running ones."""
    waiting = Counter(process.container_id for process in report.snapshot.gpu_processes or () if process.state == "D")
    owners: Counter[tuple[str, str]] = Counter()
    for container in report.containers.values():
        if container.state == "running" and not container.sandbox:
            owners[container_owner(container, facts)] += waiting[container.id]
    ordered = sorted(owners.items(), key=lambda item: (-item[1], item[0]))[:_MAX_NAMED_PODS]
    return [
        Text("disk-io-saturated.waiting", {"pod": pod, "user": user, "count": count})
        if count
        else Text("disk-io-saturated.pod", {"pod": pod, "user": user})
        for (pod, user), count in ordered
    ]


RULE = Rule(
    NAME, Limits, (), evaluate, SubjectKind.NODE,
    needs=("disk_io",), uses=("containers", "gpu_processes", "pods"),
    suppressed_by=("kernel-fault",),
    latency=Latency("after", Delay.FIRST_SEEN, _MAX_PAUSE_SECONDS, collector="disk_io"),
)  # fmt: skip
