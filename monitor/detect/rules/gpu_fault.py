"""gpu-fault: a GPU or the driver of a node is broken, by XID, ECC, remapped rows, or because it does not respond."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.base.text import shorten
from monitor.detect.base import (
    MAX_RAW_CHARS,
    Delay,
    Latency,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    whole_cluster,
)
from monitor.detect.labels import label_value
from monitor.detect.lib import gpus as gpu_lib
from monitor.detect.lib import xids
from monitor.detect.lib.gpu_fault_signs import FaultSign, gpu_signs, node_signs, xid_signs
from monitor.detect.visibility import resources_unavailable
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuView
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

# Most severe first: the first one is the cause of a GPU that has several.
SEVERITIES = {
    "driver-hung": Severity.CRITICAL,
    "card-lost": Severity.CRITICAL,
    "xid-off-bus": Severity.CRITICAL,
    "cards-missing": Severity.CRITICAL,
    "remap-failed": Severity.CRITICAL,
    "xid-memory": Severity.CRITICAL,
    "ecc-uncorrectable": Severity.CRITICAL,
    "xid-driver": Severity.CRITICAL,
    "recovery-due": Severity.WARNING,
    "xid-nvlink": Severity.WARNING,
    "remap-pending": Severity.WARNING,
    "xid-memory-contained": Severity.WARNING,
    "xid-unknown": Severity.WARNING,
    "xid-application": Severity.INFO,
}
CAUSES = tuple(SEVERITIES)


@dataclass(frozen=True)
class Limits:
    """Classes of XIDs, and how long one is reported; lasting damage shows on the GPU itself."""

    hung_after: Seconds = 60.0
    missing_after: Seconds = 300.0
    xid_hold: Seconds = 3600.0
    xid_application_hold: Seconds = 900.0
    xid_application: tuple[int, ...] = xids.APPLICATION
    xid_memory_contained: tuple[int, ...] = xids.MEMORY_CONTAINED
    xid_memory: tuple[int, ...] = xids.MEMORY
    xid_nvlink: tuple[int, ...] = xids.NVLINK
    xid_off_bus: tuple[int, ...] = xids.OFF_BUS
    xid_driver: tuple[int, ...] = xids.DRIVER
    xid_ignored: tuple[int, ...] = xids.IGNORED

    def meaning(self, code: int) -> str | None:
        """Class of an XID, or None if it is ignored."""
        if code in self.xid_ignored:
            return None
        classes = {
            "xid-off-bus": self.xid_off_bus,
            "xid-memory": self.xid_memory,
            "xid-driver": self.xid_driver,
            "xid-nvlink": self.xid_nvlink,
            "xid-memory-contained": self.xid_memory_contained,
            "xid-application": self.xid_application,
        }
        return next((name for name, codes in classes.items() if code in codes), "xid-unknown")

    def waits(self, sign: FaultSign) -> float:
        """How long a sign has to persist before it counts."""
        return {"driver-hung": self.hung_after, "cards-missing": self.missing_after}.get(sign.cause, 0.0)

    def holds(self, cause: str) -> float:
        """How long an XID counts."""
        return self.xid_application_hold if cause == "xid-application" else self.xid_hold


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Faults: one finding per GPU, and one per node for what concerns no single GPU."""
    reports = gpu_lib.reporting_agents(context)
    blind = _blind(context, reports, memory)
    signs = [*gpu_signs(reports), *node_signs(context, reports)]
    for sign, code in xid_signs(reports):
        limits: Limits = context.limits.of({"node": sign.node})
        cause = limits.meaning(code)
        if cause is not None and context.now - (sign.since or 0.0) < limits.holds(cause):
            signs.append(sign.with_cause(cause))
    since = gpu_lib.track_since(memory, {sign.key: sign.since for sign in signs}, blind, context.now)
    due = [sign for sign in signs if context.now - since[sign.key] >= _limits(context, sign).waits(sign)]
    findings = [_finding(subject, since, context.now) for subject in _by_subject(due, context)]
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _blind(context: RuleContext, reports: Mapping[str, AgentFact], memory: Any) -> gpu_lib.BlindSpots:
    """Blind spots, including nodes where only the kernel log or Kubernetes is unavailable.

    A node with an earlier XID or missing GPU is not healthy while these are unknown; other nodes remain visible.
    """
    blind = gpu_lib.find_blind_spots(context, reports, "gpu")
    if blind.everything:
        return blind
    without_xids = gpu_lib.find_blind_spots(context, reports, "xid").nodes
    uncounted = resources_unavailable(context, "nodes")
    hidden = set(blind.nodes)
    for key in gpu_lib.numeric_values(memory):
        node = key.partition("/")[0]
        if ("/xid-" in key and node in without_xids) or ("/cards-missing/" in key and uncounted):
            hidden.add(node)
    return gpu_lib.BlindSpots(nodes=frozenset(hidden))


def _limits(context: RuleContext, sign: FaultSign) -> Limits:
    limits: Limits = context.limits.of({"node": sign.node})
    return limits


@dataclass(frozen=True)
class _Subject:
    """A GPU or node with its signs, most severe first."""

    signs: tuple[FaultSign, ...]
    gpu: GpuView | None


def _by_subject(signs: Iterable[FaultSign], context: RuleContext) -> list[_Subject]:
    grouped: dict[tuple[str, int | None], list[FaultSign]] = {}
    for sign in sorted(signs, key=lambda item: (item.node, CAUSES.index(item.cause), item.key)):
        grouped.setdefault((sign.node, sign.gpu), []).append(sign)
    view = context.facts.view
    gpus = view.gpus if view and grouped else ()
    views = {key: gpu for gpu in gpus if (key := (gpu.node, gpu.index)) in grouped}
    return [
        _Subject(tuple(group), views.get((node, gpu)) if gpu is not None else None)
        for (node, gpu), group in grouped.items()
    ]


def _finding(subject: _Subject, since: dict[str, float], now: float) -> Finding:
    worst = subject.signs[0]
    # The pod is evidence and not a label: it changes while the GPU stays broken.
    labels = {"node": label_value(worst.node)} | ({"gpu": str(worst.gpu)} if worst.gpu is not None else {})
    values: dict[str, Value] = {"node": worst.node, "gpu": worst.gpu if worst.gpu is not None else "?"}
    values |= worst.values | {"seconds": max(0.0, now - since[worst.key])}
    holder = next(iter(gpu_lib.live_holders(subject.gpu)), None) if subject.gpu else None
    hit = (Text(key="gpu-fault.hit", values={"pod": gpu_lib.holder_pod_name(holder)}),) if holder else ()
    raw = "; ".join(sign.raw for sign in subject.signs if sign.raw)
    return Finding(
        rule="gpu-fault",
        severity=SEVERITIES[worst.cause],
        cause=worst.cause,
        labels=labels,
        headline=Text(key=f"gpu-fault.{worst.cause}", values=values),
        evidence=(*(item for sign in subject.signs for item in sign.evidence), *hit, *gpu_lib.owner_evidence(holder)),
        advice=(Text(key=f"gpu-fault.{worst.cause}.advice", values=values),),
        since=since[worst.key],
        raw=shorten(raw, MAX_RAW_CHARS) or None,
    )


RULE = Rule(
    "gpu-fault",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    latency={
        "driver-hung": Latency("hung_after"),
        "cards-missing": Latency("missing_after", Delay.FIRST_SEEN),
        **{cause: Latency(resolve_limit="xid_hold") for cause in CAUSES if cause.startswith("xid-")},
        "xid-application": Latency(resolve_limit="xid_application_hold"),
    },
)
