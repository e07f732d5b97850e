"""The process that test_kill kills: store, dispatcher and sender, fed with the findings of a script.

It is forked from a process that has imported everything and reads from its standard input the number of the run and the
seconds of CPU time after which the kernel kills it (0: never).
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

from monitor.alert.delivery.sender import Sender
from monitor.alert.dispatcher import Dispatcher
from monitor.alert.lifecycle import AlertTiming, AlertTimings
from monitor.alert.routes import NotifyPolicy, Route
from monitor.alert.store import AlertStore
from monitor.facts.findings import Finding
from tests.alert.delivery.sender_support import HttpReceiver, finding

ALERTS = 500
RECEIVERS = ("a", "b")
CLOCK_PROCESS_CPUTIME_ID = 2
SIGKILL = 9


def spans(number: int, length: float) -> tuple[tuple[float, float], ...]:
    """Periods in which an alert of the script is present: two, and every third alert stays after the second start."""
    begin = (number * 7919 % ALERTS) / ALERTS * length * 0.5
    return (
        (begin, begin + length * 0.1),
        (begin + length * 0.3, begin + length * 0.45 if number % 3 else float("inf")),
    )


def findings_at(passed: float, length: float) -> tuple[Finding, ...]:
    """Findings `passed` seconds after the start of the script, in fifty groups."""
    return tuple(
        finding(
            f"n{number}",
            rule=f"rule-{number % 10}",
            cause=f"cause-{number // 10 % 5}",
            severity="critical" if number % 5 == 0 and passed > length * 0.4 else "warning",
        )
        for number in range(ALERTS)
        if any(begin <= passed < end for begin, end in spans(number, length))
    )


def run_until_killed(path: str, port: int, began: float, length: float, run: int) -> None:
    """Run until killed."""
    receivers = [HttpReceiver(name, port, extra={"run": run}) for name in RECEIVERS]
    policy = NotifyPolicy(routes=(Route(receivers=RECEIVERS, group_wait=0.02, group_interval=0.1, repeat=1e6),))
    store = AlertStore(path)
    sender = Sender(store, receivers)
    timing = AlertTiming(keep=0.05, flap_count=1000)
    dispatcher = Dispatcher(store, sender, lambda: policy, AlertTimings(default=timing))
    dispatcher.start()
    while True:
        dispatcher.update(findings_at(time.time() - began, length))
        time.sleep(0.01)


def kill_after(processor_time: float) -> None:
    """Let the kernel send SIGKILL after some CPU time, when this process is certainly busy."""

    class SigEvent(ctypes.Structure):
        _fields_ = (
            ("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("pad", ctypes.c_char * 48),
        )  # fmt: skip

    class Spec(ctypes.Structure):
        _fields_ = (("interval", ctypes.c_long * 2), ("value", ctypes.c_long * 2))

    libc = ctypes.CDLL(None, use_errno=True)
    timer = ctypes.c_void_p()
    seconds, rest = divmod(int(processor_time * 1e9), 10**9)
    spec = Spec(value=(ctypes.c_long * 2)(seconds, rest))
    if libc.timer_create(CLOCK_PROCESS_CPUTIME_ID, ctypes.byref(SigEvent(signal=SIGKILL)), ctypes.byref(timer)):
        raise OSError(ctypes.get_errno(), "timer_create")
    if libc.timer_settime(timer, 0, ctypes.byref(spec), None):
        raise OSError(ctypes.get_errno(), "timer_settime")


def main() -> None:
    path, port, began, length = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    for line in sys.stdin:
        run, processor_time = line.split()
        child = os.fork()
        if child == 0:
            os.close(0)
            if float(processor_time):
                kill_after(float(processor_time))
            run_until_killed(path, port, began, length, int(run))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
