"""500 alerts in one minute to a bot that accepts 20 messages per minute. Here a minute lasts five seconds."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitor.alert.delivery.sender import Sender
from monitor.alert.dispatcher import Dispatcher
from monitor.alert.lifecycle import AlertTimings
from monitor.alert.receivers.base import RateLimit
from monitor.alert.routes import NotifyPolicy, Route
from monitor.alert.store import AlertStore
from tests.alert.delivery.sender_support import Arrival, HttpReceiver, Inbox, finding
from tests.support import wait_until

MINUTE = 5.0
ALERTS = 500
A_MINUTE = 20
HOLDS = 30  # lines of a digest that fit into 4096 bytes
SOON = 4.0  # seconds in which a decided notification is on its way if nothing prevents it


class LimitedBot:
    """Refuses more than 20 messages in any minute, counting refused ones too, like WeCom."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, _: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        now = time.time()
        self.times.append(now)
        recent = sum(at > now - MINUTE for at in self.times)
        if recent > A_MINUTE:
            return 200, {"errcode": 45009, "errmsg": "api freq out of limit"}
        return 200, {"errcode": 0, "errmsg": "ok"}


def over_a_minute(_: int, chance: random.Random) -> float:
    return chance.uniform(0.0, MINUTE)


def all_at_once(_: int, chance: random.Random) -> float:
    return 0.0


@pytest.mark.parametrize(("when", "criticals"), [(over_a_minute, 40), (all_at_once, 100)])
def test_a_storm_of_500_alerts(tmp_path: Path, when: Callable[[int, random.Random], float], criticals: int) -> None:
    chance = random.Random(5)
    script = sorted((when(number, chance), number) for number in range(ALERTS))
    critical = {f"n{number}" for number in chance.sample(range(ALERTS), criticals)}
    bot = LimitedBot()
    with Inbox(bot).served() as inbox:
        receiver = HttpReceiver(
            "bot", inbox.port, pace=RateLimit(count=A_MINUTE, window=MINUTE), max_notifications=HOLDS
        )
        policy = NotifyPolicy(routes=(Route(receivers=("bot",), group_wait=0.0),))
        store = AlertStore(str(tmp_path / "alerts.db"))
        dispatcher = Dispatcher(store, Sender(store, [receiver]), lambda: policy, AlertTimings(), ("alertname", "node"))
        dispatcher.start()
        try:
            began, passed = time.time(), -1.0
            while passed < script[-1][0]:
                passed = time.time() - began
                there = [f"n{number}" for at, number in script if at <= passed]
                dispatcher.update(
                    finding(node, severity="critical" if node in critical else "warning") for node in there
                )
                time.sleep(0.05)
            wait_until(lambda: len(told(inbox)) == ALERTS, 120, "all are sent")
            took = time.time() - began
        finally:
            dispatcher.stop()
            store.close()
    assert [each.errcode for each in inbox.arrivals if each.errcode] == []
    assert max(sum(at <= other < at + MINUTE for other in bot.times) for at in bot.times) <= A_MINUTE
    assert no_critical_waited_while_others_were_sent(inbox.arrivals)
    print(f"{len(inbox.arrivals)} messages in {took / MINUTE:.1f} minutes", lateness(inbox.arrivals))


def told(inbox: Inbox) -> set[str]:
    return {
        node
        for each in inbox.taken()
        for notification in each.body["notifications"]
        for node, _ in notification["subjects"]
    }


def no_critical_waited_while_others_were_sent(arrivals: list[Arrival]) -> bool:
    waits = [
        (notification["at"] + SOON, each.at)
        for each in arrivals
        for notification in each.body["notifications"]
        if notification["severity"] == "critical"
    ]
    others = [each.at for each in arrivals if each.body["notifications"][0]["severity"] != "critical"]
    return not any(since < at < until for at in others for since, until in waits)


def lateness(arrivals: list[Arrival]) -> dict[str, float]:
    """Maximum lateness by severity, in minutes."""
    latest: dict[str, float] = {}
    for each in arrivals:
        for notification in each.body["notifications"]:
            late = (each.at - notification["at"]) / MINUTE
            latest[notification["severity"]] = round(max(late, latest.get(notification["severity"], 0.0)), 2)
    return latest
