"""The clock of this machine, and how far those of the others are from it."""

from __future__ import annotations

import ctypes
import os
import struct

from monitor.doctor.checks.clock import ClockFacts
from monitor.doctor.context import NoConfigError, Visit

TIMESYNC = "/run/systemd/timesync/synchronized"
_TIMEX_BYTES = 512  # more than any kernel's struct timex
_STATUS = struct.Struct("@5li")  # modes (padded), offset, freq, maxerror, esterror, status
_UNSYNCHRONISED = 0x40


def clock(visit: Visit) -> ClockFacts:
    """Ask the kernel whether its clock is kept right, and compare it with those of the others."""
    synchronised = True if os.path.exists(TIMESYNC) else _kernel_says()
    try:
        api, agents = visit.cluster.get().facts.offset, visit.agents.get().agents
    except NoConfigError:
        return ClockFacts(synchronised)
    offsets = tuple((agent.name, agent.offset) for agent in agents if agent.offset is not None)
    return ClockFacts(synchronised, api, offsets)


def _kernel_says() -> bool | None:
    """Return whether somebody keeps the kernel's clock right; None where the kernel cannot be asked."""
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)  # modes 0: it only reads
    except (AttributeError, OSError):
        return None
    if state < 0:
        return None
    return not _STATUS.unpack_from(buffer)[-1] & _UNSYNCHRONISED
