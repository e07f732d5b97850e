"""What the page shows as muted is exactly what delivery does not send, for any alerts, log and policy."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from monitor.alert.matchers import matches, parse_matcher
from monitor.alert.model import Alert, AlertState, NotificationLogEntry, Phase, fingerprint_of, labels_of
from monitor.alert.mute import AlertView, alert_views
from monitor.alert.notify import NotifyDecision, decide
from monitor.alert.routes import NotifyPolicy, Route, routes_for
from monitor.alert.silences import Silence
from monitor.alert.windows import MaintenanceWindow, QuietHours
from monitor.facts.findings import Finding, Severity
from tests.alert.scenario import NOON, finding

NODES = ("n1", "n2", "n3")
RULES = ("a", "b")
RECEIVERS = ("wecom", "mail")
LOGGED_AT = NOON - 60.0  # before the group interval of every route

MATCHERS = st.sampled_from(
    ("node=n1", "node!=n1", "node=~n[12]", "alertname=A", "severity=critical", "cause=data", "node=~.+")
).map(parse_matcher)
MATCHER_SETS = st.lists(MATCHERS, max_size=2).map(tuple)


@st.composite
def silences(draw: st.DrawFn) -> Silence:
    matchers = draw(st.lists(MATCHERS, min_size=1, max_size=2).map(tuple))
    start = draw(st.sampled_from((NOON - 60.0, NOON, NOON + 60.0)))
    end = draw(st.sampled_from((NOON - 30.0, NOON, NOON + 120.0)))
    silence_id = draw(st.sampled_from(("s1", "s2", "s3")))
    return Silence(id=silence_id, matchers=matchers, starts_at=start, ends_at=end, author="li", comment="")


WINDOWS = st.builds(
    MaintenanceWindow, st.sampled_from(("0 12 * * *", "0 11 * * *")), st.just(60.0), st.just("UTC"), MATCHER_SETS
)
QUIET = st.sampled_from((None, QuietHours("11:00", "13:00"), QuietHours("22:00", "08:00")))
ROUTES = st.builds(
    Route,
    receivers=st.lists(st.sampled_from(RECEIVERS), min_size=1, max_size=2, unique=True).map(tuple),
    matchers=MATCHER_SETS,
    group_wait=st.just(0.0),
    group_interval=st.just(30.0),
    quiet=QUIET,
    continue_matching=st.booleans(),
)
POLICIES = st.builds(
    NotifyPolicy,
    routes=st.lists(ROUTES, min_size=1, max_size=3).map(tuple),
    silences=st.lists(silences(), max_size=2).map(tuple),
    windows=st.lists(WINDOWS, max_size=2).map(tuple),
    cluster=st.sampled_from((None, "prod")),
)
FINDINGS = st.builds(
    finding,
    st.sampled_from(NODES),
    st.sampled_from(Severity),
    rule=st.sampled_from(RULES),
    cause=st.sampled_from(("data", "system")),
    held=st.booleans(),
)


@st.composite
def alerts(draw: st.DrawFn) -> dict[str, Alert]:
    found = draw(st.lists(FINDINGS, max_size=6, unique_by=lambda each: each.key))
    explained = [_explained(each, draw(st.none() | st.sampled_from(found))) for each in found]
    return {fingerprint_of(each): draw(_alert(each)) for each in explained}


def _explained(symptom: Finding, cause: Finding | None) -> Finding:
    return symptom if cause is None or cause.key == symptom.key else replace(symptom, explained_by=cause.key)


def _alert(found: Finding) -> st.SearchStrategy[Alert]:
    return st.builds(
        Alert,
        fingerprint=st.just(fingerprint_of(found)),
        finding=st.just(found),
        phase=st.sampled_from((Phase.FIRING, Phase.FIRING, Phase.PENDING, Phase.RESOLVED)),
        first_seen_at=st.just(LOGGED_AT),
        seen_at=st.just(NOON),
        fired_at=st.just(LOGGED_AT),
        resolved_at=st.sampled_from((NOON - 120.0, NOON - 10.0)),  # beyond and within the linger time
        group=st.just("g"),
    )


@st.composite
def states(draw: st.DrawFn) -> AlertState:
    known = draw(alerts())
    log: dict[tuple[str, str], NotificationLogEntry] = {}
    for receiver in RECEIVERS:
        chosen = draw(st.sets(st.sampled_from(sorted(known)))) if known else set()
        firing = {fingerprint: draw(st.sampled_from(Severity)) for fingerprint in sorted(chosen)}
        if firing:
            log[receiver, "g"] = NotificationLogEntry(receiver=receiver, group="g", at=LOGGED_AT, firing=firing)
    return AlertState(known, log)


def sent(decision: NotifyDecision) -> set[tuple[str, str]]:
    """Receiver and fingerprint of every alert that a notification mentions."""
    return {(each.receiver, subject.fingerprint) for each in decision.notifications for subject in each.subjects}


def logged(state: AlertState) -> set[tuple[str, str]]:
    return {
        (receiver, fingerprint)
        for (receiver, _), entry in state.notification_log.items()
        for fingerprint in entry.firing
    }


def receivers_of(alert: Alert, policy: NotifyPolicy) -> set[str]:
    routes = routes_for(labels_of(alert.finding, policy.cluster), policy.routes)
    return {receiver for route in routes for receiver in route.receivers}


def shown_as_muted(view: AlertView, receiver: str) -> bool:
    """Whether the page shows a reason why this receiver gets no first notification about an alert."""
    silent = view.silenced_by is not None or view.in_maintenance
    return silent or view.explained_by is not None or receiver in view.quiet


@settings(max_examples=200, deadline=None)
@given(alerts(), POLICIES)
def test_a_firing_alert_is_sent_unless_the_page_shows_why_not(known: dict[str, Alert], policy: NotifyPolicy) -> None:
    state = AlertState(known, {})
    views = alert_views(state, policy, NOON)
    expected = {
        (receiver, view.alert.fingerprint)
        for view in views
        for receiver in receivers_of(view.alert, policy)
        if view.alert.phase is Phase.FIRING and not shown_as_muted(view, receiver)
    }
    assert sent(decide(state, policy, NOON)) == expected


@settings(max_examples=200, deadline=None)
@given(states(), POLICIES)
def test_what_is_shown_as_silenced_is_not_mentioned_to_anyone(state: AlertState, policy: NotifyPolicy) -> None:
    """Also about an alert that was sent before; that it is muted must not lose it from the log."""
    decision = decide(state, policy, NOON)
    routed = {receiver for route in policy.routes for receiver in route.receivers}
    entries = {**state.notification_log, **decision.log_changes}
    after = {
        (receiver, fingerprint) for (receiver, _), entry in entries.items() if entry for fingerprint in entry.firing
    }
    for view in alert_views(state, policy, NOON):
        if view.silenced_by is None and not view.in_maintenance:
            continue
        about = {(receiver, view.alert.fingerprint) for receiver in RECEIVERS}
        assert not about & sent(decision)
        assert {key for key in about & logged(state) if key[0] in routed} <= after


@settings(max_examples=200, deadline=None)
@given(states(), POLICIES)
def test_what_is_not_shown_as_muted_is_mentioned_when_it_is_due(state: AlertState, policy: NotifyPolicy) -> None:
    """A new alert or a resolution is due after the group interval, in a group that has no reason to be held back."""
    mentioned = sent(decide(state, policy, NOON))
    for view in alert_views(state, policy, NOON):
        fingerprint, phase = view.alert.fingerprint, view.alert.phase
        for receiver in receivers_of(view.alert, policy):
            if phase is Phase.FIRING and (receiver, fingerprint) not in logged(state):
                assert ((receiver, fingerprint) in mentioned) is not shown_as_muted(view, receiver)


@given(alerts(), POLICIES)
def test_every_reason_that_is_shown_holds(known: dict[str, Alert], policy: NotifyPolicy) -> None:
    """Against the definitions, so that both sides cannot be wrong in the same way."""
    silenced_by = {each.id: each for each in policy.silences}
    for view in alert_views(AlertState(known, {}), policy, NOON):
        labels = labels_of(view.alert.finding, policy.cluster)
        active = [each for each in policy.silences if each.starts_at <= NOON < each.ends_at]
        matching = [each for each in active if matches(each.matchers, labels)]
        assert (view.silenced_by in {each.id for each in matching}) if matching else view.silenced_by is None
        assert view.silenced_by is None or view.silenced_by in silenced_by
        windows = [each for each in policy.windows if each.cron == "0 12 * * *" and matches(each.matchers, labels)]
        assert view.in_maintenance is bool(windows)
        quiet = {
            receiver
            for route in policy.routes
            if route.quiet == QuietHours("11:00", "13:00")
            for receiver in route.receivers
        }
        assert set(view.quiet) <= quiet
        assert not view.quiet or view.alert.finding.severity is not Severity.CRITICAL
