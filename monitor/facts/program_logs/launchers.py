"""What launchers (torchrun, mpirun, DeepSpeed, torch.multiprocessing) say about the process that failed first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from monitor.facts.log_tails import LogCause as Cause
from monitor.facts.program_logs.evidence import LogEvidence, Weight
from monitor.facts.program_logs.lines import Line

_ROOT_CAUSE = "root cause (first observed failure)"
_MAX_SUMMARY_LINES = 12
_FIELD = re.compile(r"\s{0,8}(rank|exitcode)\s{0,8}: (-?\d{1,6})")
_ELASTIC = re.compile(r"failed \(exitcode: (-?\d{1,4})\) (?:local_rank: (\d{1,6}))?")
_RETURN_CODE = re.compile(r"exits with return code = (-?\d{1,4})")
_MPI_SIGNAL = re.compile(r"process rank (\d{1,6}) .{0,200}exited on signal (\d{1,3})")
_MPI_NAME = re.compile(r"\s{0,8}Process name: \[\[\d{1,9},\d{1,9}\],(\d{1,6})\]")
_DIED = re.compile(r"died with <Signals\.\w{1,20}: (\d{1,3})>")
_SPAWNED = re.compile(r"process (\d{1,6}) terminated with (?:signal SIG(\w{2,10})|exit code (\d{1,4}))")
_SIGNALS = {9: Cause.OUT_OF_MEMORY, 11: Cause.SEGFAULT, 7: Cause.SHM, 15: Cause.SIGTERM, 2: Cause.SIGTERM}
_SIGNAL_NAMES = {"KILL": 9, "SEGV": 11, "BUS": 7, "TERM": 15, "INT": 2}


def launcher_evidence(lines: Sequence[Line]) -> list[LogEvidence]:
    """Evidence of launchers, in the order of the lines."""
    found: list[LogEvidence] = []
    for index, line in enumerate(lines):
        if _ROOT_CAUSE in line.lower:
            found += _summary(lines, index)
        elif evidence := _from_line(index, line.text):
            found.append(evidence)
    return found


def _summary(lines: Sequence[Line], start: int) -> Iterator[LogEvidence]:
    """The first failure in the summary of torchrun."""
    rank: int | None = None
    for index in range(start + 1, min(start + _MAX_SUMMARY_LINES, len(lines))):
        match = _FIELD.match(lines[index].text)
        if match is None:
            continue
        if match[1] == "rank":
            rank = int(match[2])
            yield LogEvidence(Cause.RANK_FAILED, Weight.LAUNCHER, index, rank)
        elif evidence := _by_code(index, int(match[2]), rank):
            yield evidence


def _from_line(index: int, text: str) -> LogEvidence | None:
    if match := _ELASTIC.search(text):
        rank = int(match[2]) if match[2] else None
        return _by_code(index, int(match[1]), rank) or LogEvidence(Cause.RANK_FAILED, Weight.LAUNCHER, index, rank)
    if match := _RETURN_CODE.search(text):
        return _by_code(index, int(match[1]), None) or LogEvidence(Cause.APP, Weight.WRAPPER, index)
    if match := _MPI_SIGNAL.search(text):
        rank = int(match[1])
        return _by_code(index, -int(match[2]), rank) or LogEvidence(Cause.RANK_FAILED, Weight.LAUNCHER, index, rank)
    if match := _MPI_NAME.match(text):
        return LogEvidence(Cause.RANK_FAILED, Weight.LAUNCHER, index, int(match[1]))
    if match := _DIED.search(text):
        return _by_code(index, -int(match[1]), None)
    if match := _SPAWNED.search(text):
        code = -_SIGNAL_NAMES.get(match[2], 6) if match[2] else int(match[3])
        rank = int(match[1])
        return _by_code(index, code, rank) or LogEvidence(Cause.RANK_FAILED, Weight.LAUNCHER, index, rank)
    return None


def _by_code(index: int, code: int, rank: int | None) -> LogEvidence | None:
    """Evidence from an exit code that is a signal, unless the process only aborted after an error of its own."""
    cause = _SIGNALS.get(-code)
    if cause is None:
        return None
    return LogEvidence(cause, Weight.LAUNCHER if cause is Cause.SIGTERM else Weight.FAILURE, index, rank)
