from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from monitor.detect.lib.growth import COARSE_SPAN_SECONDS, append_point
from monitor.detect.rules.disk_filling import RULE
from monitor.facts.findings import Finding
from tests.detect.builders_storage import (
    GIB,
    NOW,
    Continuous,
    Watch,
    agent,
    brief,
    cache,
    disk,
    image,
    nas,
    repeated,
    silent,
    spoken,
    text,
)

HOUR = 3600.0
INTERVAL_SECONDS = 150.0  # between two evaluations
Curve = Callable[[float], float]  # hours -> GiB used, of 1000


def follow(curve: Curve, hours: float, watch: Watch | None = None, start: float = 0.0) -> list[Finding]:
    """Findings at the end of a usage curve."""
    watch = watch or Watch(RULE)
    found: list[Finding] = []
    for look in range(round(hours * HOUR / INTERVAL_SECONDS) + 1):
        now = NOW + start * HOUR + look * INTERVAL_SECONDS
        found = watch.see(
            agent("n1", disk(used=curve(start + look * INTERVAL_SECONDS / HOUR), size=1000), at=now), now=now
        )
    return found


def ever(curve: Curve, hours: float) -> int:
    """Number of evaluations with a finding."""
    watch, count = Watch(RULE), 0
    for look in range(round(hours * HOUR / INTERVAL_SECONDS) + 1):
        now = NOW + look * INTERVAL_SECONDS
        count += len(
            watch.see(agent("n1", disk(used=curve(look * INTERVAL_SECONDS / HOUR), size=1000), at=now), now=now)
        )
    return count


def linear(start: float, per_hour: float) -> Curve:
    return lambda hours: start + per_hour * hours


def noisy(start: float, per_hour: float) -> Curve:
    shake = random.Random(7)
    return lambda hours: start + per_hour * hours + shake.uniform(-2, 2)


def jump(start: float, by: float, at: float, lasts: float = 0.1) -> Curve:
    """One large copy."""
    return lambda hours: start + by * min(1.0, max(0.0, (hours - at) / lasts))


def sawtooth(low: float, high: float, period: float) -> Curve:
    """Image pulls and the kubelet's garbage collection."""
    return lambda hours: low + (high - low) * ((hours / period) % 1.0)


@dataclass(frozen=True)
class Case:
    name: str
    curve: Curve
    hours: float
    expect: str | None


@pytest.mark.parametrize(
    "case",
    [
        Case("steady for a day", linear(500, 20), 7, "warning"),
        Case("not within a day", linear(500, 15), 7, None),
        Case("full in three hours", linear(500, 60), 5.5, "critical"),
        Case("fast, seen for an hour only", linear(500, 150), 1, "critical"),
        Case("fast, but seen for half an hour", linear(500, 150), 0.5, None),
        Case("slow, seen for an hour only", linear(500, 30), 1, None),
        Case("noise on a trend", noisy(500, 25), 7, "warning"),
        Case("a checkpoint an hour", lambda hours: 500 + 30 * int(hours), 7.5, "warning"),
        Case("it shrinks", linear(900, -20), 6, None),
        Case("it has stopped growing", lambda hours: min(700.0, 500 + 40 * hours), 8, None),
        Case("it stands still", linear(900, 0), 8, None),
    ],
    ids=lambda case: case.name,
)
def test_forecast(case: Case) -> None:
    found = follow(case.curve, case.hours)
    assert [finding.severity.value for finding in found] == ([case.expect] if case.expect else [])


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("a copy of six minutes, early", jump(400, 300, at=1)),
        (
            "a copy of six minutes, in the middle",
            jump(400, 300, at=4),
        ),  # which a median of all slopes does not withstand
        ("a copy of six minutes, late", jump(400, 300, at=7.8)),
        ("a copy of two hours that leaves room", jump(300, 200, at=2, lasts=2)),
        ("image cleanup, at kubelet's marks", sawtooth(800, 850, 2.0)),
    ],
)
def test_no_false_alarm_at_any_time(name: str, curve: Curve) -> None:
    assert ever(curve, 9) == 0


@pytest.mark.parametrize("hours", [0.5, 2.0, 4.0, 4.9])
def test_large_teeth_are_known_from_the_first_cleanup_on(hours: float) -> None:
    curve, watch = sawtooth(300, 900, 5.0), Watch(RULE)
    assert brief(follow(curve, 4.9, watch)) == [("critical", "other", False)]  # indistinguishable from a trend so far
    assert follow(curve, hours, watch, start=5.05) == []


def test_it_says_when_and_how_fast() -> None:
    found = follow(linear(500, 20), 6.1)[0]
    assert found.labels == {"node": "n1", "mount": "/"}
    assert spoken(found.headline).startswith("Disk / of n1 will be full in 18 h")
    assert "20 GiB an hour" in spoken(found.headline)
    assert "will be full" in text(found)
    assert "18 小时" in spoken(found.headline, "zh")
    assert "每小时增长 20 GiB" in spoken(found.headline, "zh")


def test_what_fills_it() -> None:
    watch = Watch(RULE)
    for look in range(14):
        now, used = NOW + look * 300, 500 + look * 15
        full = disk(used=used, size=1000, roles=("system", "runtime"))
        found = watch.see(agent("n1", full, at=now, images=(cache(image("a:1", 400), total=450),)), now=now)
    assert brief(found) == [("critical", "images", False)]
    assert "Image a:1: 400 GiB" in text(found[0])


def test_a_nas_is_forecast_once() -> None:
    watch = Watch(RULE)
    for look in range(14):
        now = NOW + look * 300
        found = watch.see(*(agent(f"n{i}", nas(500 + look * 15, 1000), at=now) for i in range(3)), now=now)
    assert [finding.labels for finding in found] == [{"mount": "/nas", "service": "nas:/export"}]


def test_held_while_the_node_is_silent_and_the_history_stays() -> None:
    watch = Watch(RULE)
    assert len(follow(linear(500, 70), 4, watch)) == 1
    now = NOW + 4.1 * HOUR
    assert [finding.held for finding in watch.see(silent(), now=now)] == [True]
    now = NOW + 4.2 * HOUR
    back = watch.see(agent("n1", disk(used=500 + 70 * 4.2, size=1000), at=now), now=now)
    assert brief(back) == [("critical", "other", False)]


def test_what_is_remembered_is_bounded() -> None:
    points: list[int] = []
    for minute in range(0, 48 * 60, 1):
        points = append_point(points, NOW + minute * 60, minute * GIB)
    assert len(points) <= 2 * 30
    assert points[-2] - points[0] > COARSE_SPAN_SECONDS - 2 * 1800
    watch = Watch(RULE)
    follow(linear(500, 20), 1, watch)
    watch.see(agent("n1", disk("/other"), at=NOW + 9 * HOUR), now=NOW + 9 * HOUR)
    assert list(watch.memory) == ["n1 /other /dev/sda1"]


def test_a_clock_that_was_set_back_begins_anew() -> None:
    points = append_point(append_point([], NOW, GIB), NOW - 9000, GIB)
    assert points == [int(NOW - 9000), 1024]


def test_a_disk_is_sampled_although_it_does_not_change() -> None:
    """Half an hour without growth ends the trend of a disk whose facts stay the same."""
    watch, now = Continuous(RULE), NOW
    for look in range(14):
        now = NOW + look * 300
        last = agent("n1", disk(used=500 + look * 15, size=1000), at=now)
        found = watch.see(last, now=now)
    assert brief(found) == [("critical", "other", False)]
    for _ in range(6):
        assert watch.next_at == now + 300
        now += 300
        found = watch.see(repeated(last, now), now=now)
    assert found == []


def test_the_headline_states_the_time_left_not_the_age() -> None:
    watch = Watch(RULE)
    follow(linear(500, 70), 4, watch)
    found = follow(linear(500, 70), 1, watch, start=4.0)[0]
    assert "will be full in 2 h 8 min" in spoken(found.headline)
