"""What is wrong: every finding with its subject, how many there are of each rule, and how the services fare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.core import Metric

from monitor.alert.labels import labels_of
from monitor.base.metrics import MetricTable
from monitor.daemon.metrics.label_values import short
from monitor.facts.findings import LABELS, Finding, Severity
from monitor.facts.services import ServiceFact

# Prometheus has a label `job` of its own: a training job is a workload here.
SUBJECT = tuple("workload" if name == "job" else name for name in LABELS)

FINDING: MetricTable[Finding] = MetricTable(
    ("alertname", "rule", "severity", "cause", *SUBJECT, "explained", "held"),
    (
        ("gpuwarden_finding", "Something that is wrong; explained by something else, or held without fresh facts.",
         lambda _: 1),
        ("gpuwarden_finding_since_seconds", "Since when it is wrong (Unix time).", lambda f: f.since),
    ),
)  # fmt: skip
FINDINGS: MetricTable[int] = MetricTable(
    ("rule", "severity"), (("gpuwarden_findings", "Findings of each rule that is looked for.", lambda count: count),)
)
SERVICES: MetricTable[ServiceFact] = MetricTable(
    ("service",),
    (
        ("gpuwarden_service_up", "Whether the service is well.", lambda s: s.ok),
        ("gpuwarden_service_probe_duration_seconds", "How long it took to find out.", lambda s: s.latency_seconds),
    ),
)
TABLES = (FINDING, FINDINGS, SERVICES)


@dataclass(frozen=True)
class FindingsSnapshot:
    """What the last look has found (None: nobody has looked yet), the rules that are looked for, and the cluster."""

    findings: tuple[Finding, ...] | None
    rules: tuple[str, ...] = ()
    cluster: str | None = None


def families(found: FindingsSnapshot) -> Iterable[Metric]:
    """Yield the findings, and the number of those of each rule: what is looked for and not found is 0."""
    if found.findings is None:
        return
    yield from FINDING.families((_labels(each, found.cluster), each) for each in found.findings)
    counts = Counter({(rule, severity.value): 0 for rule in found.rules for severity in Severity})
    counts.update((short(each.rule), each.severity.value) for each in found.findings)
    yield from FINDINGS.families(sorted(counts.items()))


def service_families(services: tuple[ServiceFact, ...]) -> Iterable[Metric]:
    """Yield how the services fare that are probed."""
    yield from SERVICES.families(((short(each.name),), each) for each in services)


def _labels(finding: Finding, cluster: str | None) -> tuple[str, ...]:
    known = labels_of(finding, cluster)
    return (
        short(known["alertname"]),
        short(finding.rule),
        finding.severity.value,
        short(finding.cause),
        *(short(known.get(name)) for name in LABELS),
        _word(finding.explained_by is not None),
        _word(finding.held),
    )


def _word(true: bool) -> str:
    return "true" if true else "false"
