"""Messages of other programs made safe to show: one line, limited length, secrets redacted."""

from __future__ import annotations

import re

from monitor.base.masking import MASK, mask_tokens

MAX_QUOTE_CHARS = 300

_PASSWORD = re.compile(r"\b(pass(?:word|wd|phrase)?|pwd)\b(\"?\s*[:=]\s*)\"?[^\s\",;&]+", re.IGNORECASE)
_NAMED = re.compile(
    r"\b([\w-]{0,20}(?:token|secret|api_?key|access_?key|signature|credential|auth)s?)(=|\"\s*:\s*)\"?[^\s\",;&]+",
    re.IGNORECASE,
)


def redact(message: str | None) -> str:
    """The message as one printable line with secrets redacted."""
    line = " ".join((message or "").split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    line = _PASSWORD.sub(rf"\1\2{MASK}", mask_tokens(line))
    return _NAMED.sub(rf"\1\2{MASK}", line)


def quote(message: str | None, limit: int = MAX_QUOTE_CHARS) -> str:
    """The redacted message, shortened in the middle: its start names what failed, its end the reason."""
    line = redact(message)
    if len(line) <= limit:
        return line
    head = limit // 2
    return f"{line[:head]} … {line[head - limit :]}"
