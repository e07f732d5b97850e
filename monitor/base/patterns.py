"""Regular expressions that users write, matched in linear time by RE2, as in Prometheus and Alertmanager.

Python's own engine backtracks: one pattern can keep it busy for years while no other thread runs. RE2 has no
look-around and no backreferences. Length, program and memory of a pattern are bounded as well, because the time of a
match is proportional to them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

MAX_PATTERN_CHARS = 4096
MAX_PROGRAM_INSTRUCTIONS = 2000  # a match takes less than 10 ms on the longest name in Kubernetes
MAX_PATTERN_BYTES = 256 * 1024  # memory of one compiled pattern
MAX_COMPILED = 256
MAX_REMEMBERED_RESULTS = 32_768
MAX_REMEMBERED_CHARS = 253  # longest name in Kubernetes
_MAX_QUOTED_CHARS = 120
_SYNTAX = "patterns have the syntax of RE2, as in Alertmanager: without look-around and backreferences"


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern is rejected, in words for the user; None if it is valid."""
    compiled = _compiled(pattern)
    return compiled if isinstance(compiled, str) else None


def check_pattern(pattern: str) -> None:
    """Raise ValueError, in words for the user, if a pattern is rejected."""
    problem = pattern_problem(pattern)
    if problem is not None:
        raise ValueError(problem)


def matches_pattern(pattern: str, text: str) -> bool | None:
    """Whether a pattern matches the whole text, a dot also line breaks; None if the pattern is rejected."""
    return (_remembered if len(text) <= MAX_REMEMBERED_CHARS else _matches)(pattern, text)


def _matches(pattern: str, text: str) -> bool | None:
    compiled = _compiled(pattern)
    if isinstance(compiled, str):
        return None
    return compiled.fullmatch(text.encode(errors="replace")) is not None


# Labels hardly change between evaluations, and a lookup takes a tenth of the time of a match.
_remembered = lru_cache(maxsize=MAX_REMEMBERED_RESULTS)(_matches)


@lru_cache(maxsize=MAX_COMPILED)
def _compiled(pattern: str) -> Any:
    """Compiled pattern, or why it is rejected: both are remembered."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"{_quoted(pattern)} is too long for a pattern; the most are {MAX_PATTERN_CHARS} characters"
    try:
        compiled = re2.compile(pattern, _options())
    except re2.error as error:
        return f"invalid pattern {_quoted(pattern)}: {_words(error)}; {_SYNTAX}"
    except UnicodeEncodeError:
        return f"invalid pattern {_quoted(pattern)}: it is not valid text; {_SYNTAX}"
    if compiled.programsize > MAX_PROGRAM_INSTRUCTIONS:
        return f"invalid pattern {_quoted(pattern)}: it is too complex; use fewer alternatives and repetitions"
    return compiled


def _options() -> re2.Options:
    options = re2.Options()
    options.max_mem = MAX_PATTERN_BYTES
    options.dot_nl = True
    options.never_capture = True
    options.log_errors = False  # RE2 would write them to stderr itself
    return options


def _words(error: Exception) -> str:
    """Message of RE2, which is bytes."""
    message = error.args[0] if error.args else ""
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)


def _quoted(pattern: str) -> str:
    return repr(pattern if len(pattern) <= _MAX_QUOTED_CHARS else pattern[: _MAX_QUOTED_CHARS - 1] + "…")
