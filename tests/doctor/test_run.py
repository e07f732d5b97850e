from __future__ import annotations

import threading
import time

from monitor.base.threads import run_parallel
from monitor.doctor.context import Once, Request, Terminal, Visit
from monitor.doctor.model import ok
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


def test_what_several_need_is_made_once() -> None:
    made: list[int] = []

    def make() -> str:
        made.append(1)
        return "it"

    once = Once(make)
    outcomes = run_parallel([once.get] * 8, 5.0)
    assert ([outcome.value for outcome in outcomes], made) == (["it"] * 8, [1])
