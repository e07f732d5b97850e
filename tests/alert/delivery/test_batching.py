from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.alert.delivery.batching import QueuedNotification, SendPlan, allowed_at, may_merge, merge, plan_batch
from monitor.alert.model import Notification, NotificationReason, Phase, Summary
from monitor.alert.receivers.base import RateLimit
from monitor.facts.findings import Severity
from tests.alert.delivery.sender_support import finding, notification, subject

WECOM = RateLimit(count=20, window=60.0)
FREE = RateLimit()
NOW = 1000.0


def waiting(*severities: str) -> list[QueuedNotification]:
    return [
        QueuedNotification(place, notification(f"g{place}", severity=each, id=f"{place}"))
        for place, each in enumerate(severities)
    ]


def sent(count: int, ago: float = 10.0) -> list[float]:
    return [NOW - ago] * count


def ten_in_one(notifications: Sequence[Notification]) -> int:
    return min(10, len(notifications))


def planned(severities: Sequence[str], attempts: Sequence[float], pace: RateLimit) -> tuple[list[int], float | None]:
    """Sequence numbers of the planned batch, and when to check again."""
    plan = plan_batch(waiting(*severities), attempts, pace, ten_in_one, NOW)
    return [each.sequence for each in plan.batch], plan.check_at


W, C, I = "warning", "critical", "info"  # noqa: E741  # a table of severities


@pytest.mark.parametrize(
    ("name", "severities", "attempts", "pace", "together", "check_at"),
    [
        ("nothing waits", [], [], WECOM, [], None),
        ("room: one by one", [W, W, W], [], WECOM, [0], None),
        ("no limit: one by one, however many", [W] * 500, sent(500), FREE, [0], None),
        ("the worst first, then the oldest", [I, W, C, C], [], WECOM, [2], None),
        ("no limit: the worst first", [I, W, C], [], FREE, [2], None),
        ("window full: nothing at all", [C], sent(20), WECOM, [], 1050.0),
        ("the oldest leaves the window first", [C], [950.0, *sent(19)], WECOM, [], 1010.0),
        ("what left the window does not count", [C], [940.0] * 20, WECOM, [0], None),
        ("the last quarter is for the critical", [W], sent(15), WECOM, [], 1050.0),
        ("the critical has it", [W, C], sent(15), WECOM, [1], None),
        ("as many as fit go one by one", [W] * 15, [], WECOM, [0], None),
        ("more than fit are merged, as many as it holds", [W] * 16, [], WECOM, list(range(10)), None),
        ("a digest has the worst at the front", [I, *[W] * 15], [], WECOM, list(range(1, 11)), None),
        ("a full digest goes at once, though little is left", [W] * 16, sent(14), WECOM, list(range(10)), None),
        ("little left: one or two wait for their turn", [W, W], sent(13), WECOM, [], 990.0 + 60.0 / 3),
        ("and go together when it comes", [W, W], sent(13, 25.0), WECOM, [0, 1], None),
        ("20 criticals: one by one at first", [C] * 20, [], WECOM, [0], None),
        ("the last of them together: some room stays in hand", [C] * 3, sent(17), WECOM, [0, 1, 2], None),
        ("criticals: one by one while the rest fits", [C] * 60, sent(11), WECOM, [0], None),
        ("criticals: merged when it would not", [C] * 60, sent(12), WECOM, list(range(10)), None),
        ("the last two slots are not for one critical each", [C], sent(18), WECOM, [], 990.0 + 60.0 / 3),
        ("but for it and what comes soon after", [C, C], sent(18, 25.0), WECOM, [0, 1], None),
        ("a gap", [C], [NOW - 0.25], RateLimit(gap=1.0), [], NOW + 0.75),
        ("a gap that is over", [C], [NOW - 1.25], RateLimit(gap=1.0), [0], None),
        ("a gap limits a window too: 45 of 60 go one by one", [W] * 45, [], RateLimit(gap=1.0), [0], None),
        ("and more are merged", [W] * 46, [], RateLimit(gap=1.0), list(range(10)), None),
        ("one a minute", [W], [], RateLimit(count=1), [0], None),
        ("one a minute, and more wait", [W, C], [], RateLimit(count=1), [1], None),
        ("sent at a time that is still to come: the clock was set back", [C], [NOW + 500] * 20, WECOM, [], NOW + 60),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_plan_batch(
    name: str,
    severities: list[str],
    attempts: list[float],
    pace: RateLimit,
    together: list[int],
    check_at: float | None,
) -> None:
    assert planned(severities, attempts, pace) == (together, check_at)


def test_a_receiver_that_says_it_holds_nothing_gets_one() -> None:
    plan = plan_batch(waiting(*["warning"] * 100), [], WECOM, lambda _: 0, NOW)
    assert [each.sequence for each in plan.batch] == [0]


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 25),
    gap=st.sampled_from([0.0, 0.5]),
    arrivals=st.lists(
        st.tuples(st.floats(0, 90), st.sampled_from(["critical", "warning", "info"])), min_size=1, max_size=150
    ),
    capacity=st.integers(2, 30),
    latency=st.floats(0, 2),
)
def test_whatever_comes_the_limit_is_kept_and_nothing_is_left(
    count: int, gap: float, arrivals: list[tuple[float, str]], capacity: int, latency: float
) -> None:
    """Simulated sender: the receiver counts an attempt at any time during it, the sender from its end."""
    pace, now = RateLimit(count=count, window=60.0, gap=gap), 0.0
    script = sorted((at, severity, place) for place, (at, severity) in enumerate(arrivals))
    left = {
        place: QueuedNotification(place, notification(f"g{place}", severity=severity)) for _, severity, place in script
    }
    begun: list[float] = []
    ended: list[float] = []
    while left:
        there = [left[place] for at, _, place in script if at <= now and place in left]
        plan = plan_batch(there, ended, pace, lambda each: min(capacity, len(each)), now)
        if plan.batch:
            worst = min(each.notification.severity for each in plan.batch)  # "critical" < "info" < "warning"
            assert worst == "critical" or not any(each.critical for each in there)
            begun.append(now)
            now += latency
            ended.append(now)
            for each in plan.batch:
                del left[each.sequence]
        else:
            coming = min((at for at, _, _ in script if at > now), default=math.inf)
            soonest = min(coming, plan.check_at if plan.check_at is not None else math.inf)
            assert soonest > now or plan.check_at is not None
            now = max(soonest, now + 0.01)
        assert now < 90 + 60.0 * (len(arrivals) / count + 3)
    for number, at in enumerate(begun[count:]):
        assert at - ended[number] >= 60.0 - 1e-6


def test_allowed_at_once_when_nothing_was_sent() -> None:
    assert allowed_at(WECOM, [], NOW) <= NOW


NEW = notification("g", subject("n1"), subject("n2"), reason="new", at=10.0, id="1", users=("li",))


@pytest.mark.parametrize(
    ("name", "earlier", "later", "reason", "phases"),
    [
        (
            "what came and went is told once, as over",
            NEW,
            notification("g", subject("n1", Phase.RESOLVED), subject("n2", Phase.RESOLVED), reason="resolved"),
            NotificationReason.RESOLVED,
            {"n1": "resolved", "n2": "resolved"},
        ),
        (
            "some are over: still news",
            NEW,
            notification("g", subject("n1", Phase.RESOLVED), subject("n2"), reason="resolved"),
            NotificationReason.NEW,
            {"n1": "resolved", "n2": "firing"},
        ),
        (
            "what was over before the last message is not forgotten",
            notification("g", subject("n1", Phase.RESOLVED), subject("n2"), reason="resolved"),
            notification("g", subject("n2"), subject("n3"), reason="more-subjects"),
            NotificationReason.MORE,
            {"n1": "resolved", "n2": "firing", "n3": "firing"},
        ),
        (
            "over and back",
            notification("g", subject("n1", Phase.RESOLVED), reason="resolved"),
            notification("g", subject("n1"), reason="new"),
            NotificationReason.NEW,
            {"n1": "firing"},
        ),
        (
            "worse, and still",
            notification("g", subject("n1"), reason="worse"),
            notification("g", subject("n1", fresh=False), reason="repeat"),
            NotificationReason.WORSE,
            {"n1": "firing"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_merge(
    name: str, earlier: Notification, later: Notification, reason: NotificationReason, phases: dict[str, str]
) -> None:
    merged = merge(earlier, later)
    assert merged.reason is reason
    assert {each.fingerprint: each.phase for each in merged.subjects} == phases
    assert merged.id == later.id
    assert merged.at == min(earlier.at, later.at)


def test_merged_is_as_late_as_bad_and_as_much_about_somebody_as_the_first() -> None:
    later = notification("g", subject("n1", Phase.RESOLVED), reason="resolved", at=50.0, users=("zhang",))
    merged = merge(notification("g", subject("n1"), severity="critical", at=10.0, users=("li",)), later)
    assert (merged.at, merged.severity, merged.users) == (10.0, Severity.CRITICAL, ("li", "zhang"))


def test_merged_has_the_fresh_first_then_the_worst() -> None:
    bad = finding("n3", severity="critical")
    earlier = notification("g", subject("n1", fresh=True), subject("n2", fresh=False))
    later = notification("g", subject("n1", fresh=False), subject("n2", fresh=False), subject("n3", finding=bad))
    assert [(each.fingerprint, each.fresh) for each in merge(earlier, later).subjects] == [
        ("n3", True), ("n1", True), ("n2", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("earlier", "later", "expect"),
    [
        (notification("g"), notification("g"), True),
        (notification("g"), notification("h"), False),
        (notification("g"), notification("g", receiver="other"), False),
        (notification("g", sample=True), notification("g"), False),
        (notification("g"), notification("g", summary=Summary(since=1.0, until=2.0)), False),
    ],
    ids=["same group", "other group", "other receiver", "a sample", "a summary"],
)
def test_may_merge(earlier: Notification, later: Notification, expect: bool) -> None:
    assert may_merge(earlier, later) is expect


def test_a_plan_for_nothing_is_to_wait_for_news() -> None:
    assert plan_batch([], sent(20), WECOM, ten_in_one, NOW) == SendPlan()
