"""Ticks that have nothing to do are skipped; what is sent, and when, is the same as without that."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from monitor.alert import dispatcher as dispatcher_module
from monitor.alert.delivery.sender import Sender
from monitor.alert.dispatcher import TICK_SECONDS, Dispatcher, changed_alerts, newly_notified, next_state
from monitor.alert.lifecycle import GROUP_BY, AlertTiming, AlertTimings, advance
from monitor.alert.matchers import parse_matcher
from monitor.alert.model import AlertState, Notification
from monitor.alert.notify import decide
from monitor.alert.routes import NotifyPolicy, Route
from monitor.alert.silences import Silence
from monitor.alert.store import AlertStore
from monitor.alert.windows import MaintenanceWindow, QuietHours
from monitor.facts.findings import Finding, Severity
from tests.alert.scenario import NOON, finding

TIMINGS = AlertTimings(
    default=AlertTiming(keep=7.0, flap_count=3, flap_window=90.0, flap_hold=20.0),
    rules={"image-pull": AlertTiming(wait=3.0, keep=2.0)},
)
ROUTES = (
    Route(("mail",), (parse_matcher("node=n1"),), repeat=50.0, group_interval=6.0, continue_matching=True),
    Route(("wecom",), repeat=90.0, group_interval=10.0, quiet=QuietHours("12:02", "12:04")),
)
WINDOW = MaintenanceWindow("6 12 * * *", 60.0, "UTC", (parse_matcher("node=n2"),))
NODES, RULES = ("n1", "n2", "n3"), ("disk-full", "image-pull")
CAUSE = finding("n3", rule="node-down")


class World:
    """Findings and silences that change at random; `now` mostly goes forward."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.now = NOON
        self.findings: dict[tuple[str, str], Finding] = {}
        self.silences: tuple[Silence, ...] = ()

    def policy(self) -> NotifyPolicy:
        return NotifyPolicy(ROUTES, self.silences, (WINDOW,), linger=9.0, remember=60.0)

    def step(self) -> bool:
        """Let time pass, and return whether there are other findings."""
        self.now += -30.0 if self._chance.random() < 0.005 else TICK_SECONDS
        if self._chance.random() < 0.01:
            self.silences += (self._silence(),)
        if self._chance.random() > 0.06:
            return False
        key = self._chance.choice((*((rule, node) for rule in RULES for node in NODES), (CAUSE.rule, "n3")))
        if self.findings.pop(key, None) is None:
            self.findings[key] = self._found(*key)
        return True

    def _silence(self) -> Silence:
        matcher = parse_matcher(self._chance.choice(("node=n1", "cause=data")))
        starts_at = self.now + self._chance.uniform(0.0, 9.0)
        ends_at = self.now + self._chance.uniform(1.0, 40.0)
        return Silence(
            id=f"s{self.now}", matchers=(matcher,), starts_at=starts_at, ends_at=ends_at, author="li", comment=""
        )

    def _found(self, rule: str, node: str) -> Finding:
        if rule == CAUSE.rule:
            return CAUSE
        severity = self._chance.choice((Severity.WARNING, Severity.CRITICAL))
        explained_by = CAUSE if node == "n3" and self._chance.random() < 0.7 else None
        held = self._chance.random() < 0.1
        return finding(node, severity, rule=rule, explained_by=explained_by, held=held)


class Reference:
    """Decides at every step."""

    def __init__(self) -> None:
        self.state = AlertState()
        self.sent: list[Notification] = []

    def step(self, world: World) -> None:
        alerts = advance(self.state.alerts, world.findings.values(), TIMINGS, GROUP_BY, world.now)
        decision = decide(AlertState(alerts, self.state.notification_log), world.policy(), world.now)
        self.sent += decision.notifications
        self.state = next_state(alerts | newly_notified(alerts, decision.notifications), self.state, decision)


@pytest.mark.parametrize("seed", range(6))
def test_skipped_ticks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    world, reference, sent, decisions = World(seed), Reference(), list[Notification](), 0

    def counted(*args: object) -> object:
        nonlocal decisions
        decisions += 1
        decision = decide(*args)  # type: ignore[arg-type]
        sent.extend(decision.notifications)
        return decision

    monkeypatch.setattr(dispatcher_module, "decide", counted)
    steps = 2400  # ten minutes
    with contextlib.closing(AlertStore(str(tmp_path / "alerts.db"))) as store:
        dispatcher = Dispatcher(store, Sender(store, []), world.policy, TIMINGS, now=lambda: world.now)
        dispatcher.update(())
        for _ in range(steps):
            if world.step():
                dispatcher.update(world.findings.values())
            else:
                dispatcher._tick()
            reference.step(world)
            assert sent == reference.sent
            assert dispatcher.state.notification_log == reference.state.notification_log
            assert changed_alerts(dispatcher.state.alerts, reference.state.alerts) == {}
        assert changed_alerts(store.load().alerts, reference.state.alerts) == {}
    assert len(sent) > 20
    assert decisions < steps / 3
