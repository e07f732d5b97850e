"""Delivery statistics."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.alert.delivery import backoff
from monitor.alert.delivery.sender import Sender
from monitor.alert.delivery.stats import DeliveryStats
from monitor.alert.store import AlertStore
from tests.alert.delivery.sender_support import notification
from tests.alert.delivery.test_sender import Scripted, fails, put, sending
from tests.support import wait_until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AlertStore]:
    with contextlib.closing(AlertStore(str(tmp_path / "alerts.db"))) as opened:
        yield opened


def told(sender: Sender) -> dict[str, DeliveryStats]:
    return {each.receiver: each for each in sender.delivery_stats()}


def test_each_attempt_counts(store: AlertStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One receiver accepts at the third attempt, one never, and one is idle."""
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.05)
    bot, dead = Scripted(fails(retryable=True, times=2)), Scripted(fails(retryable=False), name="dead")
    made = time.time() - 60
    with sending(store, bot, dead, Scripted(name="idle")) as sender:
        put(store, sender, notification("a", at=made), notification("b", at=made, receiver="dead"))
        wait_until(lambda: told(sender)["bot"].outcomes["sent"] and told(sender)["dead"].parked, 30, "all was tried")
        wait_until(lambda: told(sender)["bot"].waiting == 0, 30, "that is written down")
        found = told(sender)
    assert found["bot"].outcomes == {"sent": 1, "failed": 2, "parked": 0}
    assert found["bot"].took is not None
    assert 60 <= found["bot"].took < 600
    assert found["bot"].failing_since is None
    assert found["dead"].outcomes == {"sent": 0, "failed": 0, "parked": 1}
    assert (found["dead"].waiting, found["dead"].parked, found["dead"].took) == (0, 1, None)
    assert found["idle"] == DeliveryStats(
        receiver="idle", waiting=0, parked=0, outcomes={"sent": 0, "failed": 0, "parked": 0}
    )  # fmt: skip


def test_a_receiver_that_fails_says_since_when_and_what_waits(store: AlertStore) -> None:
    with sending(store, Scripted(fails(retryable=True))) as sender:
        put(store, sender, notification("a"))
        wait_until(lambda: told(sender)["bot"].failing_since is not None, 30, "it has failed")
        found = told(sender)["bot"]
    assert (found.waiting, found.parked) == (1, 0)
    assert time.time() - 600 < (found.failing_since or 0.0) <= time.time()
