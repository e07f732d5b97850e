"""kill -9 at 200 random moments while 500 alerts fire and resolve: nothing is lost, repetitions keep their id."""

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
LENGTH = 36.0  # seconds of the script
MAX_RUN_SECONDS = 0.34


class ProcessStarter:
    """Starts the process again and again."""

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

    def begin(self, run: int, processor_time: float = 0.0) -> int:
        assert self._parent.stdin is not None
        self._parent.stdin.write(f"{run} {processor_time}\n")
        self.child = int(self._line())
        return self.child

    def ended(self) -> int:
        """Wait for the process and return its status: minus the number of a signal."""
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
def starting(*arguments: object) -> Iterator[ProcessStarter]:
    with contextlib.closing(ProcessStarter(*arguments)) as starter:
        yield starter


def test_what_kill_9_interrupts_is_neither_lost_nor_repeated_unseen(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)

    def slowly(_: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        time.sleep(chance.random() * 0.004)
        return 200, {"errcode": 0, "errmsg": "ok"}

    path = tmp_path / "alerts.db"
    with Inbox(slowly).served() as inbox:
        began = time.time() + 0.5
        with starting(path, inbox.port, began, LENGTH) as processes:
            ends = [one_run(processes, run, chance) for run in range(KILLS)]
            processes.begin(KILLS)
            wait_until(lambda: time.time() > began + LENGTH, LENGTH + 60, "the script is over")
            for receiver in RECEIVERS:
                with contextlib.suppress(pytest.fail.Exception):  # the assertions below report what is missing
                    wait_until(lambda: not wrong(last_states(inbox.arrivals, receiver)), 30, "all is told")  # noqa: B023  # called within the round
    print(f"seed {seed}")
    assert ends == [-signal.SIGKILL] * KILLS
    assert [each.name for each in tmp_path.iterdir() if "damaged" in each.name] == []
    repeated = 0
    for receiver in RECEIVERS:
        arrivals = [each for each in inbox.arrivals if each.to == receiver]
        states = last_states(arrivals, receiver)
        assert wrong(states) == {}
        assert len(states) >= ALERTS * 0.95  # alerts that fired and resolved between two runs are never sent
        repeated += only_what_was_in_flight_is_repeated(arrivals)
        the_order_of_each_group_is_kept(arrivals)
    assert repeated > 0, "no kill met a message in flight: the test shows nothing"
    print(f"{len(inbox.arrivals)} messages, {repeated} of them repeated")


def one_run(processes: ProcessStarter, run: int, chance: random.Random) -> int:
    """Run until killed: by the kernel after some CPU time, or by the test after some wall time."""
    if run % 2:
        processes.begin(run, processor_time=chance.uniform(0.001, MAX_RUN_SECONDS / 2))
        return processes.ended()
    child = processes.begin(run)
    time.sleep(chance.uniform(0.0, MAX_RUN_SECONDS))
    os.kill(child, signal.SIGKILL)
    return processes.ended()


def last_states(arrivals: list[Arrival], receiver: str) -> dict[str, str]:
    """Last state of each alert according to the messages."""
    states: dict[str, str] = {}
    for each in list(arrivals):
        if each.to == receiver:
            for notification in each.body["notifications"]:
                states.update(dict(notification["subjects"]))
    return states


def wrong(states: dict[str, str]) -> dict[str, str]:
    """Alerts whose last sent state is wrong, with that state."""
    found = {}
    for number in range(ALERTS):
        stays = spans(number, LENGTH)[-1][1] == float("inf")
        told = states.get(f"n{number}", "never told")
        if told != "firing" if stays else told == "firing":
            found[f"n{number}"] = told
    return found


def only_what_was_in_flight_is_repeated(arrivals: list[Arrival]) -> int:
    """Number of repeated messages; each must be the last of its run, and unchanged."""
    last_of_run = {each.body["run"]: each for each in arrivals}
    by_id = defaultdict(list)
    for each in arrivals:
        by_id[each.id].append(each)
    for same in by_id.values():
        for earlier, later in itertools.pairwise(same):
            assert last_of_run[earlier.body["run"]] is earlier
            assert earlier.body["run"] < later.body["run"]
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
