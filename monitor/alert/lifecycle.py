"""From what is found now to alerts over time: pending, firing, resolved. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from monitor.alert.labels import labels_of
from monitor.alert.model import Alert, Phase, alertname, fingerprint_of
from monitor.facts.findings import Finding

GROUP_BY = ("alertname", "cause")


@dataclass(frozen=True)
class AlertTiming:
    """How patient the alerts of a rule are, in seconds.

    It fires when found for `wait`, and is over when not found for `keep`. What fires `flap_count` times within
    `flap_window` is flapping, and over only when not found for `flap_hold`.
    """

    wait: float = 0.0
    keep: float = 30.0
    flap_count: int = 4
    flap_window: float = 1800.0
    flap_hold: float = 600.0


@dataclass(frozen=True)
class AlertTimings:
    """The timing of each rule; the default for those that have none of their own."""

    default: AlertTiming = AlertTiming()
    rules: Mapping[str, AlertTiming] = field(default_factory=dict)

    def of(self, rule: str) -> AlertTiming:
        return self.rules.get(rule, self.default)


def advance(
    alerts: Mapping[str, Alert],
    findings: Iterable[Finding],
    timings: AlertTimings,
    group_by: tuple[str, ...],
    now: float,
) -> dict[str, Alert]:
    """Given the alerts so far and all that is found now, return the alerts as they are now.

    A clock that jumps back makes nothing wait for its old time: whatever was noted later than now counts as of now.
    """
    found = {fingerprint_of(finding): finding for finding in findings}
    keys = {finding.key for finding in found.values()}
    result = {}
    for fingerprint, finding in found.items():
        before = alerts.get(fingerprint)
        alert = _seen(before, fingerprint, _still_explained(finding, before, keys), timings.of(finding.rule), now)
        result[fingerprint] = _fired_if_due(alert, timings.of(finding.rule), group_by, now)
    for fingerprint, alert in alerts.items():
        if fingerprint not in found:
            left = _missing(_not_later(alert, now), timings.of(alert.finding.rule), now)
            if left is not None:
                result[fingerprint] = left
    return result


def group_of(finding: Finding, group_by: tuple[str, ...]) -> str:
    """Given a finding and the labels to group by, return the group in which it is told: `ImagePull|cause=dns`."""
    labels = labels_of(finding, None)
    values = [(name, labels.get(name)) for name in group_by if name != "alertname"]
    return alertname(finding.rule) + "".join(f"|{name}={value}" for name, value in values if value is not None)


def _seen(before: Alert | None, fingerprint: str, finding: Finding, timing: AlertTiming, now: float) -> Alert:
    """Return the alert of what is found. One that was over begins anew, and is still the same record."""
    if before is None:
        return Alert(
            fingerprint=fingerprint, finding=finding, phase=Phase.PENDING, first_seen_at=now, seen_at=now
        )  # fmt: skip
    alert = _not_later(before, now)
    if alert.phase is Phase.RESOLVED:
        return replace(alert, finding=finding, phase=Phase.PENDING, first_seen_at=now, seen_at=now)
    # A flapping alert is not let go of for short absences; they count, or it would calm down by being held.
    missed = alert.flapping and alert.absent_since is not None and now - alert.absent_since >= timing.keep
    alert = replace(alert, finding=finding, seen_at=now, absent_since=None)
    return _with_firings(alert, (*alert.firings, now) if missed else alert.firings, timing, now)


def _fired_if_due(alert: Alert, timing: AlertTiming, group_by: tuple[str, ...], now: float) -> Alert:
    """Return the alert as firing when it was found for long enough, by fresh facts."""
    due = alert.phase is Phase.PENDING and not alert.finding.held and now - alert.first_seen_at >= timing.wait
    if not due:
        return alert
    group = group_of(alert.finding, group_by)
    fired = replace(alert, phase=Phase.FIRING, fired_at=now, resolved_at=None, group=group)
    return _with_firings(fired, (*alert.firings, now), timing, now)


def _missing(alert: Alert, timing: AlertTiming, now: float) -> Alert | None:
    """Return what becomes of an alert that is not found; None if it is as if it had never been."""
    if alert.phase is Phase.RESOLVED:
        return alert
    if alert.phase is Phase.PENDING:
        return _back_to_resolved(alert)
    alert = _with_firings(alert, alert.firings, timing, now)
    absent_since = now if alert.absent_since is None else alert.absent_since
    if now - absent_since >= (max(timing.keep, timing.flap_hold) if alert.flapping else timing.keep):
        return replace(alert, phase=Phase.RESOLVED, resolved_at=now, absent_since=None)
    return replace(alert, absent_since=absent_since)


def _back_to_resolved(alert: Alert) -> Alert | None:
    """Given a pending alert that vanished, return it as it was before it came back; None if it never fired."""
    if alert.resolved_at is None or alert.fired_at is None:
        return None
    return replace(alert, phase=Phase.RESOLVED, first_seen_at=min(alert.first_seen_at, alert.fired_at))


def _still_explained(finding: Finding, before: Alert | None, keys: Collection[str]) -> Finding:
    """Return the finding with the cause it had, if that is no longer found.

    Causes are over before their symptoms. What explained them is remembered until it is found again and explains
    something else; how long that holds them back is decided elsewhere.
    """
    if finding.explained_by is not None or before is None or before.phase is Phase.RESOLVED:
        return finding
    cause = before.finding.explained_by
    return finding if cause is None or cause in keys else replace(finding, explained_by=cause)


def _with_firings(alert: Alert, firings: tuple[float, ...], timing: AlertTiming, now: float) -> Alert:
    """Return the alert with the firings that count, no more than are needed to tell that it is flapping."""
    recent = tuple(at for at in firings if now - at < timing.flap_window)[-timing.flap_count :]
    return replace(alert, firings=recent, flapping=len(recent) >= timing.flap_count)


def _not_later(alert: Alert, now: float) -> Alert:
    """Return the alert with nothing noted later than now."""
    noted = (alert.first_seen_at, alert.seen_at, alert.fired_at, alert.resolved_at, alert.absent_since, *alert.firings)
    if all(at is None or at <= now for at in noted):
        return alert
    return replace(
        alert,
        first_seen_at=min(alert.first_seen_at, now),
        seen_at=min(alert.seen_at, now),
        fired_at=_at_most(alert.fired_at, now),
        resolved_at=_at_most(alert.resolved_at, now),
        absent_since=_at_most(alert.absent_since, now),
        firings=tuple(min(at, now) for at in alert.firings),
    )


def _at_most(at: float | None, now: float) -> float | None:
    return None if at is None else min(at, now)
