"""Evidence in a log: lines that say why a program failed, weighted by how directly they say it."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from monitor.facts.log_tails import LogCause


class Weight(IntEnum):
    """How directly a line names the cause. Of several lines, those with the largest weight count."""

    TEARDOWN = 10  # follows from the end of the program: broken pipes, signals to the other processes
    WRAPPER = 20  # says that something else has failed
    LAUNCHER = 30  # names the process that failed first
    COLLECTIVE = 40  # a collective operation or the connection to another process failed
    CONNECTION = 42
    NCCL_RESULT = 45
    NCCL_PEER = 47
    NCCL_TIMEOUT = 48
    NCCL_SETUP = 49
    ERROR_TEXT = 50  # an error text of the operating system at the end of a line
    CUDA_FAULT = 58  # of unknown origin; a failed assertion of a kernel says more
    WORDING = 60  # wording of one program
    THREAD = 65  # an exception that ended a thread, not the program
    FAILURE = 70  # an exception that ended the program, or a crash


class Evidence(NamedTuple):
    """One line that says why the program failed."""

    cause: LogCause
    weight: Weight
    index: int  # of the line
    rank: int | None = None
    exception: str | None = None
    direct_cause: bool = False  # raised from the exception before it


class Verdict(NamedTuple):
    """A cause and its weight."""

    cause: LogCause
    weight: Weight
