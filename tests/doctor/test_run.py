from __future__ import annotations

import subprocess
import sys
import threading

from monitor.base.threads import run_parallel
from monitor.doctor.context import CachedValue, DoctorContext, DoctorRequest, Terminal
from monitor.doctor.model import Check, ok
from monitor.doctor.run import run

SECRET = "key=0123abcd"
# Four checks decode the same new types at the same time.
RACE = """
import sys, threading, msgspec
from typing import Optional
from monitor.doctor.context import DoctorContext, DoctorRequest, Terminal
from monitor.doctor.model import Check, ok
from monitor.doctor.run import run
sys.setswitchinterval(1e-6)
class Inner(msgspec.Struct):
    a: int = 0
fields = [(f"f{i}", Optional[Inner], None) for i in range(8)]
kinds = [msgspec.defstruct(f"Kind{n}", fields, module=__name__) for n in range(300)]
gate = threading.Barrier(4)
def decode():
    for kind in kinds:
        gate.wait()
        msgspec.json.decode(b'{"f0": {"a": 1}, "f7": {"a": 2}}', type=kind)
checks = [Check(f"a.{n}", lambda _: decode(), lambda _: (ok("done"),), timeout_seconds=60.0) for n in range(4)]
results = run(checks, DoctorContext(DoctorRequest(None, None, (), Terminal("en", "utf-8"))))
print(*(verdict.key for result in results for verdict in result.verdicts))
"""


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


def test_checks_may_use_the_same_types_at_the_same_time() -> None:
    """In a process of its own, because the failure is a crash."""
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done done done done\n", "")
