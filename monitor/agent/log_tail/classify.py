"""Decides from the end of a container's log why the program failed.

Of all lines that say something about the failure, those that say it most directly count. Of these, the process that
failed first and then its last exception decide: what follows a failure is a consequence of it, such as errors of
collective operations in the other processes and the summary of the launcher.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from monitor.agent.log_tail.error_texts import match_ending, match_errno, match_http
from monitor.agent.log_tail.evidence import Evidence, Weight
from monitor.agent.log_tail.exceptions import PythonException, classify_exception, parse_exception
from monitor.agent.log_tail.launchers import launcher_evidence
from monitor.agent.log_tail.lines import Line, split_lines
from monitor.agent.log_tail.wording import match_wording
from monitor.facts.log_tails import LogCause

_DIRECT_CAUSE = "the above exception was the direct cause of the following exception"
_CHAIN = "during handling of the above exception, another exception occurred"
_TRACEBACK = "traceback (most recent call last)"
_ERROR_TEXT_LINES = 12  # common error texts count only this close to the end
_MAX_PROGRESS_LINES = 3  # a program that reports progress after an exception has handled it
_CONTEXT_FRAMES = 4
_PROGRESS = re.compile(
    r"\d+/\d+ \[|\bit/s\b|s/it\b|'loss':|\b(?:step|iter(?:ation)?|epoch)\b[ :=\[]{1,3}\d{1,9}\b.{0,80}\bloss\b", re.IGNORECASE
)
_HARMLESS = re.compile(
    r"\b(?:warn(?:ing)?|info|debug|retry|retrying|ignor(?:ed|ing)|skipp(?:ed|ing)|fall(?:ing)? ?back)\b|\bW\d{4} "
    r"|^I |: [IW] |\bW tensorflow|^\+ ",
    re.IGNORECASE,
)
_USAGE = re.compile(
    r"[\w./ -]{1,80}: error: (?:unrecognized arguments|the following arguments are required|argument |ambiguous option"
    r"|invalid choice|one of the arguments|expected)|error: (?:no such option|missing (?:option|argument)|got unexpected "
    r"extra argument|invalid value for|no such command)|unknown (?:flag|option|command line flag)|invalid option -- "
    r"|unrecognized option|flags parsing error|could not override '",
    re.IGNORECASE,
)
_KILLED = re.compile(r"(?:^|: line \d{1,6}: {1,9}\d{1,9} |^\[\d{1,3}\]\s{1,4}\d{0,9} {0,9})(?:killed|已杀死)(?:\s|$)", re.IGNORECASE)
_BUS = re.compile(r"(?:^|\s)(?:bus error|总线错误)(?: \(core dumped\)|\s|$)", re.IGNORECASE)
_SEGFAULT = re.compile(r"(?:^|: line \d{1,6}: {1,9}\d{1,9} |\s)segmentation fault(?:\s|$)", re.IGNORECASE)
_CRASHES = (
    (_KILLED, LogCause.OUT_OF_MEMORY), (_BUS, LogCause.SHM), (_SEGFAULT, LogCause.SEGFAULT),
)  # fmt: skip
_CANNOT_OPEN = re.compile(r"[\w./-]{1,60}: can't open file ", re.IGNORECASE)
_NOT_EXECUTABLE = re.compile(r"exec format error|cannot execute(?: binary file|: required file not found)", re.IGNORECASE)
_PANIC = re.compile(
    r"panic: |thread '.{0,60}' panicked at|fatal error: |double free or corruption|malloc\(\): |free\(\): |illegal instruction",
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
    evidence = [*_exceptions(lines), *_other_lines(lines), *launcher_evidence(lines)]
    current = [item for item in evidence if not _handled(lines, item)]
    if not current:
        return LogClass(LogCause.UNKNOWN)
    first_rank = next((item.rank for item in reversed(current) if item.weight is Weight.LAUNCHER), None)
    decisive = _decisive(current, first_rank)
    rank = decisive.rank if decisive.rank is not None else first_rank
    return LogClass(decisive.cause, lines[decisive.index].raw.strip("\n"), decisive.exception, rank)


def _decisive(evidence: Sequence[Evidence], first_rank: int | None) -> Evidence:
    weight = max(item.weight for item in evidence)
    strongest = sorted((item for item in evidence if item.weight == weight), key=lambda item: item.index)
    known = {item.rank for item in strongest}
    rank = first_rank if first_rank in known else strongest[0].rank
    own = [item for item in strongest if item.rank == rank] if len(known) > 1 else strongest
    if weight < Weight.WORDING:  # consequences: the first one is closest to the cause
        return own[0]
    position = len(own) - 1
    while position and own[position].cause is LogCause.PYTHON_EXCEPTION and own[position].direct_cause:
        position -= 1
    return own[position]


def _handled(lines: Sequence[Line], item: Evidence) -> bool:
    """Whether the program went on after this line."""
    progress = 0
    for line in lines[item.index + 1 :]:
        progress += _PROGRESS.search(line.raw) is not None
        if progress >= _MAX_PROGRESS_LINES:
            return True
    return False


def _exceptions(lines: Sequence[Line]) -> Iterator[Evidence]:
    """Exceptions that were not ignored."""
    in_frames = ignored = thread = direct = teardown = False
    frames: list[str] = []
    for index, line in enumerate(lines):
        lower, stripped = line.lower, line.lower.strip()
        if stripped.startswith("exception ignored in"):
            ignored = True
        elif stripped.startswith("exception in thread"):
            thread = True
        elif stripped.startswith("error in atexit"):
            teardown = True
        elif stripped.startswith(_DIRECT_CAUSE):
            direct = True
        elif stripped.startswith(_CHAIN):
            direct = False
        elif _TRACEBACK in lower:
            in_frames, frames = True, []
        elif line.text.startswith((" ", "\t", "│", "╭", "╰")) and not (exception := _indented(line.text)):
            in_frames = in_frames or stripped.startswith('file "')
            frames.append(lower)
        elif exception := parse_exception(line.text, in_traceback=in_frames):
            if not ignored and not _is_harmless(line, exception, in_frames=in_frames):
                weight_limit = Weight.TEARDOWN if teardown else Weight.THREAD if thread else Weight.FAILURE
                yield _exception(lines, index, exception, frames, weight_limit, direct=direct)
            in_frames = ignored = thread = direct = teardown = False
            frames = []


def _indented(text: str) -> PythonException | None:
    """An indented exception: in the summary of a launcher, or one of an exception group."""
    return parse_exception(text.strip(), in_traceback=False) if ": " in text[:120] else None


def _is_harmless(line: Line, exception: PythonException, *, in_frames: bool) -> bool:
    """Whether an exception outside a traceback was only reported as a warning."""
    return not in_frames and _HARMLESS.search(line.raw[: line.raw.find(exception.name)]) is not None


def _exception(
    lines: Sequence[Line], index: int, exception: PythonException, frames: Sequence[str], most: Weight, *, direct: bool
) -> Evidence:
    cause, weight = classify_exception(exception, "\n".join(frames[-_CONTEXT_FRAMES * 2 :]))
    if cause is LogCause.PYTHON_EXCEPTION and weight is Weight.FAILURE:
        cause, weight = _continued(lines, index) or (cause, weight)
    return Evidence(cause, min(weight, most), index, lines[index].rank, exception.name, direct)


def _continued(lines: Sequence[Line], index: int) -> tuple[LogCause, Weight] | None:
    """Cause by the next two lines of a message, which may be wrapped or begin with a line break."""
    following = [line.text.strip() for line in lines[index + 1 : index + 3]]
    if not following or not following[0] or following[0].startswith(("wandb:", "[", "/", "Traceback")):
        return None
    wording = match_wording(f"{lines[index].text.strip()} {following[0]}".lower())
    return (wording.cause, Weight.FAILURE) if wording and wording.weight >= Weight.CUDA_FAULT else None


def _other_lines(lines: Sequence[Line]) -> Iterator[Evidence]:
    """Lines that are not exceptions: wording of programs everywhere, common error texts near the end."""
    near_end = len(lines) - _ERROR_TEXT_LINES
    for index, line in enumerate(lines):
        text = line.text.strip()
        if not text or parse_exception(text, in_traceback=False):
            continue
        if crash := next((cause for pattern, cause in _CRASHES if pattern.search(text)), None):
            yield Evidence(crash, Weight.FAILURE, index, line.rank)
        elif _is_noise(line):
            continue
        elif wording := match_wording(line.lower):
            yield Evidence(wording.cause, wording.weight, index, line.rank)
        elif _USAGE.search(text):
            yield Evidence(LogCause.USAGE, Weight.WORDING, index, line.rank)
        elif index >= near_end and (cause := _error_text(line)):
            yield Evidence(cause, Weight.ERROR_TEXT, index, line.rank)
        elif _PANIC.match(text):
            yield Evidence(LogCause.APP, Weight.WRAPPER, index, line.rank)


def _is_noise(line: Line) -> bool:
    """Whether a line is a warning, a frame or progress. NCCL and c10d report their errors as warnings."""
    if "nccl warn" in line.lower or "[c10d]" in line.lower or "c10d]" in line.lower:
        return False
    if line.text.startswith(('  File "', "    ")) or "nccl info" in line.lower:
        return True
    return _HARMLESS.search(line.raw[:200]) is not None


def _error_text(line: Line) -> LogCause | None:
    if _CANNOT_OPEN.search(line.text):
        return LogCause.MISSING_FILE
    if _NOT_EXECUTABLE.search(line.text):
        return LogCause.NOT_EXECUTABLE
    return match_errno(line.lower) or match_ending(line.lower) or match_http(line.text)
