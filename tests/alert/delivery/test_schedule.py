from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from monitor.alert.delivery.backoff import ReceiverHealth
from monitor.alert.delivery.batching import QueuedNotification
from monitor.alert.delivery.schedule import OpenBatch, ReceiverQueue, next_send
from monitor.alert.model import Notification
from monitor.alert.receivers.base import RateLimit
from tests.alert.delivery.sender_support import notification

NOW = 1000.0


def batch(batch_id: str, **more: Any) -> OpenBatch:
    given: dict[str, Any] = {"attempts": 1, "failures": 1, "tried_at": 990.0, "next_at": 995.0}
    return OpenBatch(
        id=batch_id, receiver="bot", notifications=(notification(batch_id),), **(given | more)
    )  # fmt: skip


def one(notifications: Sequence[Notification]) -> int:
    return 1


FRESH = (QueuedNotification(7, notification("fresh")),)
DOWN = ReceiverHealth(receiver="bot", failures=3, failing_since=900.0, tried_at=990.0, rest_until=999.0)
RESTING = ReceiverHealth(receiver="bot", failures=3, failing_since=900.0, tried_at=990.0, rest_until=1010.0)
LATER: dict[str, Any] = {"next_at": 1100.0}
INTERRUPTED: dict[str, Any] = {"attempts": 2, "failures": 1, "next_at": 1100.0}


@pytest.mark.parametrize(
    ("name", "waiting", "batches", "health", "attempts", "expect"),
    [
        ("nothing to do", (), (), None, (), None),
        ("something fresh", FRESH, (), None, (), "fresh"),
        ("the receiver is left alone", FRESH, (batch("a"),), RESTING, (), 1010.0),
        ("also for what was interrupted", (), (batch("a", **INTERRUPTED),), RESTING, (), 1010.0),
        ("what was interrupted goes first", FRESH, (batch("a"), batch("b", **INTERRUPTED)), None, (), "b"),
        ("what failed before, when it is due", FRESH, (batch("a"),), None, (), "a"),
        ("and not before", FRESH, (batch("a", **LATER),), None, (), "fresh"),
        ("nor when there is nothing else", (), (batch("a", **LATER),), None, (), 1100.0),
        ("in turn", (), (batch("a"), batch("b", tried_at=980.0)), None, (), "b"),
        ("after a failure something else is tried", FRESH, (batch("a"), batch("b")), DOWN, (), "fresh"),
        ("but for what was interrupted", FRESH, (batch("a"), batch("b", **INTERRUPTED)), DOWN, (), "b"),
        ("the same again if there is nothing else", (), (batch("a"),), DOWN, (), "a"),
        ("while it is down, no more than three are tried", FRESH, (*map(batch, "abc"),), DOWN, (), "a"),
        ("and then only in their turn", FRESH, tuple(batch(batch_id, **LATER) for batch_id in "abc"), DOWN, (), 1100.0),
        (
            "three that it does not like do not stop the others",
            FRESH,
            tuple(batch(batch_id, **LATER) for batch_id in "abc"),
            ReceiverHealth(receiver="bot", ok_at=991.0),
            (),
            "fresh",
        ),
        ("the limit holds for what is tried again", (), (batch("a"),), None, (999.0,) * 20, 1059.0),
        ("the clock was set back", (), (batch("a", tried_at=5000.0, next_at=5100.0),), None, (), "a"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_next_turn(
    name: str,
    waiting: tuple[QueuedNotification, ...],
    batches: tuple[OpenBatch, ...],
    health: ReceiverHealth | None,
    attempts: tuple[float, ...],
    expect: str | float | None,
) -> None:
    queue = ReceiverQueue(
        waiting=waiting, open=batches, attempts=attempts, health=health or ReceiverHealth(receiver="bot")
    )
    following = next_send(queue, RateLimit(count=20), one, NOW)
    chosen = following.retry.id if following.retry else "fresh" if following.new else following.check_at
    assert chosen == expect
