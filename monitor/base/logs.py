"""Logs as logfmt lines on stderr: one line per event, for journald, `kubectl logs` and grep.

    ts=2026-11-16T02:31:47.123Z level=info logger=agent.runner msg="collector gpu failed" duration=1.2

Text from outside is escaped, so that it can neither forge a line nor send control sequences to a terminal. The agent
imports this module: keep it light.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any, TextIO

CHATTY = ("apscheduler",)  # logs every run of a job at INFO
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def setup(level: str, stream: TextIO | None = None) -> None:
    """Log records of at least `level` (debug, info, warning, error) to `stream` (stderr), and nowhere else."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogfmtFormatter())
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
        return " ".join(f"{_key(key)}={_value(value)}" for key, value in pairs.items())

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


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(round(value, 6))
    text = str(value)
    if text and text.isprintable() and not any(c in ' "=\\' for c in text):
        return text
    return '"' + "".join(_escape(c) if c in '"\\' or not c.isprintable() else c for c in text) + '"'
