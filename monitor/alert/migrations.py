"""Schema of the alerts database, and what an upgrade changes in the rows of an older version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from monitor.alert.delivery.outbox import TABLES as OUTBOX_TABLES
from monitor.alert.model import SEVERITY_RANK, Alert, NotificationLogEntry, Phase, former_key
from monitor.base.sqlite_files import Migration, Run

T = TypeVar("T")

_PHASES = (Phase.FIRING, Phase.PENDING, Phase.RESOLVED)  # the first one counts

# Table `told` is the notification log; `place` is a sequence number, `parcel` a batch.
TABLES = (
    OUTBOX_TABLES
    + """
CREATE TABLE alerts (fingerprint TEXT PRIMARY KEY, phase TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE told (receiver TEXT NOT NULL, topic TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (receiver, topic));
CREATE TABLE silences (id TEXT PRIMARY KEY, ends_at REAL NOT NULL, body BLOB NOT NULL);
CREATE TABLE history (
    place INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, what TEXT NOT NULL, body BLOB NOT NULL
);
CREATE INDEX history_at ON history (at);
CREATE TABLE notes (name TEXT PRIMARY KEY, body BLOB NOT NULL);
"""
)


def merge_by_subject(run: Run) -> None:
    """Merge alerts of the same rule and subject, which were several if their other labels differed.

    An alert keeps its fingerprint, which messages and links contain; `merged` has those of the alerts that are gone.
    """
    run("CREATE TABLE merged (fingerprint TEXT PRIMARY KEY, into_fingerprint TEXT NOT NULL)")
    entries = _decoded(run("SELECT body FROM told"), NotificationLogEntry)
    before = {alert.fingerprint: alert for alert in _decoded(run("SELECT body FROM alerts"), Alert)}
    after, merged = merged_alerts(_with_receivers(alert, entries) for alert in before.values())
    for old, kept in merged.items():
        run("INSERT INTO merged VALUES (?, ?)", (old, kept))
        run("DELETE FROM alerts WHERE fingerprint = ?", (old,))
    for alert in after:
        if alert is not before[alert.fingerprint]:
            values = (alert.phase, msgspec.json.encode(alert), alert.fingerprint)
            run("UPDATE alerts SET phase = ?, body = ? WHERE fingerprint = ?", values)
    groups = {alert.fingerprint: alert.group for alert in after}
    for entry, changed in zip(entries, merged_log(entries, merged, groups), strict=True):
        if changed is None:
            run("DELETE FROM told WHERE receiver = ? AND topic = ?", (entry.receiver, entry.group))
        elif changed is not entry:
            body = msgspec.json.encode(changed)
            run("UPDATE told SET body = ? WHERE receiver = ? AND topic = ?", (body, entry.receiver, entry.group))


MIGRATIONS: tuple[Migration, ...] = (TABLES, merge_by_subject)


def merged_alerts(alerts: Iterable[Alert]) -> tuple[list[Alert], dict[str, str]]:
    """One alert for each rule and subject, and the fingerprint that replaces each one that is gone."""
    by_key: defaultdict[str, list[Alert]] = defaultdict(list)
    new_keys: dict[str, str] = {}
    for alert in alerts:
        by_key[alert.finding.key].append(alert)
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
    """Each entry with merged alerts; None if nothing is left. For one receiver an alert is in one group only."""
    kept = frozenset(merged.values())
    places: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for entry in entries:
        for fingerprint in entry.firing:
            places[entry.receiver, merged.get(fingerprint, fingerprint)].append(entry.group)
    result = []
    for entry in entries:
        firing = dict(entry.firing)
        for fingerprint in entry.firing.keys() & (merged.keys() | kept):
            target = merged.get(fingerprint, fingerprint)
            severities = [firing.pop(fingerprint), *([firing.pop(target)] if target in firing else [])]
            found, group = places[entry.receiver, target], groups[target]
            if entry.group == (group if group in found else min(found)):
                firing[target] = min(severities, key=SEVERITY_RANK.__getitem__)
        result.append(entry if firing == entry.firing else replace(entry, firing=firing) if firing else None)
    return result


def _with_receivers(alert: Alert, entries: Iterable[NotificationLogEntry]) -> Alert:
    """The alert with the receivers that the log knows: the first rows of schema 1 have none."""
    logged = (entry.receiver for entry in entries if alert.fingerprint in entry.firing)
    notified = tuple(dict.fromkeys((*alert.notified, *logged)))
    return alert if notified == alert.notified else replace(alert, notified=notified)


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
    cause = alert.finding.explained_by
    key = new_keys.get(cause, cause) if cause is not None else None
    return alert if key == cause else replace(alert, finding=replace(alert.finding, explained_by=key))


def _decoded(rows: Iterable[tuple[Any, ...]], kind: type[T]) -> list[T]:
    """Decoded bodies, without those that cannot be decoded: they stay as they are, and loading skips them."""
    values = []
    for (body,) in rows:
        try:
            values.append(msgspec.json.decode(body, type=kind))
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
    return values
