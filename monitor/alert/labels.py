"""The labels of an alert: what silences, windows and routes are matched with, and what webhooks carry."""

from __future__ import annotations

from monitor.alert.model import alertname
from monitor.facts.findings import Finding


def labels_of(finding: Finding, cluster: str | None) -> dict[str, str]:
    """Given a finding and the cluster's name, return all labels of its alert. A finding may have its own cluster."""
    named = {} if cluster is None else {"cluster": cluster}
    own = {"alertname": alertname(finding.rule), "severity": finding.severity.value, "cause": finding.cause}
    return named | finding.labels | own
