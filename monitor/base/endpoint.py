"""Addresses of outside services, and keeping their secrets out of messages."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from monitor.base.text import shorten

MAX_QUOTE_CHARS = 160  # of a reply that is quoted
_MIN_KEY_CHARS = 6  # a shorter part of an address is a word, not a key ...
_MAX_WORD_CHARS = 15  # ... and so is a part without digits, up to this length
_HIDDEN = "***"


@dataclass(frozen=True)
class Endpoint:
    """How a service is reached. `secrets` are those outside the URL and the proxy URL."""

    url: str = field(repr=False)
    timeout: float = 10.0
    proxy: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    verify_tls: bool = True
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def host(self) -> str:
        """Host and port: the only part of the address that may be shown."""
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return "?"
        host = f"[{host}]" if ":" in host else host
        return (f"{host}:{port}" if port else host) or "?"

    def redact(self, text: str) -> str:
        """Text from outside on one line, short, and without our secrets."""
        for secret in sorted(self._hidden(), key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return shorten(text, MAX_QUOTE_CHARS)

    def _hidden(self) -> set[str]:
        plain = {*self.secrets, *_secrets_in(self.url), *_secrets_in(self.proxy or "")} - {""}
        return {form for each in plain for form in (each, quote(each), quote(each, safe=""), json.dumps(each)[1:-1])}


def _secrets_in(url: str) -> set[str]:
    """Every part of an address that may be a key."""
    try:
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError:
        return {url}
    words = {*parts.path.split("/"), *(value for _, value in parse_qsl(parts.query))}
    found = {url, parts.path.strip("/"), parts.query, *filter(_may_be_key, words)}
    if password:
        found |= {password, base64.b64encode(f"{user}:{password}".encode()).decode()}
    return found


def _may_be_key(word: str) -> bool:
    return len(word) > _MAX_WORD_CHARS or (len(word) >= _MIN_KEY_CHARS and any(c.isdigit() for c in word))
