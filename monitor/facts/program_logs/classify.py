"""Decides from the end of a container's log why the program failed.

Of all lines that say something about the failure, those that say it most directly count. Of these, the process that
failed first and then its last exception decide: what follows a failure is a consequence of it, such as errors of
collective operations in the other processes and the summary of the launcher.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from monitor.facts.log_tails import LogCause
from monitor.facts.program_logs.error_texts import match_ending, match_errno, match_http
from monitor.facts.program_logs.evidence import LogEvidence, Weight
from monitor.facts.program_logs.exceptions import parse_exception
from monitor.facts.program_logs.launchers import launcher_evidence
from monitor.facts.program_logs.lines import HARMLESS, Line, split_lines
from monitor.facts.program_logs.tracebacks import traceback_evidence
from monitor.facts.program_logs.wording import match_wording

_ERROR_TEXT_LINES = 30  # common error texts count only this close to the end
_PROGRESS_LINES = 3  # a program that reports progress after an exception has handled it
_PROGRESS = re.compile(
    r"\d{1,9}/\d{1,9} \[|\bit/s\b|s/it\b|'loss':|\b(?:step|iter(?:ation)?|epoch)\b[ :=\[]{1,3}\d{1,9}\b.{0,80}\bloss\b",
    re.IGNORECASE,
)
_USAGE = re.compile(
    r"[\w./ -]{1,80}: error: (?:unrecognized arguments|the following arguments are required|argument |ambiguous option"
    r"|invalid choice|one of the arguments|expected)|error: (?:no such option|missing (?:option|argument)"
    r"|got unexpected extra argument|invalid value for|no such command)|unknown (?:flag|option|command line flag)"
    r"|invalid option -- |unrecognized option|flags parsing error|could not override '",
    re.IGNORECASE,
)
_KILLED = re.compile(
    r"(?:^|: line \d{1,6}: {1,9}\d{1,9} |^\[\d{1,3}\]\s{1,4}\d{0,9} {0,9})(?:killed|已杀死)(?:\s{2}|\s?$)",
    re.IGNORECASE,
)
_BUS = re.compile(r"(?:^|\s)(?:bus error|总线错误)(?: \(core dumped\)|\s|$)", re.IGNORECASE)
_SEGFAULT = re.compile(r"(?:^|: line \d{1,6}: {1,9}\d{1,9} |\s)segmentation fault(?:\s|$)", re.IGNORECASE)
_CRASHES = (
    (_KILLED, LogCause.OUT_OF_MEMORY), (_BUS, LogCause.SHM), (_SEGFAULT, LogCause.SEGFAULT),
)  # fmt: skip
_CANNOT_OPEN = re.compile(
    r"[\w./-]{1,60}: can't open file |^\S{0,40}sh: (?:line )?\d{1,6}: \S{1,200}: not found$", re.IGNORECASE
)
_NOT_EXECUTABLE = re.compile(
    r"exec format error|cannot execute(?: binary file|: required file not found)", re.IGNORECASE
)
_PANIC = re.compile(
    r"panic: |thread '.{0,60}' panicked at|fatal error: |double free or corruption|malloc\(\): |free\(\): "
    r"|illegal instruction",
    re.IGNORECASE,
)


class LogClass(NamedTuple):
    """Why a program failed according to its log, and the line that says so, as written."""

    name: LogCause
    line: str | None = None
    exception: str | None = None
    rank: int | None = None


def classify_log(tail: str) -> LogClass:
    """Class of the failure that the end of a log shows; UNKNOWN if nothing in it proves one."""
    lines = split_lines(tail)
    evidence = [*traceback_evidence(lines), *_other_lines(lines), *launcher_evidence(lines)]
    current = _unhandled(lines, evidence)
    if not current:
        return LogClass(LogCause.UNKNOWN)
    first_rank = next((item.rank for item in reversed(current) if item.weight is Weight.LAUNCHER), None)
    decisive = _decisive(current, first_rank)
    rank = decisive.rank if decisive.rank is not None else first_rank
    return LogClass(decisive.cause, lines[decisive.line_index].raw.strip("\n"), decisive.exception, rank)


def _decisive(evidence: Sequence[LogEvidence], first_rank: int | None) -> LogEvidence:
    weight = max(item.weight for item in evidence)
    strongest = sorted((item for item in evidence if item.weight == weight), key=lambda item: item.line_index)
    known = {item.rank for item in strongest}
    rank = first_rank if first_rank in known else strongest[0].rank
    own = [item for item in strongest if item.rank == rank] if len(known) > 1 else strongest
    if weight < Weight.WORDING:  # consequences: the first one is closest to the cause
        return own[0]
    position = len(own) - 1
    while position and own[position].cause is LogCause.PYTHON_EXCEPTION and own[position].direct_cause:
        position -= 1
    return own[position]


def _unhandled(lines: Sequence[Line], evidence: Sequence[LogEvidence]) -> list[LogEvidence]:
    """Evidence after which the program did not go on."""
    progress = [index for index, line in enumerate(lines) if _PROGRESS.search(line.raw)]
    last_handled = progress[-_PROGRESS_LINES] if len(progress) >= _PROGRESS_LINES else 0
    return [item for item in evidence if item.line_index >= last_handled]


def _other_lines(lines: Sequence[Line]) -> Iterator[LogEvidence]:
    """Lines that are not exceptions: wording of programs everywhere, common error texts near the end."""
    near_end = len(lines) - _ERROR_TEXT_LINES
    for index, line in enumerate(lines):
        text = line.text.strip()
        if not text or parse_exception(text, in_traceback=False):
            continue
        if crash := next((cause for pattern, cause in _CRASHES if pattern.search(text)), None):
            yield LogEvidence(crash, Weight.FAILURE, index, line.rank)
        elif _is_noise(line):
            continue
        elif wording := match_wording(line.lower):
            yield LogEvidence(wording.cause, wording.weight, index, line.rank)
        elif _USAGE.search(text):
            yield LogEvidence(LogCause.USAGE, Weight.WORDING, index, line.rank)
        elif index >= near_end and (cause := _error_text(line)):
            yield LogEvidence(cause, Weight.ERROR_TEXT, index, line.rank)
        elif _PANIC.match(text):
            yield LogEvidence(LogCause.APP, Weight.WRAPPER, index, line.rank)


def _is_noise(line: Line) -> bool:
    """Whether a line is a warning, a frame or progress. NCCL and c10d report their errors as warnings."""
    if "nccl warn" in line.lower or "[c10d]" in line.lower or "c10d]" in line.lower:
        return False
    if line.text.startswith(('  File "', "    ")) or "nccl info" in line.lower:
        return True
    return HARMLESS.search(line.raw[:200]) is not None


def _error_text(line: Line) -> LogCause | None:
    if _CANNOT_OPEN.search(line.text):
        return LogCause.MISSING_FILE
    if _NOT_EXECUTABLE.search(line.text):
        return LogCause.NOT_EXECUTABLE
    return match_errno(line.lower) or match_ending(line.lower) or match_http(line.text)
