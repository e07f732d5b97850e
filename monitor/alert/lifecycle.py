"""Lifecycle of alerts: pending, firing, resolved."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from msgspec.structs import replace

from monitor.alert.announced import with_finding
from monitor.alert.model import Alert, Phase, alertname, alerts_by_key, fingerprint_of_key, labels_of
from monitor.facts.findings import Finding

GROUP_BY = ("alertname", "cause")


@dataclass(frozen=True)
class AlertTiming:
    """Timing of a rule's alerts, in seconds.

    An alert fires after being present for `wait` and resolves after being absent for `keep`. An alert that fires
    `flap_count` times within `flap_window` is flapping, and resolves only after an absence of `flap_hold`.
    """

    wait: float = 0.0
    keep: float = 30.0
    flap_count: int = 4
    flap_window: float = 1800.0
    flap_hold: float = 600.0


@dataclass(frozen=True)
class AlertTimings:
    """Timing per rule, and the default for all others."""

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
    """Alerts after an evaluation that produced `findings`.

    Timestamps later than `now` are clamped to `now`, so that a clock that is set back delays nothing.
    """
    current = {finding.key: finding for finding in findings}
    known = alerts_by_key(alerts.values())
    result = {}
    for key, finding in current.items():
        before = known.get(key)
        fingerprint = before.fingerprint if before is not None else fingerprint_of_key(key)
        timing = timings.of(finding.rule)
        alert = _present(before, fingerprint, _keep_cause(finding, before, current.keys()), timing, now)
        result[fingerprint] = _fire_if_due(alert, timing, group_by, now)
    for fingerprint, alert in alerts.items():
        if fingerprint not in result:
            remaining = _absent(_clamped(alert, now), timings.of(alert.finding.rule), now)
            if remaining is not None:
                result[fingerprint] = remaining
    return result


def next_change_at(alerts: Iterable[Alert], timings: AlertTimings) -> float:
    """Time at which `advance` may change alerts although the findings stay the same."""
    next_at = inf
    for alert in alerts:
        if alert.phase is Phase.RESOLVED:
            continue
        timing = timings.of(alert.finding.rule)
        if alert.phase is Phase.PENDING and not alert.finding.held:
            next_at = min(next_at, alert.first_seen_at + timing.wait)
        if alert.absent_since is not None:
            next_at = min(next_at, alert.absent_since + _absence_seconds(alert, timing))
        if alert.firings:
            next_at = min(next_at, alert.firings[0] + timing.flap_window)
    return next_at


def group_of(finding: Finding, group_by: tuple[str, ...]) -> str:
    """Group key of a finding: `ImagePull|cause=dns`."""
    labels = labels_of(finding, None)
    values = [(name, labels.get(name)) for name in group_by if name != "alertname"]
    return alertname(finding.rule) + "".join(f"|{name}={value}" for name, value in values if value is not None)


def _present(before: Alert | None, fingerprint: str, finding: Finding, timing: AlertTiming, now: float) -> Alert:
    """Alert of a current finding. A resolved alert starts over with the same record."""
    if before is None:
        return Alert(
            fingerprint=fingerprint, finding=finding, phase=Phase.PENDING, first_seen_at=now, seen_at=now
        )  # fmt: skip
    alert = _clamped(before, now)
    if alert.phase is Phase.RESOLVED:
        return replace(alert, finding=finding, phase=Phase.PENDING, first_seen_at=now, seen_at=now)
    # A flapping alert stays firing through short absences; they count as firings, or holding it would end the flapping.
    missed = alert.flapping and alert.absent_since is not None and now - alert.absent_since >= timing.keep
    alert = replace(with_finding(alert, finding), seen_at=now, absent_since=None)
    return _with_firings(alert, (*alert.firings, now) if missed else alert.firings, timing, now)


def _fire_if_due(alert: Alert, timing: AlertTiming, group_by: tuple[str, ...], now: float) -> Alert:
    """Alert in phase firing if it has been pending for long enough; held findings do not make an alert fire."""
    due = alert.phase is Phase.PENDING and not alert.finding.held and now - alert.first_seen_at >= timing.wait
    if not due:
        return alert
    group = group_of(alert.finding, group_by)
    fired = replace(
        alert, phase=Phase.FIRING, fired_at=now, resolved_at=None, group=group, notified=(), acknowledged=None,
        announced={}, routed={},
    )  # fmt: skip
    return _with_firings(fired, (*alert.firings, now), timing, now)


def _absent(alert: Alert, timing: AlertTiming, now: float) -> Alert | None:
    """Alert without a current finding; None for a pending one that never fired."""
    if alert.phase is Phase.RESOLVED:
        return alert
    if alert.phase is Phase.PENDING:
        return _resolved_again(alert)
    alert = _with_firings(alert, alert.firings, timing, now)
    absent_since = now if alert.absent_since is None else alert.absent_since
    if now - absent_since >= _absence_seconds(alert, timing):
        return replace(alert, phase=Phase.RESOLVED, resolved_at=now, absent_since=None)
    return replace(alert, absent_since=absent_since)


def _absence_seconds(alert: Alert, timing: AlertTiming) -> float:
    """Absence after which a firing alert resolves."""
    return max(timing.keep, timing.flap_hold) if alert.flapping else timing.keep


def _resolved_again(alert: Alert) -> Alert | None:
    """Pending alert that vanished, as it was before it came back; None if it never fired."""
    if alert.resolved_at is None or alert.fired_at is None:
        return None
    return replace(alert, phase=Phase.RESOLVED, first_seen_at=min(alert.first_seen_at, alert.fired_at))


def _keep_cause(finding: Finding, before: Alert | None, keys: Collection[str]) -> Finding:
    """Finding with its previous cause, if that cause is no longer found.

    Causes resolve before their symptoms. A cause is kept until it is found again without explaining this finding; for
    how long a resolved cause still inhibits is up to `inhibition`.
    """
    if finding.explained_by is not None or before is None or before.phase is Phase.RESOLVED:
        return finding
    cause = before.finding.explained_by
    return finding if cause is None or cause in keys else replace(finding, explained_by=cause)


def _with_firings(alert: Alert, firings: tuple[float, ...], timing: AlertTiming, now: float) -> Alert:
    """Alert with its firings within the window, no more of them than decide whether it is flapping."""
    recent = tuple(at for at in firings if now - at < timing.flap_window)[-timing.flap_count :]
    return replace(alert, firings=recent, flapping=len(recent) >= timing.flap_count)


def _clamped(alert: Alert, now: float) -> Alert:
    """Alert without timestamps in the future."""
    times = (alert.first_seen_at, alert.seen_at, alert.fired_at, alert.resolved_at, alert.absent_since, *alert.firings)
    if all(at is None or at <= now for at in times):
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
