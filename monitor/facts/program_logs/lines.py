"""The lines of a log, without escape sequences, progress bars and prefixes of launchers and loggers."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_LINE_CHARS = 2000
MAX_LINES = 2000
_MAX_PREFIXES = 6

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[()][A-Z0-9])")
_RANK = re.compile(r"\[rank ?(\d{1,6})\]:? ?|\[\d{1,6},(\d{1,6})\]<std(?:err|out)>: ?|[Rr]ank ?(\d{1,6}): ")
_PREFIXES = (
    re.compile(r"\([\w. :-]{0,60}?pid=\d{1,9}[^)]{0,80}\) ?"),  # Ray, vLLM
    re.compile(r"\[?\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d[\d.,:+Z]{0,16}\]?[ :|-]{0,3}"),
    re.compile(r"\[?\d\d[-/]\d\d \d\d:\d\d:\d\d[\d.,]{0,10}\]?[ :|-]{0,3}"),
    re.compile(r"\[?(?:ERROR|CRITICAL|FATAL|EXCEPTION)\]?(?: *[:|>-] *| +|$)"),
    re.compile(r"\[[\w./-]{1,80}:\d{1,6}(?::\w{1,60})?\] ?"),  # [core.py:390], [launch.py:321:handler]
    re.compile(r"[\w.-]{1,60}-\d{1,5}: (?=[A-Z ]|[a-z_]{1,40}\.)"),  # the host, from a launcher
    re.compile(r"[EF]\d{4} \d\d:\d\d:\d\d\.\d{3,6} {1,4}\d{1,9} [\w./-]{1,200}:\d{1,6}\] ?"),  # glog
    re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "),  # syslog
    re.compile(r"[ |+]{0,12}\| "),  # an exception group
)
# Words of lines that report no failure.
HARMLESS = re.compile(
    r"\b(?:warn(?:ing)?|info|debug|retry|retrying|ignor(?:ed|ing)|skipp(?:ed|ing)|fall(?:ing)? ?back)\b|\bW\d{4} "
    r"|^I |: [IW] |\bW tensorflow|^\+ ",
    re.IGNORECASE,
)
_JSON_NEWLINE = "\\n"
_TRACEBACK = "Traceback (most recent call last)"


class Line(NamedTuple):
    """A line as written, and its text without prefixes; `rank` is that of the process that wrote it, if it says so."""

    raw: str
    text: str
    lower: str
    rank: int | None


def split_lines(tail: str) -> list[Line]:
    """The last lines of a log. A carriage return ends a line: progress bars overwrite themselves."""
    pieces = tail.replace("\x00", "").replace("\r", "\n").split("\n")
    lines: list[Line] = []
    for piece in pieces[-MAX_LINES:]:
        if piece.startswith("{") and _TRACEBACK in piece:  # a structured log with a traceback in one field
            lines += (_line(part) for part in piece.split(_JSON_NEWLINE))
        else:
            lines.append(_line(piece))
    return lines[-MAX_LINES:]


def _line(piece: str) -> Line:
    if len(piece) > MAX_LINE_CHARS:  # its start names what failed, its end the reason
        piece = f"{piece[: MAX_LINE_CHARS // 2]} … {piece[-MAX_LINE_CHARS // 2 :]}"
    raw = _ESCAPE.sub("", piece) if "\x1b" in piece else piece
    text, rank = raw, None
    if match := _RANK.match(text):
        text, rank = text[match.end() :], int(match[1] or match[2] or match[3])
    for _ in range(_MAX_PREFIXES):
        match = next((match for pattern in _PREFIXES if (match := pattern.match(text)) and match.end()), None)
        if match is None:
            break
        text = text[match.end() :]
    return Line(raw, text, text.lower(), rank)
