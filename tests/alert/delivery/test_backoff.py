from __future__ import annotations

import pytest

from monitor.alert.delivery.backoff import (
    MAX_DELAY_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    ReceiverHealth,
    after_failure,
    after_parking,
    after_success,
    retry_delay,
)

FAILING = ReceiverHealth(
    receiver="bot", failures=4, failing_since=10.0, tried_at=90.0, rest_until=98.0, error="down", ok_at=5.0
)


@pytest.mark.parametrize(
    ("failures", "jitter", "after", "expect"),
    [
        (1, 0.0, None, 1.0),
        (2, 0.0, None, 2.0),
        (3, 0.0, None, 4.0),
        (3, 0.5, None, 3.0),
        (9, 0.0, None, 256.0),
        (10, 0.0, None, MAX_DELAY_SECONDS),
        (10_000, 0.0, None, MAX_DELAY_SECONDS),
        (10_000, 1.0, None, MAX_DELAY_SECONDS / 2),
        (1, 0.0, 30.0, 30.0),
        (1, 0.0, 0.2, 1.0),
        (10, 0.0, 30.0, MAX_DELAY_SECONDS),
        (1, 0.0, 1e9, MAX_RETRY_AFTER_SECONDS),
    ],
)
def test_delay(failures: int, jitter: float, after: float | None, expect: float) -> None:
    assert retry_delay(failures, jitter, after) == expect


@pytest.mark.parametrize(
    ("now", "expect"), [(89.0, False), (90.0, True), (97.9, True), (98.0, False)], ids=["clock set back", "", "", ""]
)
def test_resting(now: float, expect: bool) -> None:
    assert FAILING.resting(now) is expect
    assert not ReceiverHealth(receiver="bot").resting(now)


def test_failures_add_up_until_one_succeeds() -> None:
    health = after_failure(ReceiverHealth(receiver="bot", ok_at=1.0), "no route", 1.0, 100.0)
    health = after_failure(health, "timeout", 2.0, 101.0)
    assert health == ReceiverHealth(
        receiver="bot", failures=2, failing_since=100.0, tried_at=101.0, rest_until=103.0, error="timeout",
        ok_at=1.0,
    )  # fmt: skip
    well = after_success(health, 103.0)
    assert (well.failures, well.failing_since, well.ok_at, well.resting(102.0)) == (0, None, 103.0, False)


def test_a_refusal_is_an_answer_and_nobody_has_to_wait_for_it() -> None:
    health = after_parking(FAILING, "bad key", 200.0)
    assert (health.failures, health.failing_since, health.resting(95.0)) == (0, None, False)
    assert (health.parked, health.parked_at, health.error, health.ok_at) == (1, 200.0, "bad key", 5.0)
    assert after_parking(health, "bad key", 300.0).parked == 2
    well = after_success(health, 400.0)
    assert (well.parked, well.parked_at, well.error) == (0, 200.0, "bad key")
