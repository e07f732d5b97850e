"""Secrets masked in text of other programs: tokens with known prefixes, credentials by their names, URLs.

Every pattern takes linear time: none has nested or adjacent unbounded repetitions.
"""

from __future__ import annotations

import re

MASK = "***"

_NAMES = (
    r"token|secret|passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|signature|sig"
    r"|credentials?|authorization|auth|cookie|session[_-]?id|account[_-]?key|client[_-]?key|encryption[_-]?key"
)
_Substitutions = tuple[tuple[re.Pattern[str], str], ...]
# Recognisable by themselves.
_TOKENS: _Substitutions = (
    # Credentials in URLs; queries may be signed and grant access.
    (re.compile(r"(://)(?:[^\s/@\"'<>:]{0,200}:[^\s@\"'<>]{1,300}|[^\s/@\"'<>]{1,500})@"), rf"\1{MASK}@"),
    # The registry that a mirror stands for (`?ns=docker.io`) is public, and tells the mirror from the registry.
    (
        re.compile(
            r"(\b(?:https?|s3|gs|oss|ftp)://[^\s?\"']{1,2000})\?(?!ns=[\w.:-]{1,300}(?:[\s\"']|$))[^\s\"'<>]+"
        ),
        rf"\1?{MASK}",
    ),
    (
        re.compile(
            r"\b(?:hf_|gh[pousr]_|github_pat_|glpat-|sk-|xox[abeprs]-|npm_|pypi-|dckr_pat_|nvapi-|ya29\.|AIza|key-|rk_|pk_)"
            r"[A-Za-z0-9_.-]{8,}"
        ),
        MASK,
    ),
    (re.compile(r"\b(?:AKIA|ASIA|AGPA|AROA|LTAI|AKID)[A-Za-z0-9]{8,}"), MASK),
    (re.compile(r"\bey[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}\.?[A-Za-z0-9_-]*"), MASK),
    (re.compile(r"-----BEGIN [A-Z ]{1,40}-----.*"), MASK),
    (re.compile(r"\b(bearer|basic)\s{1,3}[A-Za-z0-9+/=._~-]{8,}", re.IGNORECASE), rf"\1 {MASK}"),
)  # fmt: skip
# Values after a name that suggests a secret; they may also match ordinary sentences.
_NAMED: _Substitutions = (
    (re.compile(r"\b(token)\s{1,3}[A-Za-z0-9+/=._~-]{8,}", re.IGNORECASE), rf"\1 {MASK}"),
    # name=value, "name": "value", --name value
    (
        re.compile(rf"((?:{_NAMES})s?\b\\?[\"']?\s{{0,3}}[:=]\s{{0,3}}\\?[\"']?)[^\s\"',;&]+", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    (
        re.compile(rf"(--[\w-]{{0,40}}(?:{_NAMES}|key)[\"']?(?:,\s?|\s)[\"']?)[^\s\"',]+", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    # Long values after a name, and keys in hexadecimal.
    (re.compile(rf"\b((?:{_NAMES}|key)s?\b[\"':= ]{{1,4}})[A-Za-z0-9+/=_.-]{{16,}}", re.IGNORECASE), rf"\1{MASK}"),
    (re.compile(r"\b[0-9a-fA-F]{32,}\b"), MASK),
)  # fmt: skip


def mask_tokens(text: str) -> str:
    """The text with credentials in URLs, signed queries and well-known kinds of tokens masked."""
    return _masked(text, _TOKENS)


def mask_secrets(text: str) -> str:
    """The text with everything that looks like a secret masked."""
    return _masked(_masked(text, _TOKENS), _NAMED)


def _masked(text: str, substitutions: _Substitutions) -> str:
    for pattern, replacement in substitutions:
        text = pattern.sub(replacement, text)
    return text
