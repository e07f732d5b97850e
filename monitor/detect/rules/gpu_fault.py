"""gpu-fault: a GPU or the driver of a node is broken, by XID, ECC, remapped rows, or because it does not respond."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monitor.detect.base import (
    UNKNOWN,
    Delay,
    Latency,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    ThresholdLimit,
)
from monitor.detect.findings import make_finding, shorten_raw
from monitor.detect.labels import label_value
from monitor.detect.lib import gpus as gpu_lib
from monitor.detect.lib import xids
from monitor.detect.lib.gpu_fault_signs import FaultSign, gpu_signs, kernel_signs, node_signs, xid_signs
from monitor.detect.lib.node_conditions import GPU_CAUSES, same_fault
from monitor.detect.subjects import NodeSubject
from monitor.detect.visibility import resources_unavailable
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.nvidia.xids import XidMeaning
from monitor.facts.text import Text, Value

# Most severe first: the first one is the cause of a GPU that has several.
_CRITICAL = (
    "driver-hung", "card-lost", "xid-off-bus", "xid-reboot", "init-failed", "cards-missing", "remap-failed",
    "xid-memory", "ecc-uncorrectable", "xid-driver", "xid-reset",
)  # fmt: skip
_WARNING = (
    "recovery-due", "xid-nvlink", "remap-pending", "xid-memory-contained", "xid-power", "xid-vendor", "xid-software",
    "xid-unknown",
)  # fmt: skip
SEVERITIES = {
    **dict.fromkeys(_CRITICAL, Severity.CRITICAL),
    **dict.fromkeys(_WARNING, Severity.WARNING),
    "xid-application": Severity.INFO,
}
CAUSES = tuple(SEVERITIES)


@dataclass(frozen=True)
class Limits:
    """How long an XID is reported (lasting damage shows on the GPU), and what differs from NVIDIA's catalogue."""

    hung_after: Seconds = 60.0
    missing_after: Seconds = 300.0
    xid_hold: Seconds = 3600.0
    xid_application_hold: Seconds = 900.0
    xid_application: tuple[int, ...] = ()
    xid_memory_contained: tuple[int, ...] = ()
    xid_memory: tuple[int, ...] = ()
    xid_nvlink: tuple[int, ...] = ()
    xid_off_bus: tuple[int, ...] = ()
    xid_driver: tuple[int, ...] = ()
    xid_reset: tuple[int, ...] = ()
    xid_reboot: tuple[int, ...] = ()
    xid_vendor: tuple[int, ...] = ()
    xid_ignored: tuple[int, ...] = ()
    xid_thresholds: dict[int, ThresholdLimit] = field(default_factory=dict)

    def classify(self, code: int, message: str | None) -> tuple[str | None, XidMeaning | None]:
        """Cause of an XID, None if it is ignored, and its meaning, None if it is unknown."""
        cause, meaning = xids.cause_of(code, message)
        acted_on = meaning.code if meaning is not None else code
        if acted_on in self.xid_ignored or code in self.xid_ignored:
            return None, meaning
        return next((name for name, codes in self._classes.items() if acted_on in codes), cause), meaning

    @property
    def _classes(self) -> dict[str, tuple[int, ...]]:
        return {
            "xid-off-bus": self.xid_off_bus,
            "xid-reboot": self.xid_reboot,
            "xid-memory": self.xid_memory,
            "xid-driver": self.xid_driver,
            "xid-reset": self.xid_reset,
            "xid-nvlink": self.xid_nvlink,
            "xid-memory-contained": self.xid_memory_contained,
            "xid-vendor": self.xid_vendor,
            "xid-application": self.xid_application,
        }

    def begins_at(self, sign: FaultSign, since: float) -> float:
        """When a sign has lasted long enough to count."""
        return since + {"driver-hung": self.hung_after, "cards-missing": self.missing_after}.get(sign.cause, 0.0)

    def ends_at(self, sign: FaultSign) -> float:
        """When a sign no longer counts, which for an event depends on its hold and on its threshold, if it has one."""
        if not sign.times:
            return math.inf
        hold = self.xid_application_hold if sign.cause == "xid-application" else self.xid_hold
        threshold = self.xid_thresholds.get(int(sign.values.get("code", 0)))
        return min(
            sign.times[-1] + hold, threshold.met_until([(at, 1) for at in sign.times]) if threshold else math.inf
        )


def evaluate(node: NodeSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """Faults of a node: one finding per GPU, and one for what concerns no single GPU."""
    if node.view is not None and node.view.silent_since is not None:
        return UNKNOWN
    limits: Limits = context.limits.of({"node": node.name})
    signs = [sign for sign in _signs(node, context.facts.resource, limits) if now < limits.ends_at(sign)]
    before = gpu_lib.numeric_values(memory)
    since = gpu_lib.track_since(before, {sign.key: sign.since for sign in signs}, now)
    begins = {sign.key: limits.begins_at(sign, since[sign.key]) for sign in signs}
    findings = _findings(node, [sign for sign in signs if begins[sign.key] <= now], since, context)
    turns = [at for at in (*begins.values(), *map(limits.ends_at, signs)) if now < at < math.inf]
    hidden = _hides_faults(node, context, before)
    blind = (Scope(labels={"node": label_value(node.name)}),) if hidden else ()
    return RuleResult(findings, (before | since if hidden else since) or None, blind, min(turns, default=None))


def _signs(node: NodeSubject, resource: str, limits: Limits) -> Iterator[FaultSign]:
    inventory = node.report.snapshot.gpu
    for gpu in inventory.gpus if inventory else ():
        yield from gpu_signs(gpu)
    yield from node_signs(node, resource)
    yield from xid_signs(node.report, limits.classify)
    yield from kernel_signs(node.report)


def _hides_faults(node: NodeSubject, context: RuleContext, before: Iterable[str]) -> bool:
    """Whether there may be faults that cannot be seen now.

    The kernel log and Kubernetes are needed only where an XID or a missing GPU was seen before.
    """
    gpus = context.facts.gpus_by_node.get(node.name, ())
    if node.report.section("gpu") is None or any(gpu.state is GpuState.UNKNOWN for gpu in gpus):
        return True
    hidden = [
        mark for part, mark in (("xid", "/xid-"), ("kernel", "/init-failed/")) if node.report.section(part) is None
    ]
    if resources_unavailable(context, "nodes"):
        hidden.append("/cards-missing/")
    return any(mark in key for key in before for mark in hidden)


def _findings(
    node: NodeSubject, signs: Iterable[FaultSign], since: Mapping[str, float], context: RuleContext
) -> tuple[Finding, ...]:
    groups: defaultdict[int | None, list[FaultSign]] = defaultdict(list)
    for sign in sorted(signs, key=lambda sign: (CAUSES.index(sign.cause), sign.key)):
        groups[sign.gpu].append(sign)
    gpus: dict[int | None, GpuView] = {gpu.index: gpu for gpu in context.facts.gpus_by_node.get(node.name, ())}
    return tuple(_finding(node.name, group, gpus.get(index), since) for index, group in groups.items())


def _finding(node: str, signs: Sequence[FaultSign], gpu: GpuView | None, since: Mapping[str, float]) -> Finding:
    """The finding about a GPU or node with these signs, most severe first."""
    worst = signs[0]
    # The pod is evidence and not a label: it changes while the GPU stays broken.
    labels = {"node": label_value(node)} | ({"gpu": str(worst.gpu)} if worst.gpu is not None else {})
    unlisted = worst.values.get("place", "?")  # a GPU that the driver does not list has no index
    values: dict[str, Value] = {"node": node, "gpu": unlisted if worst.gpu is None else worst.gpu, **worst.values}
    holder = next(iter(gpu_lib.live_holders(gpu)), None) if gpu else None
    hit = (Text("gpu-fault.hit", {"pod": gpu_lib.holder_pod_name(holder)}),) if holder else ()
    evidence = (*(item for sign in signs for item in sign.evidence), *hit, *gpu_lib.owner_evidence(holder))
    advice = [Text(f"gpu-fault.{worst.cause}.advice", values)]
    advice += [Text(f"gpu-fault.then.{worst.then}", values)] if worst.then is not None else []
    return make_finding(
        "gpu-fault", worst.cause, labels, values, severity=SEVERITIES[worst.cause], evidence=evidence, advice=advice,
        since=since[worst.key], raw=shorten_raw("; ".join(sign.raw for sign in signs if sign.raw)) or None,
        explains=_explains(worst, labels),
    )  # fmt: skip


def _explains(worst: FaultSign, labels: dict[str, str]) -> tuple[Scope, ...]:
    """The same fault as the kernel reports it, or another tool; an error of an application is only an XID."""
    kernel = (Scope(labels=labels, rules=("kernel-fault",)),) if worst.gpu is not None else ()
    causes = ("gpu-error",) if SEVERITIES[worst.cause] is Severity.INFO else (*GPU_CAUSES, "isolated")
    return (*kernel, *same_fault(labels, *causes))


LATENCY = {
    "driver-hung": Latency("hung_after"),
    "cards-missing": Latency("missing_after", Delay.FIRST_SEEN),
    **{cause: Latency(resolve_limit="xid_hold") for cause in CAUSES if cause.startswith(("xid-", "init-"))},
    "xid-application": Latency(resolve_limit="xid_application_hold"),
}
# It needs only what is in every snapshot: whatever else is missing may itself be the fault.
RULE = Rule(
    "gpu-fault", Limits, CAUSES, evaluate, SubjectKind.NODE,
    needs=("collectors",), uses=("gpu", "gpu_states", "kernel", "node", "pod_devices", "xid"),
    suppressed_by=("kernel-fault",), latency=LATENCY,
)  # fmt: skip
