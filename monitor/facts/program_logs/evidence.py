"""Evidence in a log: lines that say why a program failed, weighted by how directly they say it."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import NamedTuple

from monitor.facts.log_tails import LogCause


class Weight(IntEnum):
    """How directly a line names the cause. Of several lines, those with the largest weight count."""

    TEARDOWN = auto()  # follows from the end of the program: broken pipes, signals to the other processes
    WRAPPER = auto()  # says that something else has failed
    LAUNCHER = auto()  # names the process that failed first
    COLLECTIVE = auto()  # a collective operation or the connection to another process failed
    CONNECTION = auto()
    NCCL_RESULT = auto()
    NCCL_PEER = auto()
    NCCL_TIMEOUT = auto()
    NCCL_SETUP = auto()
    ERROR_TEXT = auto()  # an error text of the operating system at the end of a line
    CUDA_FAULT = auto()  # of unknown origin; a failed assertion of a kernel says more
    WORDING = auto()  # wording of one program
    THREAD = auto()  # an exception that ended a thread, not the program
    FAILURE = auto()  # an exception that ended the program, or a crash


class LogEvidence(NamedTuple):
    """One line that says why the program failed."""

    cause: LogCause
    weight: Weight
    line_index: int
    rank: int | None = None
    exception: str | None = None
    direct_cause: bool = False  # raised from the exception before it


class Verdict(NamedTuple):
    """A cause and its weight."""

    cause: LogCause
    weight: Weight
