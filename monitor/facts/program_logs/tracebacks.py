"""Exceptions in a log: those that ended the program, a thread, or were raised while it ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitor.facts.log_tails import LogCause
from monitor.facts.program_logs.evidence import LogEvidence, Weight
from monitor.facts.program_logs.exceptions import PythonException, classify_exception, parse_exception
from monitor.facts.program_logs.lines import HARMLESS, Line
from monitor.facts.program_logs.wording import match_wording

_DIRECT_CAUSE = "the above exception was the direct cause of the following exception"
_TRACEBACK = "traceback (most recent call last)"
_CONTEXT_LINES = 8  # the last frames of a traceback
# What Python prints before a traceback, and the most that its exception can weigh then; None: ignored.
_HEADINGS: tuple[tuple[str, Weight | None], ...] = (
    ("exception ignored in", None),
    ("exception in thread", Weight.THREAD),
    ("error in atexit", Weight.TEARDOWN),
)


class _Traceback:
    """What precedes the line of an exception."""

    def __init__(self) -> None:
        self.in_frames = False
        self.direct_cause = False
        self.most: Weight | None = Weight.FAILURE
        self.frames: list[str] = []

    def takes(self, line: Line) -> bool:
        """Whether a line is part of a traceback, other than its exception."""
        stripped = line.lower.strip()
        heading = next((heading for heading in _HEADINGS if stripped.startswith(heading[0])), None)
        if heading is not None:
            self.most = heading[1]
        elif stripped.startswith(_DIRECT_CAUSE):
            self.direct_cause = True
        elif _TRACEBACK in line.lower:
            self.in_frames, self.frames = True, []
        elif line.text.startswith((" ", "\t", "│", "╭", "╰")) and not _indented(line.text):
            self.in_frames = self.in_frames or stripped.startswith(('file "', "raise "))
            self.frames = [*self.frames[-_CONTEXT_LINES:], line.lower]
        else:
            return False
        return True


def traceback_evidence(lines: Sequence[Line]) -> Iterator[LogEvidence]:
    """Exceptions that the program did not ignore, in the order of the lines."""
    traceback = _Traceback()
    for index, line in enumerate(lines):
        if traceback.takes(line):
            continue
        exception = parse_exception(line.text, in_traceback=traceback.in_frames)
        if exception is None:
            continue
        if traceback.most is not None and (traceback.in_frames or not _is_warning(line, exception)):
            yield _evidence(lines, index, exception, traceback, traceback.most)
        traceback = _Traceback()


def _indented(text: str) -> PythonException | None:
    """An indented exception: in the summary of a launcher, or one of an exception group."""
    return parse_exception(text.strip(), in_traceback=False) if ": " in text[:120] else None


def _is_warning(line: Line, exception: PythonException) -> bool:
    """Whether an exception without a traceback was only reported as a warning."""
    return HARMLESS.search(line.raw[: line.raw.find(exception.name)]) is not None


def _evidence(
    lines: Sequence[Line], index: int, exception: PythonException, traceback: _Traceback, most: Weight
) -> LogEvidence:
    cause, weight = classify_exception(exception, "\n".join(traceback.frames))
    if cause is LogCause.PYTHON_EXCEPTION and weight is Weight.FAILURE:
        cause, weight = _continued(lines, index) or (cause, weight)
    return LogEvidence(cause, min(weight, most), index, lines[index].rank, exception.name, traceback.direct_cause)


def _continued(lines: Sequence[Line], index: int) -> tuple[LogCause, Weight] | None:
    """Cause by the next line of a message, which may be wrapped or begin with a line break."""
    following = lines[index + 1].text.strip() if index + 1 < len(lines) else ""
    wrapped = lines[index].text.rstrip().endswith(":")
    if not following or (not wrapped and following.startswith(("wandb:", "[", "/", "Traceback"))):
        return None
    wording = match_wording(f"{lines[index].text.strip()} {following}".lower())
    return (wording.cause, Weight.FAILURE) if wording and wording.weight >= Weight.CUDA_FAULT else None
