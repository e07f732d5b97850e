"""Logs as logfmt lines on stderr: one line per event, for journald, `kubectl logs` and grep.

    ts=2026-11-16T02:31:47.123Z level=info logger=agent.runner msg="collector gpu failed" duration=1.2

Text from outside is escaped, so that it can neither forge a line nor send control sequences to a terminal. Lines are
limited in length and number: a client or an agent that provokes them must not fill the disk. The agent imports this
module: keep it light.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

CHATTY = ("apscheduler",)  # logs every run of a job at INFO
MAX_VALUE_CHARS = 2000
MAX_TRACE_CHARS = 16_000
RATE_INTERVAL_SECONDS = 10.0
MAX_WARNINGS_PER_INTERVAL = 20  # of one call site
MAX_LINES_PER_INTERVAL = 100  # below warnings
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def setup(level: str, stream: TextIO | None = None) -> None:
    """Log records of at least `level` (debug, info, warning, error) to `stream` (stderr), and nowhere else."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogfmtFormatter())
    handler.addFilter(LogRateFilter())
    logging.basicConfig(handlers=[handler], force=True)
    set_level(level)


def set_level(level: str) -> None:
    """Log records of at least `level` from now on."""
    logging.getLogger().setLevel(level.upper())
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


def log_fields(**fields: object) -> dict[str, dict[str, object]]:
    """Value for `extra=` that adds these key=value pairs to the line."""
    return {"fields": fields}


@dataclass
class _CallSite:
    """Lines of a call site in the current interval."""

    since: float
    written: int = 0
    suppressed: int = 0


class LogRateFilter(logging.Filter):
    """Limits the lines of each call site, and adds the number of suppressed ones to a later line."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._lock = threading.Lock()
        self._sites: dict[tuple[str, int], _CallSite] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write the record."""
        with self._lock:
            suppressed = self._count(record)
        if suppressed:
            record.__dict__["fields"] = {**getattr(record, "fields", {}), "suppressed": suppressed}
        return suppressed is not None

    def _count(self, record: logging.LogRecord) -> int | None:
        """Number of lines suppressed before this one; None to suppress it as well."""
        now = self._now()
        site = self._sites.setdefault((record.pathname, record.lineno), _CallSite(now))
        most = MAX_WARNINGS_PER_INTERVAL if record.levelno >= logging.WARNING else MAX_LINES_PER_INTERVAL
        if now - site.since < RATE_INTERVAL_SECONDS and site.written >= most:
            site.suppressed += 1
            return None
        suppressed, site.suppressed = site.suppressed, 0
        if now - site.since >= RATE_INTERVAL_SECONDS:
            site.since, site.written = now, 0
        site.written += 1
        return suppressed


class LogfmtFormatter(logging.Formatter):
    """Formats a record as one logfmt line."""

    def format(self, record: logging.LogRecord) -> str:
        """Line of a record. Fields that are None are left out."""
        pairs: dict[str, Any] = {
            "ts": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name.removeprefix("monitor."),
            "msg": record.getMessage(),
        }
        given: dict[str, Any] = getattr(record, "fields", {})
        pairs |= {key: value for key, value in given.items() if value is not None and key not in pairs}
        if record.exc_info:
            pairs["trace"] = self.formatException(record.exc_info)
        return " ".join(f"{_key(key)}={_value(value, _max_chars(key))}" for key, value in pairs.items())

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002  # theirs
        """Time in UTC with milliseconds."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{seconds}.{int(record.msecs):03d}Z"


def printable(text: str) -> str:
    """Text with control characters, line breaks and invalid bytes written as escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _key(key: str) -> str:
    return "".join(c if c.isalnum() or c in "_.-" else "_" for c in key) or "_"


def _max_chars(key: str) -> int:
    return MAX_TRACE_CHARS if key == "trace" else MAX_VALUE_CHARS


def _value(value: Any, max_chars: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(round(value, 6))
    text = str(value)
    if len(text) > max_chars:  # the end of a trace is its exception
        text = f"{text[: max_chars // 2]}…{text[-max_chars // 2 :]}"
    if text and text.isprintable() and not any(c in ' "=\\' for c in text):
        return text
    return '"' + "".join(_escape(c) if c in '"\\' or not c.isprintable() else c for c in text) + '"'
