"""Other programs' messages, fit to be shown: on one line, not too long, and without the secrets that they may hold."""

from __future__ import annotations

import re

MAX_QUOTE_CHARS = 300
REDACTED = "***"

# A blob's address is signed: whoever has it may read the blob. An address may also hold a name and password.
_USER_IN_URL = re.compile(r"(://)[^\s/@\"']+@")
_QUERY_OF_URL = re.compile(r"(\bhttps?://[^\s?\"']+)\?[^\s\"']+")
_TOKEN = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")
_AUTHORIZATION = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}", re.IGNORECASE)
_PASSWORD = re.compile(r"\b(pass(?:word|wd|phrase)?|pwd)\b(\"?\s*[:=]\s*)\"?[^\s\",;&]+", re.IGNORECASE)
_NAMED = re.compile(
    r"\b([\w-]{0,20}(?:token|secret|api_?key|access_?key|signature|credential|auth)s?)(=|\"\s*:\s*)\"?[^\s\",;&]+",
    re.IGNORECASE,
)


def redact(message: str | None) -> str:
    """Given a message, return it as one printable line in which no secret is left."""
    line = " ".join((message or "").split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    line = _USER_IN_URL.sub(rf"\1{REDACTED}@", line)
    line = _QUERY_OF_URL.sub(rf"\1?{REDACTED}", line)
    line = _TOKEN.sub(REDACTED, line)
    line = _AUTHORIZATION.sub(rf"\1 {REDACTED}", line)
    line = _PASSWORD.sub(rf"\1\2{REDACTED}", line)
    return _NAMED.sub(rf"\1\2{REDACTED}", line)


def quote(message: str | None, limit: int = MAX_QUOTE_CHARS) -> str:
    """Given a message, return it cleaned and shortened: the beginning says what failed, the end says why."""
    line = redact(message)
    if len(line) <= limit:
        return line
    head = limit // 2
    return f"{line[:head]} … {line[head - limit :]}"
