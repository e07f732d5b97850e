"""kernel-fault: the kernel of a node reports errors of memory, PCIe, NVSwitches or storage, stuck CPUs or tasks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.base.text import shorten
from monitor.detect.base import Latency, Rule, RuleContext, RuleResult, SubjectKind, Threshold, ThresholdLimit
from monitor.detect.findings import make_finding, shorten_raw
from monitor.detect.labels import label_value
from monitor.detect.lib.kernel_events import Occurrence, occurrences
from monitor.detect.lib.node_conditions import same_fault
from monitor.detect.subjects import NodeSubject
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text

NAME = "kernel-fault"
_HOUR_SECONDS = 3600.0
_DAY_SECONDS = 24 * _HOUR_SECONDS
_QUARTER_HOUR_SECONDS = 900.0
_ONCE_A_DAY = Threshold(1, _DAY_SECONDS)
_TEN_A_DAY = Threshold(10, _DAY_SECONDS)
_ONCE_AN_HOUR = Threshold(1, _HOUR_SECONDS)
_THREE_AN_HOUR = Threshold(3, _HOUR_SECONDS)
_TEN_AN_HOUR = Threshold(10, _HOUR_SECONDS)
_HUNDRED_AN_HOUR = Threshold(100, _HOUR_SECONDS)
_ONCE_A_QUARTER_HOUR = Threshold(1, _QUARTER_HOUR_SECONDS)
_MAX_MESSAGE_CHARS = 200
_MAX_STATED_CAUSES = 3
_MAX_EXPLAINED_FINDINGS = 1000
# Most severe first: the first one is the cause of a subject that has several.
_CRITICAL = (
    "memory-error", "nvswitch-reboot", "cpu-lockup", "filesystem-read-only", "pcie-error", "nvswitch-reset",
)  # fmt: skip
_WARNING = (
    "disk-error", "filesystem-error", "nfs-not-responding", "node-out-of-memory", "nvswitch-vendor", "hung-task",
    "memory-corrected",
)  # fmt: skip
_INFO = ("pcie-corrected", "container-out-of-memory", "nvswitch-harmless")
SEVERITIES = {
    **dict.fromkeys(_CRITICAL, Severity.CRITICAL),
    **dict.fromkeys(_WARNING, Severity.WARNING),
    **dict.fromkeys(_INFO, Severity.INFO),
}
CAUSES = tuple(SEVERITIES)
_SWITCH_CAUSES = frozenset({"nvswitch-reboot", "nvswitch-reset", "nvswitch-vendor"})
# What another tool may report of the same: cause of node-condition by cause.
_AS_CONDITION = {
    **dict.fromkeys(("cpu-lockup", "hung-task", "memory-error"), "kernel"),
    **dict.fromkeys(("disk-error", "filesystem-error", "filesystem-read-only"), "filesystem"),
    **dict.fromkeys(_SWITCH_CAUSES, "gpu-link"),
}


@dataclass(frozen=True)
class Limits:
    """How many events of each cause within which time are reported, for as long as they are within that time.

    `everywhere` is the number of nodes to which an NFS server does not respond at once that makes it one finding.
    """

    memory_error: ThresholdLimit = _ONCE_A_DAY
    memory_corrected: ThresholdLimit = _TEN_A_DAY
    pcie_error: ThresholdLimit = _ONCE_AN_HOUR
    pcie_corrected: ThresholdLimit = _HUNDRED_AN_HOUR
    disk_error: ThresholdLimit = _THREE_AN_HOUR
    filesystem_error: ThresholdLimit = _ONCE_A_DAY
    filesystem_read_only: ThresholdLimit = _ONCE_A_DAY
    nfs_not_responding: ThresholdLimit = _ONCE_A_QUARTER_HOUR
    hung_task: ThresholdLimit = _ONCE_A_QUARTER_HOUR
    cpu_lockup: ThresholdLimit = _ONCE_AN_HOUR
    nvswitch_reboot: ThresholdLimit = _ONCE_A_DAY
    nvswitch_reset: ThresholdLimit = _ONCE_AN_HOUR
    nvswitch_vendor: ThresholdLimit = _ONCE_AN_HOUR
    nvswitch_harmless: ThresholdLimit = _TEN_AN_HOUR
    node_out_of_memory: ThresholdLimit = _ONCE_AN_HOUR
    container_out_of_memory: ThresholdLimit = _ONCE_A_QUARTER_HOUR
    everywhere: int = 3

    def of_cause(self, cause: str) -> Threshold:
        threshold: Threshold = getattr(self, cause.replace("-", "_"))
        return threshold


def evaluate(node: NodeSubject, context: RuleContext, _memory: Any, now: float) -> RuleResult:
    """What the kernel of a node reported often enough: one finding per GPU, mount, container, or the node itself."""
    groups: dict[tuple[tuple[str, str], ...], dict[str, list[Occurrence]]] = {}
    until: list[float] = []
    for (labels, cause), events in _by_cause(occurrences(node.report, context.facts)).items():
        limits: Limits = context.limits.of(dict(labels))
        threshold = limits.of_cause(cause)
        ends = threshold.met_until([(event.at, event.count) for event in events])
        if now < ends:
            counted = [event for event in events if event.at + threshold.window > now]
            groups.setdefault(labels, {})[cause] = counted
            # The number in the text changes whenever an event leaves the window.
            until += [ends, *(event.at + threshold.window for event in counted)]
    findings = tuple(_finding(dict(labels), causes) for labels, causes in groups.items())
    # The memory makes the engine evaluate the node again when facts change that only name what the events are about.
    remembered = {"events": True} if node.report.snapshot.kernel and node.report.snapshot.kernel.recent else None
    return RuleResult(findings, remembered, next_at=min((at for at in until if now < at < math.inf), default=None))


def _by_cause(
    events: Iterable[Occurrence],
) -> dict[tuple[tuple[tuple[str, str], ...], str], list[Occurrence]]:
    grouped: dict[tuple[tuple[tuple[str, str], ...], str], list[Occurrence]] = {}
    for event in events:
        grouped.setdefault((tuple(sorted(event.labels.items())), event.cause), []).append(event)
    return grouped


def _finding(labels: dict[str, str], causes: dict[str, list[Occurrence]]) -> Finding:
    ordered = sorted(causes, key=CAUSES.index)[:_MAX_STATED_CAUSES]
    worst, events = ordered[0], causes[ordered[0]]
    values = events[-1].values | {"count": sum(event.count for event in events)}
    advice = [Text(f"{NAME}.{cause}.advice", causes[cause][-1].values) for cause in ordered]
    return make_finding(
        NAME, worst, labels, values, severity=SEVERITIES[worst],
        evidence=[_line(causes[cause]) for cause in ordered], advice=advice,
        since=min(event.since for event in events), explains=_explains(worst, ordered, labels),
        raw=shorten_raw("; ".join(causes[cause][-1].message for cause in ordered)) or None,
    )  # fmt: skip


def correlate(findings: Sequence[Finding], context: RuleContext) -> Sequence[Finding]:
    """The findings, and one about each NFS server that several nodes miss."""
    by_server: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.cause == "nfs-not-responding":
            by_server[str(finding.headline.values["device"])].append(finding)
    limits: Limits = context.limits.default
    servers = [_server(name, missing) for name, missing in by_server.items() if len(missing) >= limits.everywhere]
    return [*findings, *servers]


def _server(name: str, missing: Sequence[Finding]) -> Finding:
    first = min(missing, key=lambda finding: (finding.since or 0.0, finding.labels["node"]))
    values = first.headline.values | {"count": len(missing)}
    scopes = [Scope(labels=finding.labels, rules=(NAME,)) for finding in missing[:_MAX_EXPLAINED_FINDINGS]]
    return make_finding(
        NAME, first.cause, {"mount": first.labels["mount"], "service": label_value(name)}, values,
        severity=Severity.CRITICAL, key=f"{NAME}.nfs-server", evidence=first.evidence,
        advice_key=f"{NAME}.{first.cause}.advice", since=first.since, explains=scopes,
        held=all(finding.held for finding in missing), raw=first.raw,
    )  # fmt: skip


def _line(events: Sequence[Occurrence]) -> Text:
    message = shorten(events[-1].message, _MAX_MESSAGE_CHARS)
    return Text(f"{NAME}.line", {"count": sum(event.count for event in events), "message": message})


def _explains(worst: str, causes: Iterable[str], labels: dict[str, str]) -> tuple[Scope, ...]:
    """A switch takes the NVLinks of its GPUs down; a disk with errors is slow; others may report the same."""
    reported = tuple(dict.fromkeys(_AS_CONDITION[cause] for cause in causes if cause in _AS_CONDITION))
    same = same_fault(labels, *reported) if reported else ()
    if worst in _SWITCH_CAUSES:
        return (Scope(labels={"node": labels["node"]}, rules=("gpu-fault",), causes=("xid-nvlink",)), *same)
    return (*((Scope(labels=labels, rules=("disk-io-saturated",)),) if "mount" in labels else ()), *same)


RULE = Rule(
    NAME, Limits, CAUSES, evaluate, SubjectKind.NODE, needs=("kernel",),
    refines=("containers", "disk", "disk_io", "gpu", "mounts", "pods"),
    suppressed_by=("gpu-fault", "mount-lost", "node-down"), correlate=correlate,
    latency={cause: Latency(resolve_limit=Limits().of_cause(cause).window) for cause in CAUSES},
)  # fmt: skip
