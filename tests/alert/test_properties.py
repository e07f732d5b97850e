"""Whatever is found, however the clock jumps: no alert is sent twice, and none as resolved while it is present."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from monitor.alert.lifecycle import AlertTiming, AlertTimings
from monitor.alert.matchers import matches, parse_matcher
from monitor.alert.model import (
    Alert,
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
    fingerprint_of,
    labels_of,
)
from monitor.alert.routes import NotifyPolicy, Route, routes_for
from monitor.alert.silences import Silence
from monitor.alert.windows import MaintenanceWindow, QuietHours
from monitor.facts.findings import Finding, Severity
from tests.alert.scenario import CRITICAL, NOON, Scenario, finding

WAIT, INTERVAL = 2.0, 30.0
SUBJECTS = ("n0", "n1", "n2")
RULES = ("disk-full", "image-pull")
TIMES: dict[str, Any] = {"group_wait": WAIT, "group_interval": INTERVAL, "repeat": 3600.0}
ALL = Route(("all",), **TIMES, continue_matching=True)
ONCALL = Route(("oncall",), (parse_matcher("severity=critical"),), **TIMES)
TEAM = Route(("team",), **TIMES, quiet=QuietHours("22:00", "08:00"))
TABLES = ((ALL, ONCALL, TEAM), (ALL, TEAM), (ALL,), (ONCALL, TEAM, ALL))
CAUSES = st.sampled_from(("data", "system"))
OWNERS = st.sampled_from(({}, {"queue": "batch"}, {"queue": "night", "user": "li"}, {"user": "li", "job": "train"}))
SEVERITIES = st.sampled_from(list(Severity))
SOON = st.sampled_from((0.5, 2.0, 5.0, 30.0))
WINDOW = MaintenanceWindow("30 * * * *", 300.0, matchers=(parse_matcher("node=n2"),))
TIMINGS = AlertTimings(AlertTiming(keep=30.0, flap_count=3), {"image-pull": AlertTiming(wait=20.0, keep=5.0)})


class AlertsOverTime(RuleBasedStateMachine):
    """Random events; tracks from the notifications alone what every receiver knows."""

    def __init__(self) -> None:
        super().__init__()
        self.present: dict[str, Finding] = {}
        self.scenario = Scenario(NotifyPolicy(routes=TABLES[0], windows=(WINDOW,)), TIMINGS)
        self.notified: set[tuple[str, str]] = set()
        self.ids: set[str] = set()
        self.due: dict[tuple[str, str], float] = {}
        self.sound = True

    @initialize(now=st.integers(min_value=0, max_value=47))
    def begin(self, now: int) -> None:
        self.scenario.now = NOON + now * 1800.0

    # Events.

    @rule(
        node=st.sampled_from(SUBJECTS),
        name=st.sampled_from(RULES),
        severity=SEVERITIES,
        symptom=st.booleans(),
        then=SOON,
    )
    def appears(self, node: str, name: str, severity: Severity, symptom: bool, then: float) -> None:
        causes = [each for each in self.present.values() if each.explained_by is None]
        found = finding(node, severity, rule=name, explained_by=causes[0] if symptom and causes else None)
        self.present[fingerprint_of(found)] = found
        self._evaluate(after=then)

    @precondition(lambda self: self.present)
    @rule(data=st.data(), then=SOON)
    def vanishes(self, data: st.DataObject, then: float) -> None:
        del self.present[data.draw(st.sampled_from(sorted(self.present)))]
        self._evaluate(after=then)

    @precondition(lambda self: self.present)
    @rule(data=st.data(), gone=st.sampled_from((6.0, 31.0)), cause=CAUSES, silently=st.booleans(), then=SOON)
    def comes_and_goes(self, data: st.DataObject, gone: float, cause: str, silently: bool, then: float) -> None:
        fingerprint = data.draw(st.sampled_from(sorted(self.present)))
        found = self.present.pop(fingerprint)
        if silently:
            self.is_silenced(found.labels["node"], gone + 1.0)
        self._evaluate()
        self._evaluate(after=gone)
        self.present[fingerprint] = replace(found, cause=cause)
        self._evaluate(after=0.5)
        self._evaluate(after=then)

    @rule()
    def all_vanish(self) -> None:
        self.present.clear()

    @precondition(lambda self: self.present)
    @rule(data=st.data(), severity=SEVERITIES, cause=CAUSES, held=st.booleans())
    def changes(self, data: st.DataObject, severity: Severity, cause: str, held: bool) -> None:
        fingerprint = data.draw(st.sampled_from(sorted(self.present)))
        self.present[fingerprint] = replace(self.present[fingerprint], severity=severity, cause=cause, held=held)

    @precondition(lambda self: self.present)
    @rule(data=st.data(), owner=OWNERS)
    def changes_its_owner(self, data: st.DataObject, owner: dict[str, str]) -> None:
        fingerprint = data.draw(st.sampled_from(sorted(self.present)))
        found = self.present[fingerprint]
        self.present[fingerprint] = replace(found, labels={"node": found.labels["node"], **owner})

    @precondition(lambda self: self.present)
    @rule(data=st.data(), known=st.booleans())
    def is_explained(self, data: st.DataObject, known: bool) -> None:
        symptom, cause = (self.present[data.draw(st.sampled_from(sorted(self.present)))] for _ in range(2))
        self.present[fingerprint_of(symptom)] = replace(symptom, explained_by=cause.key if known else None)

    @rule(node=st.sampled_from(SUBJECTS), length=st.sampled_from((60.0, 7200.0)))
    def is_silenced(self, node: str, length: float) -> None:
        now, by_node = self.scenario.now, (parse_matcher(f"node={node}"),)
        new = Silence(id="s", matchers=by_node, starts_at=now, ends_at=now + length, author="li", comment="")
        self._configure(changed(self.scenario.policy, silences=(*self.scenario.policy.silences, new)))

    @rule()
    def silences_end(self) -> None:
        self._configure(changed(self.scenario.policy, silences=()))

    @rule(table=st.sampled_from(TABLES))
    def is_reconfigured(self, table: tuple[Route, ...]) -> None:
        self._configure(changed(self.scenario.policy, routes=table))
        receivers = {receiver for route in table for receiver in route.receivers}
        self.notified = {(receiver, fingerprint) for receiver, fingerprint in self.notified if receiver in receivers}

    @rule()
    def restarts(self) -> None:
        self.scenario.restart()

    @rule(seconds=st.sampled_from((0.0, 0.5, 2.0, 5.0, 20.0, 30.0, 600.0, 3600.0)))
    def time_passes(self, seconds: float) -> None:
        self._evaluate(after=seconds)

    @rule(seconds=st.sampled_from((-31_536_000.0, -7200.0, -30.0, -0.5, 7200.0, 31_536_000.0)))
    def clock_jumps(self, seconds: float) -> None:
        self.due.clear()
        self._evaluate(after=seconds)

    # Invariants.

    def _configure(self, policy: NotifyPolicy) -> None:
        self.scenario.policy = policy
        self._evaluate()

    def _evaluate(self, after: float = 0.0) -> None:
        self.sound = False
        # No two evaluations are at the same moment.
        for told in self.scenario.evaluate(*self.present.values(), after=after + 0.001):
            assert told.id not in self.ids
            self.ids.add(told.id)
            assert told.subjects
            for subject in told.subjects:
                self._check_allowed(subject)
                self._track_notified(told, subject)
        for fingerprint, alert in self.scenario.alerts.items():
            assert alert.phase is not (Phase.RESOLVED if fingerprint in self.present else Phase.PENDING)
        self._track_due()
        self.sound = True

    def _check_allowed(self, subject: NotificationSubject) -> None:
        labels = labels_of(subject.finding, None)
        active = (each for each in self.scenario.policy.silences if each.active(self.scenario.now))
        assert not any(matches(each.matchers, labels) for each in active), "told in spite of a silence"
        if subject.fresh and subject.phase is Phase.FIRING:
            assert subject.fingerprint in self.present, "told though it is gone"
            causes = {each.key for each in self.present.values() if each.explained_by is None and not each.held}
            assert subject.finding.explained_by not in causes, "told in spite of its cause"

    def _track_notified(self, told: Notification, subject: NotificationSubject) -> None:
        known = (told.receiver, subject.fingerprint) in self.notified
        if subject.phase is Phase.RESOLVED:
            assert subject.fingerprint not in self.present, "told over while it is there"
            assert known, "told over without having been told"
            assert subject.since <= (subject.resolved_at or 0.0) <= told.at
            self.notified.discard((told.receiver, subject.fingerprint))
            return
        if told.reason is not NotificationReason.WORSE:
            assert known is not subject.fresh, "told twice, or as known without having been told"
        self.notified.add((told.receiver, subject.fingerprint))

    def _track_due(self) -> None:
        """Track due notifications; none may be later than its route allows."""
        owed = {key for alert in self.scenario.alerts.values() for key in self._receivers_due(alert)}
        now = self.scenario.now
        self.due = {key: self.due.get(key, now) for key in owed - self.notified}
        late = [key for key, since in self.due.items() if now - since >= max(WAIT, INTERVAL)]
        assert not late, "not told in time"

    def _receivers_due(self, alert: Alert) -> set[tuple[str, str]]:
        found, policy, now = self.present.get(alert.fingerprint), self.scenario.policy, self.scenario.now
        if found is None or alert.phase is not Phase.FIRING or alert.finding.explained_by is not None:
            return set()
        labels = labels_of(found, None)
        if any(each.active(now) and matches(each.matchers, labels) for each in policy.silences):
            return set()
        if found.labels["node"] == "n2" and WINDOW.open(now):
            return set()
        routes = [
            each
            for each in routes_for(labels, policy.routes)
            if each.quiet is None or found.severity is CRITICAL or not each.quiet.contains(now)
        ]
        return {(receiver, alert.fingerprint) for route in routes for receiver in route.receivers}

    @invariant()
    def what_is_remembered_is_what_was_heard(self) -> None:
        told = {
            (receiver, fingerprint) for (receiver, _), each in self.scenario.log.items() for fingerprint in each.firing
        }
        assert told == self.notified
        assert {fingerprint for _, fingerprint in told} <= self.scenario.alerts.keys()

    def teardown(self) -> None:
        """Once all findings and silences are gone, every receiver learns that everything resolved."""
        if not self.sound:
            return
        self.present.clear()
        self.scenario.policy = changed(self.scenario.policy, silences=())
        for _ in range(40):
            self._evaluate(after=2700.0)
        assert not self.notified
        assert not self.scenario.log
        assert not self.scenario.alerts


AlertsOverTime.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=50,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)
TestAlertsOverTime = AlertsOverTime.TestCase
