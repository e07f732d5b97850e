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


def parcel(own: str, **more: Any) -> OpenBatch:
    given: dict[str, Any] = {"attempts": 1, "failures": 1, "tried_at": 990.0, "next_at": 995.0}
    return OpenBatch(
        id=own, receiver="bot", notifications=(notification(own),), **(given | more)
    )  # fmt: skip


def one(notifications: Sequence[Notification]) -> int:
    return 1


FRESH = (QueuedNotification(7, notification("fresh")),)
DOWN = ReceiverHealth(receiver="bot", failures=3, failing_since=900.0, tried_at=990.0, rest_until=999.0)
RESTING = ReceiverHealth(receiver="bot", failures=3, failing_since=900.0, tried_at=990.0, rest_until=1010.0)
LATER: dict[str, Any] = {"next_at": 1100.0}
INTERRUPTED: dict[str, Any] = {"attempts": 2, "failures": 1, "next_at": 1100.0}


@pytest.mark.parametrize(
    ("name", "waiting", "parcels", "health", "attempts", "expect"),
    [
        ("nothing to do", (), (), None, (), None),
        ("something fresh", FRESH, (), None, (), "fresh"),
        ("the receiver is left alone", FRESH, (parcel("a"),), RESTING, (), 1010.0),
        ("also for what was interrupted", (), (parcel("a", **INTERRUPTED),), RESTING, (), 1010.0),
        ("what was interrupted goes first", FRESH, (parcel("a"), parcel("b", **INTERRUPTED)), None, (), "b"),
        ("what failed before, when it is due", FRESH, (parcel("a"),), None, (), "a"),
        ("and not before", FRESH, (parcel("a", **LATER),), None, (), "fresh"),
        ("nor when there is nothing else", (), (parcel("a", **LATER),), None, (), 1100.0),
        ("in turn", (), (parcel("a"), parcel("b", tried_at=980.0)), None, (), "b"),
        ("after a failure something else is tried", FRESH, (parcel("a"), parcel("b")), DOWN, (), "fresh"),
        ("but for what was interrupted", FRESH, (parcel("a"), parcel("b", **INTERRUPTED)), DOWN, (), "b"),
        ("the same again if there is nothing else", (), (parcel("a"),), DOWN, (), "a"),
        ("while it is down, no more than three are tried", FRESH, (*map(parcel, "abc"),), DOWN, (), "a"),
        ("and then only in their turn", FRESH, tuple(parcel(own, **LATER) for own in "abc"), DOWN, (), 1100.0),
        (
            "three that it does not like do not stop the others",
            FRESH,
            tuple(parcel(own, **LATER) for own in "abc"),
            ReceiverHealth(receiver="bot", ok_at=991.0),
            (),
            "fresh",
        ),
        ("the limit holds for what is tried again", (), (parcel("a"),), None, (999.0,) * 20, 1059.0),
        ("the clock was set back", (), (parcel("a", tried_at=5000.0, next_at=5100.0),), None, (), "a"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_next_turn(
    name: str,
    waiting: tuple[QueuedNotification, ...],
    parcels: tuple[OpenBatch, ...],
    health: ReceiverHealth | None,
    attempts: tuple[float, ...],
    expect: str | float | None,
) -> None:
    queue = ReceiverQueue(
        waiting=waiting, open=parcels, attempts=attempts, health=health or ReceiverHealth(receiver="bot")
    )
    turn = next_send(queue, RateLimit(count=20), one, NOW)
    chosen = turn.again.id if turn.again else "fresh" if turn.fresh else turn.look_at
    assert chosen == expect
