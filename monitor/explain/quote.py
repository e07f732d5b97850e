"""Messages of other programs made safe to show: one line, limited length, secrets redacted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
Fragments = tuple[tuple[T, tuple[str, ...]], ...]  # results, each with the message fragments that imply it

MAX_QUOTE_CHARS = 300
REDACTED = "***"

# Blob URLs are signed and grant access to the blob; URLs may also contain a username and password.
_USER_IN_URL = re.compile(r"(://)[^\s/@\"']+@")
# The registry that a mirror stands for (`?ns=docker.io`) is public, and tells the mirror from the registry.
_QUERY_OF_URL = re.compile(r"(\bhttps?://[^\s?\"']+)\?(?!ns=[\w.:-]+(?:[\s\"']|$))[^\s\"']+")
_TOKEN = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")
_AUTHORIZATION = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}", re.IGNORECASE)
_PASSWORD = re.compile(r"\b(pass(?:word|wd|phrase)?|pwd)\b(\"?\s*[:=]\s*)\"?[^\s\",;&]+", re.IGNORECASE)
_NAMED = re.compile(
    r"\b([\w-]{0,20}(?:token|secret|api_?key|access_?key|signature|credential|auth)s?)(=|\"\s*:\s*)\"?[^\s\",;&]+",
    re.IGNORECASE,
)


def redact(message: str | None) -> str:
    """The message as one printable line with secrets redacted."""
    line = " ".join((message or "").split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    line = _USER_IN_URL.sub(rf"\1{REDACTED}@", line)
    line = _QUERY_OF_URL.sub(rf"\1?{REDACTED}", line)
    line = _TOKEN.sub(REDACTED, line)
    line = _AUTHORIZATION.sub(rf"\1 {REDACTED}", line)
    line = _PASSWORD.sub(rf"\1\2{REDACTED}", line)
    return _NAMED.sub(rf"\1\2{REDACTED}", line)


def match_fragments(message: str | None, table: Iterable[tuple[T, tuple[str, ...]]]) -> T | None:
    """The first result in `table` with a fragment that occurs in the lower-cased message."""
    lower = (message or "").lower()
    return next((result for result, fragments in table if any(fragment in lower for fragment in fragments)), None)


def quote(message: str | None, limit: int = MAX_QUOTE_CHARS) -> str:
    """The redacted message, shortened in the middle: its start names what failed, its end the reason."""
    line = redact(message)
    if len(line) <= limit:
        return line
    head = limit // 2
    return f"{line[:head]} … {line[head - limit :]}"
