from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from monitor.alert.delivery.outbox import Outbox
from monitor.alert.delivery.schedule import NextSend, ReceiverQueue, next_send
from monitor.alert.model import AnswerLink, Notification, NotificationReason, Phase, Summary
from monitor.alert.notify import NotifyDecision
from monitor.alert.receivers.base import RateLimit
from monitor.alert.store import AlertStore
from tests.alert.delivery.sender_support import notification, subject

WINDOW = 60.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alerts.db"


@pytest.fixture
def store(path: Path) -> Iterator[AlertStore]:
    with closing(AlertStore(str(path))) as opened:
        yield opened


@pytest.fixture
def outbox(store: AlertStore) -> Outbox:
    return store.outbox


def put(store: AlertStore, *notifications: Notification) -> None:
    store.record({}, NotifyDecision(notifications=notifications), 1.0)


def queue(outbox: Outbox, now: float = 10.0) -> ReceiverQueue:
    return outbox.queue("bot", WINDOW, now)


def groups(queue: ReceiverQueue) -> list[str]:
    return [each.notification.group for each in queue.waiting]


def places(queue: ReceiverQueue) -> list[int]:
    return [each.sequence for each in queue.waiting]


def test_what_waits_is_in_the_order_in_which_it_came(store: AlertStore, outbox: Outbox) -> None:
    put(store, notification("b"), notification("a"), notification("c", receiver="other"))
    put(store, notification("0"))
    assert groups(queue(outbox)) == ["b", "a", "0"]
    assert queue(outbox).waiting[0].notification == notification("b")


def test_a_later_message_about_a_group_becomes_one_with_what_waits(store: AlertStore, outbox: Outbox) -> None:
    put(store, notification("a"), notification("b", subject("n1"), reason="new", at=5.0))
    put(store, notification("b", subject("n1", Phase.RESOLVED), reason="resolved", at=9.0))
    (_, waiting) = queue(outbox).waiting
    assert waiting.notification.reason is NotificationReason.RESOLVED
    assert waiting.notification.at == 5.0
    assert [each.phase for each in waiting.notification.subjects] == [Phase.RESOLVED]


def test_a_summary_stands_for_itself(store: AlertStore, outbox: Outbox) -> None:
    daily = notification("digest", summary=Summary(since=1.0, until=2.0))
    put(store, daily)
    put(store, daily)
    assert groups(queue(outbox)) == ["digest", "digest"]


def test_a_parcel_keeps_its_id_and_content_and_holds_back_its_groups(store: AlertStore, outbox: Outbox) -> None:
    put(store, notification("a"), notification("b"), notification("c"))
    first, second, _ = places(queue(outbox))
    batch = outbox.claim("bot", [second, first], 10.0)
    assert [each.group for each in batch.notifications] == ["b", "a"]
    put(store, notification("a", reason="resolved"))
    now = queue(outbox)
    assert groups(now) == ["c"]
    assert now.open == (batch,)
    assert now.attempts == (10.0,)
    outbox.sent(batch, "ok", 11.0)
    assert groups(queue(outbox, 11.0)) == ["c", "a"]
    assert queue(outbox, 11.0).open == ()


def test_what_was_claimed_is_the_same_for_the_next_process(path: Path) -> None:
    with closing(AlertStore(str(path))) as store:
        put(store, notification("a"), notification("b"))
        batch = store.outbox.claim("bot", places(queue(store.outbox)), 10.0)
    with closing(AlertStore(str(path))) as store:
        store.outbox.begin(["bot"], 20.0)
        after = queue(store.outbox, 20.0)
    assert after.open == (batch,)
    assert after.open[0].interrupted
    assert after.attempts == (20.0,)  # it may have succeeded until then


def test_a_failure_is_waited_for_and_counted(store: AlertStore, outbox: Outbox) -> None:
    put(store, notification("a"))
    batch = outbox.claim("bot", places(queue(outbox)), 10.0)
    outbox.failed(batch, "down", 4.0, 2.0, 12.0)
    (again,) = queue(outbox, 12.0).open
    assert (again.attempts, again.failures, again.tried_at, again.next_at) == (1, 1, 12.0, 16.0)
    outbox.retry(again, 16.0)
    outbox.failed(again, "still down", 8.0, 4.0, 17.0)
    after = queue(outbox, 17.0)
    assert after.attempts == (12.0, 17.0)  # from the end of each attempt
    assert (after.open[0].failures, after.open[0].next_at) == (2, 25.0)
    assert (after.health.failures, after.health.failing_since, after.health.rest_until) == (2, 12.0, 21.0)
    assert after.health.error == "still down"
    assert outbox.unsent("bot") == 1


@pytest.mark.parametrize(("failures", "next_at"), [(1, 500.0), (3, 30.0)], ids=["an odd one", "an outage"])
def test_after_an_outage_what_failed_is_tried_at_once(
    store: AlertStore, outbox: Outbox, failures: int, next_at: float
) -> None:
    put(store, notification("a"), notification("b"))
    first, second = places(queue(outbox))
    failing, other = outbox.claim("bot", [first], 10.0), outbox.claim("bot", [second], 10.0)
    for _ in range(failures):
        outbox.failed(failing, "down", 488.0, 1.0, 12.0)
    outbox.sent(other, "ok", 30.0)
    assert [each.next_at for each in queue(outbox, 30.0).open] == [next_at]


def test_what_is_refused_for_good_is_kept_and_not_tried_again(store: AlertStore, outbox: Outbox) -> None:
    put(store, notification("a"))
    batch = outbox.claim("bot", places(queue(outbox)), 10.0)
    outbox.parked(batch, "bad key", 11.0)
    put(store, notification("a", reason="repeat"))
    after = queue(outbox, 12.0)
    assert (groups(after), after.open, after.health.parked) == (["a"], (), 1)
    assert [(each.state, each.word) for each in store.deliveries(10, 12.0)] == [
        ("waiting", None), ("parked", "bad key"),
    ]  # fmt: skip


def test_attempts_count_for_the_window_and_only_for_the_receiver(store: AlertStore, outbox: Outbox) -> None:
    for at in (10.0, 50.0, 90.0):
        put(store, notification(f"{at}"))
        outbox.sent(outbox.claim("bot", places(queue(outbox, at)), at), "ok", at + 1.0)
    assert queue(outbox, 100.0).attempts == (51.0, 91.0)
    assert outbox.queue("other", WINDOW, 100.0).attempts == ()


def test_a_clock_that_was_set_back_does_not_hold_up_a_receiver_until_its_old_time(
    store: AlertStore, outbox: Outbox
) -> None:
    put(store, notification("a"))
    outbox.sent(outbox.claim("bot", places(queue(outbox, 9000.0)), 9000.0), "ok", 9000.0)
    assert queue(outbox, 100.0).attempts == (100.0,)
    assert queue(outbox, 161.0).attempts == ()


def test_what_waits_for_a_receiver_that_is_gone_is_parked(store: AlertStore, outbox: Outbox) -> None:
    put(store, notification("a", receiver="gone"), notification("b", receiver="gone"), notification("c"))
    waiting = outbox.queue("gone", WINDOW, 10.0).waiting
    batch = outbox.claim("gone", [waiting[0].sequence], 10.0)
    outbox.failed(batch, "down", 1.0, 1.0, 11.0)
    outbox.begin(["bot"], 20.0)
    found = {each.group: (each.state, each.word) for each in store.deliveries(10, 20.0)}
    why = "this receiver is no longer configured"
    assert found == {"a": ("parked", why), "b": ("parked", why), "c": ("waiting", None)}
    assert [each.receiver for each in outbox.health()] == []


def test_what_another_version_wrote_and_nobody_understands_does_not_stop_the_rest(path: Path) -> None:
    with closing(AlertStore(str(path))) as store:
        put(store, notification("a"), notification("b"), notification("c"), notification("d"))
        store.outbox.claim("bot", places(queue(store.outbox))[:1], 10.0)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE outbox SET body = ? WHERE place <= 2", (b'{"reason": "unheard of"}',))
    with closing(AlertStore(str(path))) as store:
        store.outbox.begin(["bot"], 20.0)
        after = queue(store.outbox, 20.0)
    assert groups(after) == ["c", "d"]
    assert after.open == ()


def test_another_content_is_another_parcel(store: AlertStore, outbox: Outbox) -> None:
    put(store, notification("a"))
    first = outbox.claim("bot", places(queue(outbox)), 10.0)
    outbox.sent(first, "ok", 10.0)
    put(store, notification("a"))
    assert outbox.claim("bot", places(queue(outbox)), 11.0).id != first.id


def test_what_is_not_to_be_sent_yet_becomes_one_message_and_waits_for_its_time(
    store: AlertStore, outbox: Outbox
) -> None:
    put(
        store,
        notification("owner/li", subject("n1"), not_before=100.0),
        notification("owner/li", subject("n2"), not_before=100.0),
    )
    early = queue(outbox, 99.0)
    assert (early.waiting, early.later_at) == ((), 100.0)
    assert next_send(early, RateLimit(), len, 99.0) == NextSend(check_at=100.0)
    due = queue(outbox, 100.0)
    (waiting,) = due.waiting
    assert len(waiting.notification.subjects) == 2
    assert due.later_at is None


def test_what_is_urgent_does_not_wait_for_what_is_not(store: AlertStore, outbox: Outbox) -> None:
    put(store, notification("owner/li", not_before=100.0), notification("a"))
    assert groups(queue(outbox)) == ["a"]
    assert next_send(queue(outbox), RateLimit(), len, 10.0).new != ()


def test_merged_notices_keep_their_links(store: AlertStore, outbox: Outbox) -> None:
    for name in ("one", "two"):
        put(store, notification("owner/li", subject(name), answers=(AnswerLink(name=name, path=name),), page=name))
    (waiting,) = queue(outbox).waiting
    assert [each.name for each in waiting.notification.answers] == ["one", "two"]
    assert waiting.notification.page is None


def test_notes_are_found_by_their_beginning_and_deleted(store: AlertStore) -> None:
    store.send((), {"job/a": b"1", "job/b": b"2", "digest": b"3"})
    assert store.notes("job/") == {"job/a": b"1", "job/b": b"2"}
    store.send((), {"job/a": None, "job/c": None})
    assert store.notes("job/") == {"job/b": b"2"}
    assert store.note("digest") == b"3"
