from __future__ import annotations

import threading

from monitor.base.threads import run_parallel
from monitor.doctor.context import CachedValue, DoctorContext, DoctorRequest, Terminal
from monitor.doctor.model import Check, ok
from monitor.doctor.run import run

SECRET = "key=0123abcd"


def context() -> DoctorContext:
    return DoctorContext(DoctorRequest(None, None, (), Terminal("en", "utf-8")))


def test_one_that_hangs_or_breaks_costs_the_others_nothing() -> None:
    release = threading.Event()

    def breaks(_context: DoctorContext) -> None:
        raise RuntimeError(SECRET)

    checks = (
        Check("a.hangs", lambda _: release.wait(120), lambda _: (ok("done"),), timeout_seconds=0.2),
        Check("a.breaks", breaks, lambda _: (ok("done"),)),
        Check("a.needs", lambda context: context.config, lambda _: (ok("done"),)),
        Check("a.works", lambda _: 1, lambda _: (ok("done"),)),
    )
    results = run(checks, context())
    release.set()
    assert [[verdict.key for verdict in result.verdicts] for result in results] == [
        ["late"], ["broken"], ["no-config"], ["done"],
    ]  # fmt: skip
    assert SECRET not in str(results)  # the message of an unexpected error may contain one


def test_what_several_need_is_made_once() -> None:
    calls: list[int] = []

    def read() -> str:
        calls.append(1)
        return "value"

    outcomes = run_parallel([CachedValue(read).get] * 8, 30.0)
    assert ([outcome.value for outcome in outcomes], calls) == (["value"] * 8, [1])
