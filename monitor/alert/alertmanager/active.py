"""Our alerts that are active in an Alertmanager, and the label sets under which they are known there.

Another replica, or this one before it lost its state, may have announced an alert with other labels than this process
would: sent with different ones, it would be a second alert there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode

import msgspec

from monitor.alert.announced import CAUSE, SEVERITY, worse_severity
from monitor.alert.model import SEVERITY_RANK, alertname
from monitor.base.bounded_json import decode_bounded
from monitor.facts.alert_identity import identifying_labels
from monitor.facts.base import BoundedText, Identifier
from monitor.facts.findings import LABELS, Severity

MAX_ACTIVE_BYTES = 32 << 20  # some 20,000 alerts
SubjectKey = tuple[str, frozenset[tuple[str, str]]]
_SEVERITIES = frozenset(severity.value for severity in Severity)
_REQUIRED = frozenset({"alertname", SEVERITY, CAUSE})
_OURS = _REQUIRED | frozenset(LABELS)


class ActiveAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An active alert in the answer of Alertmanager's API."""

    labels: dict[BoundedText, BoundedText]
    annotations: dict[BoundedText, BoundedText] = {}
    startsAt: Identifier  # noqa: N815  # name in Alertmanager's API
    generatorURL: BoundedText = ""  # noqa: N815  # name in Alertmanager's API


class ActiveAlerts:
    """Our active alerts by rule and subject. `rules` are those that were asked for."""

    def __init__(self, alerts: Iterable[ActiveAlert] = (), rules: Iterable[str] = ()) -> None:
        names = {alertname(rule): rule for rule in rules}
        self._by_subject: defaultdict[SubjectKey, list[ActiveAlert]] = defaultdict(list)
        for alert in alerts:
            rule = names.get(alert.labels["alertname"]) if _is_ours(alert.labels) else None
            if rule is not None:
                self._by_subject[subject_key(rule, alert.labels)].append(alert)

    def of(self, rule: str, labels: Mapping[str, str]) -> Sequence[ActiveAlert]:
        """Active alerts of a subject, the one that every replica continues first; usually there is at most one."""
        return sorted(self._by_subject.get(subject_key(rule, labels), ()), key=_precedence)


_decoder = msgspec.json.Decoder(list[ActiveAlert])


def read_active(body: bytes, rules: Iterable[str]) -> ActiveAlerts:
    """Active alerts of these rules in the API's response. Raise ValueError."""
    alerts = decode_bounded(_decoder, body)
    return ActiveAlerts(alerts, rules)


def active_query(rules: Iterable[str], cluster: str | None) -> str:
    """Query string for the active alerts of these rules, also silenced and inhibited ones."""
    names = "|".join(sorted(map(alertname, rules)))
    filters = [("filter", f'alertname=~"{names}"')]
    if cluster is not None:
        filters.append(("filter", f"cluster={msgspec.json.encode(cluster).decode()}"))
    return urlencode(filters)


def subject_key(rule: str, labels: Mapping[str, str]) -> SubjectKey:
    """What identifies an alert in every replica and version."""
    known = {name: value for name in LABELS if (value := labels.get(name))}
    return rule, frozenset(identifying_labels(rule, known).items())


def continued(labels: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Labels under which an alert is sent that is known there by other ones: those, with the worse severity."""
    return {**known, SEVERITY: worse_severity(labels[SEVERITY], known[SEVERITY])}


def _is_ours(labels: Mapping[str, str]) -> bool:
    """Whether this program sent an alert: those of Prometheus have further labels."""
    return _OURS.issuperset(labels) and labels.keys() >= _REQUIRED and labels[SEVERITY] in _SEVERITIES


def _precedence(alert: ActiveAlert) -> tuple[int, str, list[tuple[str, str]]]:
    """The most severe, then the oldest, then the same one for all replicas."""
    return SEVERITY_RANK[Severity(alert.labels[SEVERITY])], alert.startsAt, sorted(alert.labels.items())
