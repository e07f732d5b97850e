"""The clock of this machine, and its offsets from the API server and the agents."""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass

from monitor.doctor.checks import agents, kubernetes
from monitor.doctor.context import DoctorContext, NoConfigError
from monitor.doctor.model import CLUSTER_TIMEOUT_SECONDS, Check, Verdicts, joined, not_checked, ok, problem, warning

WARNING_SECONDS = 3.0  # HTTP dates have no fractions, and a reply takes time
PROBLEM_SECONDS = 60.0
TIMESYNC = "/run/systemd/timesync/synchronized"
_TIMEX_BYTES = 512  # more than any kernel's struct timex
_STATUS = struct.Struct("@5li")  # modes (padded), offset, freq, maxerror, esterror, status
_STA_UNSYNC_CODE = 0x40


@dataclass(frozen=True)
class ClockFacts:
    """Whether our clock is synchronised, None if unknown, and how far the other clocks are ahead of ours."""

    synchronised: bool | None
    api: float | None = None
    agents: tuple[tuple[str, float], ...] = ()


def judge(facts: ClockFacts) -> Verdicts:
    """Clocks that are wrong."""
    verdicts = []
    if facts.synchronised is False:
        verdicts.append(warning("clock.not-synchronised"))
    if facts.api is not None and (seconds := abs(facts.api)) > WARNING_SECONDS:
        verdict = problem if seconds > PROBLEM_SECONDS else warning
        verdicts.append(verdict("clock.api", seconds=round(seconds, 1)))
    wrong = [(node, abs(offset)) for node, offset in facts.agents if abs(offset) > WARNING_SECONDS]
    if wrong:
        seconds = max(offset for _, offset in wrong)
        names = joined([node for node, _ in wrong])
        verdict = problem if seconds > PROBLEM_SECONDS else warning
        verdicts.append(verdict("clock.agents", count=len(wrong), names=names, seconds=round(seconds, 1)))
    if verdicts:
        return tuple(verdicts)
    known = facts.synchronised is not None or facts.api is not None or facts.agents
    return (ok("clock.ok") if known else not_checked("clock.unknown"),)


def read(context: DoctorContext) -> ClockFacts:
    """Ask the kernel whether its clock is synchronised, and compare it with the other clocks."""
    synchronised = True if os.path.exists(TIMESYNC) else _kernel_synchronised()
    try:
        api, polled = context.cached(kubernetes.read).offset, context.cached(agents.read).agents
    except NoConfigError:
        return ClockFacts(synchronised)
    return ClockFacts(
        synchronised, api, tuple((agent.name, agent.offset) for agent in polled if agent.offset is not None)
    )


def _kernel_synchronised() -> bool | None:
    """Whether the kernel considers its clock synchronised; None if it cannot be asked."""
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)  # modes 0: read only
    except (AttributeError, OSError):
        return None
    return None if state < 0 else not _STATUS.unpack_from(buffer)[-1] & _STA_UNSYNC_CODE


CHECKS = (Check("clock.offsets", read, judge, CLUSTER_TIMEOUT_SECONDS),)
