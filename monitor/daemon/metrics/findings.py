"""Metrics of findings, with their subjects and counts by rule, and of service probes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.core import Metric

from monitor.alert.model import labels_of
from monitor.base.metric_rows import RenderedRows, one_row
from monitor.base.metrics import MetricTable
from monitor.daemon.metrics.label_values import short
from monitor.facts.findings import LABELS, Finding, Severity
from monitor.facts.services import ServiceFact

# Prometheus sets the label `job` itself: a training job is a workload here.
SUBJECT = tuple("workload" if name == "job" else name for name in LABELS)

FINDING: MetricTable[Finding] = MetricTable(
    ("alertname", "rule", "severity", "cause", *SUBJECT, "explained", "held"),
    (
        ("gpuwarden_finding", "A finding; explained by another one, or held for lack of fresh facts.",
         lambda _: 1),
        ("gpuwarden_finding_since_seconds", "Start of the finding (Unix time).", lambda f: f.since),
    ),
)  # fmt: skip
FINDINGS: MetricTable[int] = MetricTable(
    ("rule", "severity"), (("gpuwarden_findings", "Findings of each enabled rule.", lambda count: count),)
)
SERVICES: MetricTable[ServiceFact] = MetricTable(
    ("service",),
    (
        ("gpuwarden_service_up", "Whether the last probe of the service succeeded.", lambda s: s.ok),
        ("gpuwarden_service_probe_duration_seconds", "Duration of the last probe.", lambda s: s.latency_seconds),
    ),
)
TABLES = (FINDING, FINDINGS, SERVICES)


@dataclass(frozen=True)
class FindingsSnapshot:
    """Findings of the last evaluation (None before the first), and enabled rules."""

    findings: tuple[Finding, ...] | None
    rules: tuple[str, ...] = ()


class FindingFamilies:
    """Metrics of findings. Only those that have changed are rendered again."""

    def __init__(self, cluster: str | None) -> None:
        self._findings = RenderedRows(FINDING, _version, one_row(FINDING, lambda finding: _labels(finding, cluster)))

    def __call__(self, snapshot: FindingsSnapshot) -> Iterable[Metric | bytes]:
        """Findings, and their number by rule: 0 for an enabled rule without findings."""
        if snapshot.findings is None:
            return
        yield from self._findings.texts((finding.key, finding) for finding in snapshot.findings)
        counts = Counter({(rule, severity.value): 0 for rule in snapshot.rules for severity in Severity})
        counts.update((short(finding.rule), finding.severity.value) for finding in snapshot.findings)
        yield from FINDINGS.families(sorted(counts.items()))


def service_families(services: tuple[ServiceFact, ...]) -> Iterable[Metric]:
    """Results of the service probes."""
    yield from SERVICES.families(((short(service.name),), service) for service in services)


def _labels(finding: Finding, cluster: str | None) -> tuple[str, ...]:
    labels = labels_of(finding, cluster)
    return (
        short(labels["alertname"]),
        short(finding.rule),
        finding.severity.value,
        short(finding.cause),
        *(short(labels.get(name)) for name in LABELS),
        _bool_label(finding.explained_by is not None),
        _bool_label(finding.held),
    )


def _version(finding: Finding) -> object:
    explained = finding.explained_by is not None
    return finding.labels, finding.severity, finding.cause, finding.since, explained, finding.held


def _bool_label(value: bool) -> str:
    return "true" if value else "false"
