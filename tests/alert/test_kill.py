"""kill -9 at 200 random moments while 500 alerts fire and resolve: nothing is lost, and nothing comes twice unseen."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.alert.delivery.sender_support import Arrival, Inbox
from tests.alert.killed import ALERTS, RECEIVERS, spans
from tests.support import wait_until

KILLS = 200
LENGTH = 36.0  # of the script, in seconds
LONGEST_LIFE = 0.34


class Nursery:
    """Starts one process after the other."""

    def __init__(self, *arguments: object) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.alert.killed", *map(str, arguments)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.child: int | None = None

    def begin(self, life: int, processor_time: float = 0.0) -> int:
        assert self._parent.stdin is not None
        self._parent.stdin.write(f"{life} {processor_time}\n")
        self.child = int(self._line())
        return self.child

    def ended(self) -> int:
        """Wait for the end of the process, and return how it ended: minus the number of a signal."""
        status = int(self._line())
        self.child = None
        return status

    def close(self) -> None:
        if self.child is not None:
            os.kill(self.child, signal.SIGKILL)
        self._parent.communicate(timeout=60)

    def _line(self) -> str:
        assert self._parent.stdout is not None
        return self._parent.stdout.readline()


@contextlib.contextmanager
def nursery(*arguments: object) -> Iterator[Nursery]:
    with contextlib.closing(Nursery(*arguments)) as open_nursery:
        yield open_nursery


def test_what_kill_9_interrupts_is_neither_lost_nor_repeated_unseen(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)

    def slowly(_: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        time.sleep(chance.random() * 0.004)
        return 200, {"errcode": 0, "errmsg": "ok"}

    path = tmp_path / "alerts.db"
    with Inbox(slowly).served() as inbox:
        began = time.time() + 0.5
        with nursery(path, inbox.port, began, LENGTH) as lives:
            ends = [one_life(lives, life, chance) for life in range(KILLS)]
            lives.begin(KILLS)
            wait_until(lambda: time.time() > began + LENGTH, LENGTH + 60, "the script is over")
            for receiver in RECEIVERS:
                with contextlib.suppress(pytest.fail.Exception):  # what is missing is said below
                    wait_until(lambda: not wrong(last_states(inbox.arrivals, receiver)), 30, "all is told")  # noqa: B023  # called within the round
    print(f"seed {seed}")
    assert ends == [-signal.SIGKILL] * KILLS
    assert [each.name for each in tmp_path.iterdir() if "damaged" in each.name] == []
    repeated = 0
    for receiver in RECEIVERS:
        arrivals = [each for each in inbox.arrivals if each.to == receiver]
        states = last_states(arrivals, receiver)
        assert wrong(states) == {}
        assert len(states) >= ALERTS * 0.95  # those that came and went between two lives are never told
        repeated += only_what_was_in_flight_is_repeated(arrivals)
        the_order_of_each_group_is_kept(arrivals)
    assert repeated > 0, "no kill met a message in flight: the test shows nothing"
    print(f"{len(inbox.arrivals)} messages, {repeated} of them repeated")


def one_life(lives: Nursery, life: int, chance: random.Random) -> int:
    """Live until killed: by the kernel after some processor time, or by us after some time on the clock."""
    if life % 2:
        lives.begin(life, processor_time=chance.uniform(0.001, LONGEST_LIFE / 2))
        return lives.ended()
    child = lives.begin(life)
    time.sleep(chance.uniform(0.0, LONGEST_LIFE))
    os.kill(child, signal.SIGKILL)
    return lives.ended()


def last_states(arrivals: list[Arrival], receiver: str) -> dict[str, str]:
    """Return what a reader of all messages takes each alert to be in the end."""
    states: dict[str, str] = {}
    for each in list(arrivals):
        if each.to == receiver:
            for notification in each.body["notifications"]:
                states.update(dict(notification["subjects"]))
    return states


def wrong(states: dict[str, str]) -> dict[str, str]:
    """Return what was told last of the alerts about which that is not how it is."""
    found = {}
    for number in range(ALERTS):
        stays = spans(number, LENGTH)[-1][1] == float("inf")
        told = states.get(f"n{number}", "never told")
        if told != "firing" if stays else told == "firing":
            found[f"n{number}"] = told
    return found


def only_what_was_in_flight_is_repeated(arrivals: list[Arrival]) -> int:
    """Fail unless each message that came again was the last of its life, and the same. Return how many came again."""
    last_of_life = {each.body["life"]: each for each in arrivals}
    by_id = defaultdict(list)
    for each in arrivals:
        by_id[each.id].append(each)
    for same in by_id.values():
        for earlier, later in itertools.pairwise(same):
            assert last_of_life[earlier.body["life"]] is earlier
            assert earlier.body["life"] < later.body["life"]
            assert earlier.body["notifications"] == later.body["notifications"]
    told = [each["id"] for same in by_id.values() for each in same[0].body["notifications"]]
    assert len(told) == len(set(told)), "one notification in two batches"
    return len(arrivals) - len(by_id)


def the_order_of_each_group_is_kept(arrivals: list[Arrival]) -> None:
    decided: dict[str, tuple[float, str]] = {}
    for each in arrivals:
        for notification in each.body["notifications"]:
            before = decided.get(notification["group"])
            this = notification["at"], notification["id"]
            assert before is None or before == this or before[0] < this[0]
            decided[notification["group"]] = this
