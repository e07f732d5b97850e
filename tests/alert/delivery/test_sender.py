from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from monitor.alert.delivery import backoff
from monitor.alert.delivery.sender import Sender, StillFiring
from monitor.alert.model import Batch, Notification, NotificationSubject
from monitor.alert.notify import NotifyDecision
from monitor.alert.receivers.base import DeliveryError, RateLimit, Receiver
from monitor.alert.store import AlertStore
from monitor.detect.meta.receivers import PARKED_FOR_SECONDS, RETRYING_AFTER_SECONDS
from monitor.facts.findings import Severity
from tests.alert.delivery.sender_support import HttpReceiver, Inbox, notification, subject
from tests.support import wait_until
from tests.support.clock import FakeClock


class Scripted:
    """A receiver that records its batches and calls a function for each."""

    kind = "test"

    def __init__(self, does: Callable[[Batch], object] = lambda _: None, name: str = "bot") -> None:
        self.name = name
        self.pace = RateLimit()
        self.does = does
        self.tried: list[Batch] = []

    def capacity(self, notifications: Sequence[Notification]) -> int:
        return 10

    def deliver(self, batch: Batch) -> str:
        self.tried.append(batch)
        self.does(batch)
        return "ok"

    @property
    def groups(self) -> list[list[str]]:
        return [[each.group for each in batch.notifications] for batch in list(self.tried)]


class Reminded(Scripted):
    """A receiver to which firing alerts are resent."""

    resend_every = 0.1

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.fails = fails
        self.reminders: list[list[str]] = []

    def resend(self, subjects: Sequence[NotificationSubject], now: float) -> None:
        self.reminders.append([each.fingerprint for each in subjects])
        if self.fails:
            raise DeliveryError("down", retryable=True)


def fails(retryable: bool, times: int = 1_000_000, only: str | None = None) -> Callable[[Batch], None]:
    """Function that fails a number of times, or only for batches about one group."""
    left = [times]

    def does(batch: Batch) -> None:
        if only is None or only in [each.group for each in batch.notifications]:
            left[0] -= 1
            if left[0] >= 0:
                raise DeliveryError("not today", retryable=retryable)

    return does


def nobody(_: str) -> tuple[NotificationSubject, ...]:
    return ()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AlertStore]:
    with contextlib.closing(AlertStore(str(tmp_path / "alerts.db"))) as opened:
        yield opened


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.05)


@contextlib.contextmanager
def sending(
    store: AlertStore, *receivers: Receiver, now: Callable[[], float] = time.time, firing: StillFiring = nobody
) -> Iterator[Sender]:
    sender = Sender(store, receivers, now)
    sender.start(firing)
    try:
        yield sender
    finally:
        sender.stop()
        assert not [each.name for each in threading.enumerate() if each.name.startswith("sender-")]


def put(store: AlertStore, sender: Sender | None, *notifications: Notification) -> None:
    store.record({}, NotifyDecision(notifications), 1.0)
    if sender is not None:
        sender.wake({each.receiver for each in notifications})


def states(store: AlertStore) -> dict[str, str]:
    return {each.group: each.state for each in reversed(store.deliveries(100, 1.0))}


def test_what_is_new_is_sent_at_once_and_once(store: AlertStore) -> None:
    bot = Scripted()
    with sending(store, bot) as sender:
        for group in "abc":
            put(store, sender, notification(group))
            wait_until(lambda: states(store).get(group) == "sent", 30, "it has arrived")  # noqa: B023  # called within the round
    assert bot.groups == [["a"], ["b"], ["c"]]
    assert [batch.receiver for batch in bot.tried] == ["bot"] * 3


def test_what_waited_while_nobody_was_there_is_sent_at_the_start(store: AlertStore) -> None:
    put(store, None, notification("a"))
    bot = Scripted()
    with sending(store, bot):
        wait_until(lambda: states(store) == {"a": "sent"}, 30, "it has arrived")


def test_a_failure_is_tried_again_as_the_same_parcel(store: AlertStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bot = Scripted(fails(retryable=True, times=3))
    with sending(store, bot) as sender:
        put(store, sender, notification("a"))
        wait_until(lambda: states(store) == {"a": "sent"}, 30, "it has arrived")
    assert len({batch.id for batch in bot.tried}) == 1
    assert all(batch.notifications == bot.tried[0].notifications for batch in bot.tried)
    waits = [later.at - earlier.at for earlier, later in itertools.pairwise(bot.tried)]
    assert waits[0] >= 0.025
    assert waits[2] >= 0.1
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]  # not one for each attempt
    assert [each.attempts for each in store.deliveries(1, 1.0)] == [4]


def test_what_a_receiver_asks_for_is_waited_for(store: AlertStore) -> None:
    def asks(batch: Batch) -> None:
        if len(bot.tried) == 1:
            raise DeliveryError("too fast", retryable=True, after=0.5)

    bot = Scripted(asks)
    with sending(store, bot) as sender:
        put(store, sender, notification("a"))
        wait_until(lambda: len(bot.tried) == 1, 30, "it was tried")
        put(store, sender, notification("b"))
        wait_until(lambda: set(states(store).values()) == {"sent"}, 30, "both have arrived")
    assert bot.tried[1].at - bot.tried[0].at >= 0.5


def test_while_a_receiver_is_down_later_news_of_a_group_becomes_one_message(store: AlertStore) -> None:
    down = threading.Event()
    down.set()

    def does(_: Batch) -> None:
        if down.is_set():
            raise DeliveryError("down", retryable=True)

    bot = Scripted(does)
    with sending(store, bot) as sender:
        for number in range(30):
            put(store, sender, *(notification(f"g{group}", id=f"{number}-{group}") for group in range(8)))
        wait_until(lambda: len({batch.id for batch in bot.tried}) >= 3, 30, "it was tried")
        down.clear()
        wait_until(lambda: set(states(store).values()) == {"sent"}, 30, "all have arrived")
    arrived = {batch.id: batch for batch in bot.tried}
    assert len(arrived) <= 8 + 3  # three batches were tried and got updates afterwards
    last = {each.group: each.id for batch in arrived.values() for each in batch.notifications}
    assert last == {f"g{group}": f"29-{group}" for group in range(8)}


def test_one_parcel_that_a_receiver_does_not_like_does_not_hold_up_the_others(store: AlertStore) -> None:
    bot = Scripted(fails(retryable=True, only="odd"))
    with sending(store, bot) as sender:
        put(store, sender, notification("odd"), *(notification(f"g{number}") for number in range(10)))
        wait_until(lambda: list(states(store).values()).count("sent") == 10, 30, "the others have arrived")
        wait_until(lambda: bot.groups.count(["odd"]) >= 4, 30, "it is tried again")
    assert states(store)["odd"] == "open"


def test_what_is_refused_for_good_is_parked_and_the_next_message_is_tried(store: AlertStore) -> None:
    bot = Scripted(fails(retryable=False, times=1))
    with sending(store, bot) as sender:
        put(store, sender, notification("a", id="1"))
        wait_until(lambda: states(store) == {"a": "parked"}, 30, "it is parked")
        (trouble,) = sender.receiver_findings()
        assert (trouble.severity, trouble.cause) == (Severity.CRITICAL, "parked")
        assert trouble.labels == {"service": "receiver/bot"}
        assert trouble.headline.key == "receiver-failing.parked"
        assert trouble.headline.values["error"] == "not today"
        assert {"receiver", "kind", "error", "count", "seconds"} == trouble.headline.values.keys()
        put(store, sender, notification("a", id="2"))
        wait_until(lambda: len(bot.tried) == 2, 30, "the next is tried")
        wait_until(lambda: store.outbox.health()[0].ok_at is not None, 30, "it has arrived")
    assert len({batch.id for batch in bot.tried}) == 2


def test_a_parked_parcel_is_reported_for_a_while_and_until_another_arrives(store: AlertStore) -> None:
    clock = FakeClock()
    bot = Scripted(fails(retryable=False, times=1))
    with sending(store, bot, now=clock.time) as sender:
        put(store, sender, notification("a"))
        wait_until(lambda: states(store) == {"a": "parked"}, 30, "it is parked")
        clock.advance(10 * PARKED_FOR_SECONDS)
        assert [each.cause for each in sender.receiver_findings()] == ["parked"]  # no delivery has succeeded since
        put(store, sender, notification("b"))
        wait_until(lambda: states(store)["b"] == "sent", 30, "it has arrived")
        assert sender.receiver_findings() == ()


def test_a_receiver_that_fails_for_long_is_reported_until_it_takes_something(store: AlertStore) -> None:
    clock = FakeClock()
    bot = Scripted(fails(retryable=True, times=2))
    with sending(store, bot, Scripted(name="well"), now=clock.time) as sender:
        put(store, sender, notification("a"), notification("x", receiver="well"))
        wait_until(lambda: len(store.outbox.health()) == 2, 30, "both were tried")
        clock.advance(RETRYING_AFTER_SECONDS - 1)
        assert sender.receiver_findings() == ()
        sender.wake(["bot"])
        wait_until(lambda: store.outbox.health()[0].failures == 2, 30, "it has failed again")
        clock.advance(1)  # less than the delay of the third attempt
        (trouble,) = sender.receiver_findings()
        assert (trouble.severity, trouble.cause) == (Severity.WARNING, "retrying")
        assert trouble.headline.key == "receiver-failing.retrying"
        assert trouble.headline.values["count"] == 1
        assert trouble.headline.values["seconds"] == pytest.approx(RETRYING_AFTER_SECONDS)
        clock.advance(10)
        sender.wake(["bot"])
        wait_until(lambda: states(store)["a"] == "sent", 30, "it has arrived")
        assert sender.receiver_findings() == ()


def test_a_mistake_in_a_receiver_is_no_secret_s_way_into_the_log(
    store: AlertStore, caplog: pytest.LogCaptureFixture
) -> None:
    def does(_: Batch) -> None:
        if len(bot.tried) == 1:
            raise RuntimeError("https://bot/send?key=SECRET")

    bot = Scripted(does)
    with sending(store, bot) as sender:
        put(store, sender, notification("a"))
        wait_until(lambda: states(store) == {"a": "sent"}, 30, "it has arrived")
    assert "unexpected RuntimeError" in caplog.text
    assert "SECRET" not in caplog.text


def test_a_slow_receiver_holds_up_nobody_else(store: AlertStore) -> None:
    release = threading.Event()
    slow, well = Scripted(lambda _: release.wait(120), name="slow"), Scripted()
    with sending(store, slow, well) as sender:
        put(store, sender, notification("a", receiver="slow"), notification("b"))
        wait_until(lambda: states(store)["b"] == "sent", 30, "the other has arrived")
        assert states(store)["a"] == "open"
        release.set()


def test_a_limit_holds_across_a_restart(store: AlertStore) -> None:
    bot = Scripted()
    bot.pace = RateLimit(count=4, window=60.0)
    with sending(store, bot) as sender:
        put(store, sender, *(notification(f"g{number}", severity="critical") for number in range(4)))
        wait_until(lambda: len(bot.tried) == 4, 30, "four were sent")
    again = Scripted()
    again.pace = bot.pace
    with sending(store, again) as sender:
        put(store, sender, notification("more", severity="critical"))
        assert not threading.Event().wait(0.3)
    assert again.tried == []
    assert states(store)["more"] == "waiting"


def test_somebody_else_who_uses_up_the_limit_costs_nothing_but_time(store: AlertStore) -> None:
    refusals = iter([45009, 45009, 0, 45009])

    def answer(_: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, {"errcode": next(refusals, 0), "errmsg": "api freq out of limit", "after": 0.1}

    with Inbox(answer).served() as inbox, sending(store, HttpReceiver("bot", inbox.port)) as sender:
        put(store, sender, *(notification(f"g{number}") for number in range(5)))
        wait_until(lambda: set(states(store).values()) == {"sent"}, 30, "all have arrived")
        assert sorted(group for each in inbox.taken() for group in each.groups) == [f"g{number}" for number in range(5)]


def test_what_waits_for_a_receiver_that_is_gone_is_parked(store: AlertStore) -> None:
    put(store, None, notification("a", receiver="gone"))
    with sending(store, Scripted()) as sender:
        assert states(store) == {"a": "parked"}
        assert sender.receiver_findings() == ()


@pytest.mark.parametrize("failing", [False, True])
def test_a_receiver_that_forgets_is_told_again_what_fires(store: AlertStore, failing: bool) -> None:
    bot = Reminded(failing)
    firing: dict[str, tuple[NotificationSubject, ...]] = {"bot": (subject("n1"), subject("n2"))}
    with sending(store, bot, Scripted(name="other"), firing=lambda name: firing[name]) as sender:
        wait_until(lambda: len(bot.reminders) >= 3, 30, "it was reminded")
        firing["bot"] = ()
        seen = len(bot.reminders)
        put(store, sender, notification("a"))
        wait_until(lambda: states(store) == {"a": "sent"}, 30, "messages go as ever")
        assert len(bot.reminders) <= seen + 1
    assert bot.reminders[0] == ["n1", "n2"]


def test_an_error_of_the_file_is_survived(store: AlertStore, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox, bot = store.outbox, Scripted()
    real, failures = outbox.queue, iter([True])

    def queue(*arguments: Any) -> Any:
        if next(failures, False):
            raise OSError("odd")
        return real(*arguments)

    monkeypatch.setattr(outbox, "queue", queue)
    monkeypatch.setattr("monitor.alert.delivery.sender.ERROR_PAUSE_SECONDS", 0.05)
    put(store, None, notification("a"))
    with sending(store, bot):
        wait_until(lambda: states(store) == {"a": "sent"}, 30, "it has arrived")


def test_a_receiver_that_cannot_say_what_it_holds_gets_one_at_a_time(store: AlertStore) -> None:
    class Odd(Scripted):
        def capacity(self, notifications: Sequence[Notification]) -> int:
            raise ZeroDivisionError

    bot = Odd()
    bot.pace = RateLimit(count=8, window=0.4)
    with sending(store, bot) as sender:
        put(store, sender, *(notification(f"g{number}") for number in range(20)))
        wait_until(lambda: set(states(store).values()) == {"sent"}, 30, "all have arrived")
    assert all(len(each) == 1 for each in bot.groups)
