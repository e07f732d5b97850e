from __future__ import annotations

import threading
import time

from monitor.doctor.context import Request, Terminal, Visit
from monitor.doctor.model import ok
from monitor.doctor.parallel import Once, side_by_side
from monitor.doctor.run import Check, run

SECRET = "key=0123abcd"


def visit() -> Visit:
    return Visit(Request(None, None, (), Terminal("en", "utf-8")))


def test_one_that_hangs_or_breaks_costs_the_others_nothing() -> None:
    release = threading.Event()

    def breaks(_visit: Visit) -> None:
        raise RuntimeError(SECRET)

    checks = (
        Check("a.hangs", lambda _: release.wait(30), lambda _: (ok("done"),), limit=0.2),
        Check("a.breaks", breaks, lambda _: (ok("done"),)),
        Check("a.needs", lambda visit: visit.config, lambda _: (ok("done"),)),
        Check("a.works", lambda _: 1, lambda _: (ok("done"),)),
    )
    began = time.monotonic()
    results = run(checks, visit())
    assert time.monotonic() - began < 5
    release.set()
    assert [[verdict.key for verdict in result.verdicts] for result in results] == [
        ["late"], ["broken"], ["no-config"], ["done"],
    ]  # fmt: skip
    assert SECRET not in str(results)  # what an unexpected error says may be anything


def test_outcomes_are_in_order_and_the_late_ones_are_known() -> None:
    release = threading.Event()
    outcomes = side_by_side([lambda: 1, lambda: int("x"), lambda: release.wait(30) or 3], 0.2)
    release.set()
    assert [outcome.late for outcome in outcomes] == [False, False, True]
    assert (outcomes[0].value, type(outcomes[1].error)) == (1, ValueError)
    assert side_by_side([], 1.0) == []


def test_what_several_need_is_made_once() -> None:
    made: list[int] = []

    def make() -> str:
        made.append(1)
        return "it"

    once = Once(make)
    outcomes = side_by_side([once.get] * 8, 5.0)
    assert ([outcome.value for outcome in outcomes], made) == (["it"] * 8, [1])
