from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from monitor.alert import dispatcher as dispatcher_module
from monitor.alert.delivery.sender import Sender
from monitor.alert.dispatcher import Dispatcher, changed_alerts
from monitor.alert.lifecycle import AlertTiming, AlertTimings, advance
from monitor.alert.matchers import Matcher
from monitor.alert.model import Alert, AlertState, Phase, fingerprint_of
from monitor.alert.notify import NotifyDecision
from monitor.alert.receivers.base import Receiver
from monitor.alert.routes import NotifyPolicy, Route
from monitor.alert.silences import Silence
from monitor.alert.store import AlertEventKind, AlertStore
from monitor.base.sqlite import DatabaseError
from monitor.facts.findings import Finding
from monitor.facts.text import Text
from tests.alert.delivery.sender_support import finding, notification
from tests.alert.delivery.test_sender import Scripted, fails
from tests.support import wait_until

ROUTE = Route(receivers=("bot",), group_wait=0.0, group_interval=0.0)
QUICK = AlertTimings(default=AlertTiming(keep=0.0))


class RecordingStore(AlertStore):
    """A store that records its writes and fails on demand."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.records: list[dict[str, Alert | None]] = []
        self.failures = 0

    def record(self, changed: Mapping[str, Alert | None], decision: NotifyDecision, now: float) -> None:
        if self.failures:
            self.failures -= 1
            raise DatabaseError("database is locked")
        self.records.append(dict(changed))
        super().record(changed, decision, now)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordingStore]:
    with contextlib.closing(RecordingStore(tmp_path / "alerts.db")) as opened:
        yield opened


@contextlib.contextmanager
def working(
    store: AlertStore,
    *receivers: Receiver,
    policy: NotifyPolicy | Callable[[], NotifyPolicy] = NotifyPolicy(routes=(ROUTE,)),  # noqa: B008  # frozen
    timings: AlertTimings = QUICK,
    **more: Any,
) -> Iterator[Dispatcher]:
    policy_of = policy if callable(policy) else lambda: policy
    dispatcher = Dispatcher(store, Sender(store, receivers), policy_of, timings, **more)
    dispatcher.start()
    try:
        yield dispatcher
    finally:
        dispatcher.stop()
        assert "alerts" not in [each.name for each in threading.enumerate()]


def told(bot: Scripted) -> list[tuple[str, list[str]]]:
    """Reason and nodes of each notification that a receiver got."""
    return [
        (each.reason.value, [one.finding.labels["node"] for one in each.subjects])
        for batch in list(bot.tried)
        for each in batch.notifications
    ]


def rules(bot: Scripted) -> set[str]:
    return {
        one.finding.rule for batch in list(bot.tried) for each in batch.notifications for one in each.subjects
    }  # fmt: skip


def silence(ends_at: float) -> Silence:
    matchers = (Matcher(name="node", op="=", value="n2"),)
    return Silence(id="s1", matchers=matchers, starts_at=0.0, ends_at=ends_at, author="li", comment="moving it")


def test_what_is_found_is_told_and_what_is_over_too(store: RecordingStore) -> None:
    bot = Scripted()
    with working(store, bot) as dispatcher:
        dispatcher.update([finding("n1")])
        wait_until(lambda: told(bot) == [("new", ["n1"])], 30, "it is told")
        dispatcher.update([])
        wait_until(lambda: told(bot)[1:] == [("resolved", ["n1"])], 30, "that it is over is told")


def test_a_restart_repeats_nothing_and_goes_on(tmp_path: Path) -> None:
    path, first, second = tmp_path / "alerts.db", Scripted(), Scripted()
    with contextlib.closing(RecordingStore(path)) as store, working(store, first) as dispatcher:
        dispatcher.update([finding("n1")])
        wait_until(lambda: bool(first.tried), 30, "it is told")
    with contextlib.closing(RecordingStore(path)) as store, working(store, second) as dispatcher:
        dispatcher.update([finding("n1")])
        assert not threading.Event().wait(0.4)
        assert second.tried == []
        dispatcher.update([])
        wait_until(lambda: told(second) == [("resolved", ["n1"])], 30, "that it is over is told")


def test_nothing_is_told_before_the_first_look(store: RecordingStore) -> None:
    """An alert that fired before a restart may have resolved: a reminder would be a guess."""
    alerts = advance({}, [finding("n1")], QUICK, ("alertname",), 1.0)
    store.record(alerts, NotifyDecision(), 1.0)
    bot = Scripted()
    with working(store, bot) as dispatcher:
        assert not threading.Event().wait(0.6)
        assert bot.tried == []
        dispatcher.update([finding("n1")])
        wait_until(lambda: told(bot) == [("new", ["n1"])], 30, "it is told")


def test_time_passes_without_a_look(store: RecordingStore) -> None:
    bot = Scripted()
    with working(store, bot, timings=AlertTimings(default=AlertTiming(wait=1.5))) as dispatcher:
        dispatcher.update([finding("n1")])
        assert dispatcher.state.alerts[fingerprint_of(finding("n1"))].phase is Phase.PENDING
        wait_until(lambda: told(bot) == [("new", ["n1"])], 30, "it is told")


@pytest.mark.parametrize(
    ("first", "then", "phase"),
    [([finding("n1")], None, Phase.PENDING), ([finding("n1")], [], Phase.FIRING)],
    ids=["does not fire", "is not over"],
)
def test_without_looks_nothing_changes(
    store: RecordingStore,
    monkeypatch: pytest.MonkeyPatch,
    first: list[Finding],
    then: list[Finding] | None,
    phase: Phase,
) -> None:
    monkeypatch.setattr(dispatcher_module, "FRESH_SECONDS", 0.1)
    timing = AlertTiming(wait=0.3) if then is None else AlertTiming(keep=0.3)
    with working(store, Scripted(), timings=AlertTimings(default=timing)) as dispatcher:
        dispatcher.update(first)
        if then is not None:
            dispatcher.update(then)
        assert not threading.Event().wait(0.8)
        assert [each.phase for each in dispatcher.state.alerts.values()] == [phase]


def test_it_is_written_only_when_something_has_changed(store: RecordingStore) -> None:
    with working(store, Scripted()) as dispatcher:
        for figure in range(5):
            dispatcher.update([finding("n1", evidence=(Text(key="x", values={"used": figure}),))])
        assert not threading.Event().wait(0.6)  # nor by the clock
        assert len(store.records) == 1
        dispatcher.update([finding("n1", severity="critical")])
        assert len(store.records) == 2
        assert [each.alert.finding.evidence for each in dispatcher.snapshot()] == [()]


def test_what_could_not_be_written_is_told_when_it_can_be(store: RecordingStore) -> None:
    bot = Scripted()
    with working(store, bot) as dispatcher:
        store.failures = 2
        dispatcher.update([finding("n1")])
        assert dispatcher.state.alerts == {}
        wait_until(lambda: told(bot) == [("new", ["n1"])], 30, "it is told")
    assert store.failures == 0


def test_an_odd_moment_is_survived(store: RecordingStore, caplog: pytest.LogCaptureFixture) -> None:
    policies = iter([ZeroDivisionError])
    bot = Scripted()

    def policy_of() -> NotifyPolicy:
        for error in policies:
            raise error
        return NotifyPolicy(routes=(ROUTE,))

    with working(store, bot, policy=policy_of) as dispatcher:
        dispatcher.update([finding("n1")])
        wait_until(lambda: told(bot) == [("new", ["n1"])], 30, "it is told")
    assert "ZeroDivisionError" in caplog.text


def test_that_a_receiver_refuses_is_told_to_another(store: RecordingStore) -> None:
    bot, other = Scripted(fails(retryable=False)), Scripted(name="other")
    both = Route(receivers=("bot", "other"), group_wait=0.0)
    with working(store, bot, other, policy=NotifyPolicy(routes=(both,))) as dispatcher:
        dispatcher.update([finding("n1")])
        wait_until(lambda: "receiver-failing" in rules(other), 30, "it is told")
        assert rules(bot) == {"disk-full"}


def test_the_book_tells_who_was_told_and_why_others_were_not(store: RecordingStore) -> None:
    cause = finding("n1")
    symptom = finding("n3", rule="image-pull", explained_by=cause.key)
    with working(store, Scripted(), policy=NotifyPolicy(routes=(ROUTE,), silences=(silence(9e9),))) as dispatcher:
        dispatcher.update([cause, finding("n2"), symptom])
        shown = {each.alert.finding.labels["node"]: each for each in dispatcher.snapshot()}
        fires = [each.finding.labels["node"] for each in dispatcher.still_firing("bot")]
        assert dispatcher.still_firing("other") == ()
        dispatcher.update([])
        assert dispatcher.still_firing("bot") == ()
    assert {node: (each.silenced_by, each.explained_by, each.told) for node, each in shown.items()} == {
        "n1": (None, None, ("bot",)),
        "n2": ("s1", None, ()),
        "n3": (None, fingerprint_of(cause), ()),
    }
    assert fires == ["n1"]


def test_other_messages_go_the_same_way(store: RecordingStore) -> None:
    bot = Scripted()
    with working(store, bot) as dispatcher:
        dispatcher.send([notification("digest")], {"digest": b"now"})
        wait_until(lambda: bot.groups == [["digest"]], 30, "it is sent")
    assert store.note("digest") == b"now"


def test_what_is_old_is_forgotten_by_and_by(store: RecordingStore) -> None:
    store.add_silence(silence(9.0))
    with working(store, Scripted()):
        wait_until(lambda: store.silences(0.0) == (), 30, "it is forgotten")


def test_changes() -> None:
    before = advance({}, [finding("n1"), finding("n2"), finding("n3")], QUICK, ("alertname",), 1.0)
    found = [finding("n1", evidence=(Text(key="y"),)), finding("n2", severity="critical"), finding("n4")]
    after = advance(before, found, QUICK, ("alertname",), 2.0)
    del after[fingerprint_of(finding("n3"))]
    assert changed_alerts(before, after) == {
        fingerprint_of(finding("n2")): after[fingerprint_of(finding("n2"))],
        fingerprint_of(finding("n3")): None,
        fingerprint_of(finding("n4")): after[fingerprint_of(finding("n4"))],
    }
    assert changed_alerts(after, after) == {}


def test_the_book_is_empty_at_first(store: RecordingStore) -> None:
    assert Dispatcher(store, Sender(store, []), lambda: NotifyPolicy(routes=()), QUICK).state == AlertState()


def test_who_takes_care_of_an_alert_is_told_until_it_fires_again(store: RecordingStore) -> None:
    bot, fingerprint = Scripted(), fingerprint_of(finding("n1"))
    with working(store, bot) as dispatcher:
        dispatcher.update([finding("n1")])
        wait_until(lambda: told(bot) == [("new", ["n1"])], 30, "it is told")
        dispatcher.acknowledge(fingerprint, "li", "on my way")
        dispatcher.update([finding("n1"), finding("n2")])
        wait_until(lambda: len(told(bot)) == 2, 30, "another one is told")
        people = {one.fingerprint: one.acknowledged_by for one in bot.tried[-1].notifications[0].subjects}
        assert people == {fingerprint: "li", fingerprint_of(finding("n2")): None}
        (acknowledged, *_) = [event for event in store.history(0.0) if event.what is AlertEventKind.ACKNOWLEDGED]
        assert acknowledged.alert.acknowledged is not None
        assert (acknowledged.alert.acknowledged.by, acknowledged.alert.acknowledged.comment) == ("li", "on my way")
        dispatcher.update([])
        wait_until(lambda: dispatcher.state.alerts[fingerprint].phase is Phase.RESOLVED, 30, "it resolves")
        with pytest.raises(ValueError, match="not firing"):
            dispatcher.acknowledge(fingerprint, "li", "")
        dispatcher.update([finding("n1")])
        assert dispatcher.state.alerts[fingerprint].acknowledged is None


def test_an_alert_of_the_past_still_names_who_was_notified(tmp_path: Path) -> None:
    path, fingerprint = tmp_path / "alerts.db", fingerprint_of(finding("n1"))
    with contextlib.closing(RecordingStore(path)) as store, working(store, Scripted()) as dispatcher:
        dispatcher.update([finding("n1")])
        wait_until(lambda: dispatcher.snapshot()[0].told == ("bot",), 30, "it is told")
        dispatcher.update([])
        wait_until(lambda: dispatcher.state.notification_log == {}, 30, "that it is over is told")
        assert dispatcher.snapshot()[0].told == ("bot",)
    with contextlib.closing(RecordingStore(path)) as store, working(store, Scripted()) as dispatcher:
        assert [(view.alert.fingerprint, view.told) for view in dispatcher.snapshot()] == [(fingerprint, ("bot",))]


def test_nobody_takes_care_of_an_alert_that_is_not_known(store: RecordingStore) -> None:
    with working(store) as dispatcher, pytest.raises(ValueError, match="not firing"):
        dispatcher.acknowledge("f" * 16, "li", "")
