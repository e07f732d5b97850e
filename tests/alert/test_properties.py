"""Whatever is found, however the clock jumps: nothing is told twice, and nothing is told over while it is there."""

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
SEVERITIES = st.sampled_from(list(Severity))
SOON = st.sampled_from((0.5, 2.0, 5.0, 30.0))
WINDOW = MaintenanceWindow("30 * * * *", 300.0, matchers=(parse_matcher("node=n2"),))
TIMINGS = AlertTimings(AlertTiming(keep=30.0, flap_count=3), {"image-pull": AlertTiming(wait=20.0, keep=5.0)})


class AlertsOverTime(RuleBasedStateMachine):
    """Lives through anything, and keeps account of what every receiver has heard, from the messages alone."""

    def __init__(self) -> None:
        super().__init__()
        self.there: dict[str, Finding] = {}
        self.scenario = Scenario(NotifyPolicy(routes=TABLES[0], windows=(WINDOW,)), TIMINGS)
        self.heard: set[tuple[str, str]] = set()
        self.ids: set[str] = set()
        self.owed: dict[tuple[str, str], float] = {}
        self.sound = True

    @initialize(now=st.integers(min_value=0, max_value=47))
    def begin(self, now: int) -> None:
        self.scenario.now = NOON + now * 1800.0

    # What happens.

    @rule(
        node=st.sampled_from(SUBJECTS),
        name=st.sampled_from(RULES),
        severity=SEVERITIES,
        symptom=st.booleans(),
        then=SOON,
    )
    def appears(self, node: str, name: str, severity: Severity, symptom: bool, then: float) -> None:
        causes = [each for each in self.there.values() if each.explained_by is None]
        found = finding(node, severity, rule=name, explained_by=causes[0] if symptom and causes else None)
        self.there[fingerprint_of(found)] = found
        self._look(after=then)

    @precondition(lambda self: self.there)
    @rule(data=st.data(), then=SOON)
    def vanishes(self, data: st.DataObject, then: float) -> None:
        del self.there[data.draw(st.sampled_from(sorted(self.there)))]
        self._look(after=then)

    @precondition(lambda self: self.there)
    @rule(data=st.data(), gone=st.sampled_from((6.0, 31.0)), cause=CAUSES, silently=st.booleans(), then=SOON)
    def comes_and_goes(self, data: st.DataObject, gone: float, cause: str, silently: bool, then: float) -> None:
        own = data.draw(st.sampled_from(sorted(self.there)))
        found = self.there.pop(own)
        if silently:
            self.is_silenced(found.labels["node"], gone + 1.0)
        self._look()
        self._look(after=gone)
        self.there[own] = replace(found, cause=cause)
        self._look(after=0.5)
        self._look(after=then)

    @rule()
    def all_vanish(self) -> None:
        self.there.clear()

    @precondition(lambda self: self.there)
    @rule(data=st.data(), severity=SEVERITIES, cause=CAUSES, held=st.booleans())
    def changes(self, data: st.DataObject, severity: Severity, cause: str, held: bool) -> None:
        own = data.draw(st.sampled_from(sorted(self.there)))
        self.there[own] = replace(self.there[own], severity=severity, cause=cause, held=held)

    @precondition(lambda self: self.there)
    @rule(data=st.data(), known=st.booleans())
    def is_explained(self, data: st.DataObject, known: bool) -> None:
        own, cause = (self.there[data.draw(st.sampled_from(sorted(self.there)))] for _ in range(2))
        self.there[fingerprint_of(own)] = replace(own, explained_by=cause.key if known else None)

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
        self.heard = {(receiver, own) for receiver, own in self.heard if receiver in receivers}

    @rule()
    def restarts(self) -> None:
        self.scenario.restart()

    @rule(seconds=st.sampled_from((0.0, 0.5, 2.0, 5.0, 20.0, 30.0, 600.0, 3600.0)))
    def time_passes(self, seconds: float) -> None:
        self._look(after=seconds)

    @rule(seconds=st.sampled_from((-31_536_000.0, -7200.0, -30.0, -0.5, 7200.0, 31_536_000.0)))
    def clock_jumps(self, seconds: float) -> None:
        self.owed.clear()
        self._look(after=seconds)

    # What must hold.

    def _configure(self, policy: NotifyPolicy) -> None:
        self.scenario.policy = policy
        self._look()

    def _look(self, after: float = 0.0) -> None:
        self.sound = False
        # No two looks are at the same moment, as with any clock.
        for told in self.scenario.evaluate(*self.there.values(), after=after + 0.001):
            assert told.id not in self.ids
            self.ids.add(told.id)
            assert told.subjects
            for subject in told.subjects:
                self._may_be_told(subject)
                self._hear(told, subject)
        for own, alert in self.scenario.alerts.items():
            assert alert.phase is not (Phase.RESOLVED if own in self.there else Phase.PENDING)
        self._owe()
        self.sound = True

    def _may_be_told(self, subject: NotificationSubject) -> None:
        labels = labels_of(subject.finding, None)
        active = (each for each in self.scenario.policy.silences if each.active(self.scenario.now))
        assert not any(matches(each.matchers, labels) for each in active), "told in spite of a silence"
        if subject.fresh and subject.phase is Phase.FIRING:
            assert subject.fingerprint in self.there, "told though it is gone"
            causes = {each.key for each in self.there.values() if each.explained_by is None and not each.held}
            assert subject.finding.explained_by not in causes, "told in spite of its cause"

    def _hear(self, told: Notification, subject: NotificationSubject) -> None:
        known = (told.receiver, subject.fingerprint) in self.heard
        if subject.phase is Phase.RESOLVED:
            assert subject.fingerprint not in self.there, "told over while it is there"
            assert known, "told over without having been told"
            assert subject.since <= (subject.resolved_at or 0.0) <= told.at
            self.heard.discard((told.receiver, subject.fingerprint))
            return
        if told.reason is not NotificationReason.WORSE:
            assert known is not subject.fresh, "told twice, or as known without having been told"
        self.heard.add((told.receiver, subject.fingerprint))

    def _owe(self) -> None:
        """Note who should hear of what, and that nobody waits for longer than the route says."""
        owed = {key for alert in self.scenario.alerts.values() for key in self._should_hear(alert)}
        now = self.scenario.now
        self.owed = {key: self.owed.get(key, now) for key in owed - self.heard}
        late = [key for key, since in self.owed.items() if now - since >= max(WAIT, INTERVAL)]
        assert not late, "not told in time"

    def _should_hear(self, alert: Alert) -> set[tuple[str, str]]:
        found, policy, now = self.there.get(alert.fingerprint), self.scenario.policy, self.scenario.now
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
        told = {(receiver, own) for (receiver, _), each in self.scenario.log.items() for own in each.firing}
        assert told == self.heard
        assert {own for _, own in told} <= self.scenario.alerts.keys()

    def teardown(self) -> None:
        """When nothing is there any more and everything may be said, everybody hears that everything is over."""
        if not self.sound:
            return
        self.there.clear()
        self.scenario.policy = changed(self.scenario.policy, silences=())
        for _ in range(40):
            self._look(after=2700.0)
        assert not self.heard
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
