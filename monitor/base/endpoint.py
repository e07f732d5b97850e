"""The address of somebody outside, and keeping it to ourselves. Pure."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

MAX_QUOTE = 160  # characters of somebody's answer that are repeated
_LEAST_KEY = 6  # characters; what is shorter in an address is a word and no key ...
_LONGEST_WORD = 15  # ... and so is what has no digit, up to this
_HIDDEN = "***"


@dataclass(frozen=True)
class Endpoint:
    """How somebody is reached. `secrets` are those that are neither in the address nor in the proxy's."""

    url: str = field(repr=False)
    timeout: float = 10.0
    proxy: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    verify_tls: bool = True
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def host(self) -> str:
        """Return the only part of the address that may be shown."""
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return "?"
        host = f"[{host}]" if ":" in host else host
        return (f"{host}:{port}" if port else host) or "?"

    def redact(self, text: str) -> str:
        """Given what somebody said, return it on one line, short, and without any of our secrets."""
        for secret in sorted(self._hidden(), key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"

    def _hidden(self) -> set[str]:
        plain = {*self.secrets, *_secrets_in(self.url), *_secrets_in(self.proxy or "")} - {""}
        return {form for each in plain for form in (each, quote(each), quote(each, safe=""), json.dumps(each)[1:-1])}


def _secrets_in(url: str) -> set[str]:
    """Given an address, return everything in it that may be a key."""
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
    return len(word) > _LONGEST_WORD or (len(word) >= _LEAST_KEY and any(c.isdigit() for c in word))
