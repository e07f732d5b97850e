"""Merging alerts of the same rule and subject, for the upgrade from schema 1, where other labels made them several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from monitor.alert.model import Alert, NotificationLogEntry, Phase, former_key, worst_severity
from monitor.facts.findings import Severity

_PHASES = (Phase.FIRING, Phase.PENDING, Phase.RESOLVED)  # the first one counts


def merged_alerts(
    alerts: Iterable[Alert], entries: Sequence[NotificationLogEntry]
) -> tuple[list[Alert], dict[str, str]]:
    """One alert for each rule and subject, and the fingerprint that replaces each one that is gone."""
    by_key: defaultdict[str, list[Alert]] = defaultdict(list)
    new_keys: dict[str, str] = {}
    for alert in alerts:
        by_key[alert.finding.key].append(_with_receivers(alert, entries))
        new_keys[former_key(alert.finding.rule, alert.finding.labels)] = alert.finding.key
    kept: list[Alert] = []
    merged: dict[str, str] = {}
    for same in by_key.values():
        alert = _merged(sorted(same, key=_precedence))
        kept.append(_with_cause(alert, new_keys))
        merged |= {other.fingerprint: alert.fingerprint for other in same if other.fingerprint != alert.fingerprint}
    return kept, merged


def merged_log(
    entries: Sequence[NotificationLogEntry], merged: Mapping[str, str], groups: Mapping[str, str | None]
) -> list[NotificationLogEntry | None]:
    """Each entry with merged alerts; None if nothing is left. For one receiver a merged alert is in one group only."""
    kept = frozenset(merged.values())
    places: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for entry in entries:
        for target in kept.intersection(merged.get(fingerprint, fingerprint) for fingerprint in entry.firing):
            places[entry.receiver, target].append(entry.group)
    chosen = {
        (receiver, target): groups[target] if groups[target] in found else min(found)
        for (receiver, target), found in places.items()
    }
    return [_merged_entry(entry, merged, chosen) for entry in entries]


def _merged_entry(
    entry: NotificationLogEntry, merged: Mapping[str, str], chosen: Mapping[tuple[str, str], str | None]
) -> NotificationLogEntry | None:
    """The entry with merged alerts, unless another group was chosen for them. Of two severities the worse counts."""
    firing: dict[str, Severity] = {}
    for fingerprint, severity in entry.firing.items():
        target = merged.get(fingerprint, fingerprint)
        if chosen.get((entry.receiver, target), entry.group) == entry.group:
            firing[target] = worst_severity([severity, firing.get(target, severity)])
    return replace(entry, firing=firing) if firing else None


def _with_receivers(alert: Alert, entries: Iterable[NotificationLogEntry]) -> Alert:
    """The alert with the receivers that the log knows: the first rows of schema 1 have none."""
    logged = (entry.receiver for entry in entries if alert.fingerprint in entry.firing)
    return replace(alert, notified=tuple(dict.fromkeys((*alert.notified, *logged))))


def _merged(alerts: Sequence[Alert]) -> Alert:
    """The first alert with what is known from the others in the same phase."""
    kept = alerts[0]
    same = [alert for alert in alerts if alert.phase is kept.phase]
    if len(same) == 1:
        return kept
    absent = [alert.absent_since for alert in same]
    return replace(
        kept,
        first_seen_at=min(alert.first_seen_at for alert in same),
        seen_at=max(alert.seen_at for alert in same),
        absent_since=None if None in absent else max(at for at in absent if at is not None),
        notified=tuple(dict.fromkeys(receiver for alert in same for receiver in alert.notified)),
        acknowledged=next((alert.acknowledged for alert in same if alert.acknowledged is not None), None),
    )


def _precedence(alert: Alert) -> tuple[int, float, str]:
    """Firing before pending before resolved, then the oldest: that one was sent first."""
    began = alert.first_seen_at if alert.fired_at is None else alert.fired_at
    return _PHASES.index(alert.phase), began, alert.fingerprint


def _with_cause(alert: Alert, new_keys: Mapping[str, str]) -> Alert:
    """The alert with the new key of its cause."""
    cause = alert.finding.explained_by or ""
    return replace(alert, finding=replace(alert.finding, explained_by=new_keys.get(cause, cause) or None))
