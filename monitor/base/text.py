"""Untrusted text made presentable."""

from __future__ import annotations

import difflib
import hashlib
import unicodedata
from collections.abc import Iterable

ELLIPSIS = "…"  # marks every truncation
# Limit of every string from outside: the longest path that Linux accepts, and four times the longest image reference.
MAX_TEXT_CHARS = 4096
_HASH_CHARS = 12
_HASH_MARK = f"{ELLIPSIS}#"
_JOINER = "\u200d"
_MAX_CLUSTER_CHARS = 32  # stacked accents beyond this are split
MAX_LISTED_NAMES = 24  # a longer list of names would not be read


def clean(text: str) -> str:
    """The text without control characters, line breaks and invisible characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def shorten(text: str, most: int) -> str:
    """At most `most` characters of the text, with an ellipsis if some are missing. Accents stay on their letters."""
    if len(text) <= most:
        return text
    return text[: _boundary(text, max(0, most - len(ELLIPSIS)))].rstrip() + ELLIPSIS if most > 0 else ""


def shorten_name(text: str, most: int) -> str:
    """At most `most` characters that still identify the text: the beginning, an ellipsis and a hash of the whole."""
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return text[: _boundary(text, max(0, most - len(_HASH_MARK) - _HASH_CHARS))] + _HASH_MARK + digest


def shortened_prefix(text: str) -> str | None:
    """What `shorten_name` kept of a longer text; None if the text is complete."""
    prefix, mark, digest = text.rpartition(_HASH_MARK)
    return prefix if mark and len(digest) == _HASH_CHARS else None


def _boundary(text: str, end: int) -> int:
    """The last position up to `end` that does not separate a letter from its accents or an emoji from its modifiers."""
    start = max(0, end - _MAX_CLUSTER_CHARS)
    for position in range(end, start, -1):
        if not _continues(text[position]) and text[position - 1] != _JOINER:
            return position
    return 0 if start == 0 else end


def _continues(char: str) -> bool:
    return char == _JOINER or unicodedata.category(char).startswith("M") or 0x1F3FB <= ord(char) <= 0x1F3FF


def unknown(kind: str, given: str, known: Iterable[str], prefix: str = "") -> str:
    """Error text for an unknown name: with the closest known name or, if they are few, all of them.

    A `prefix` shared by all names is left out of the comparison, because it would make them all look similar.
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(given, names, n=1)
    if nearest:
        return f"unknown {kind}; did you mean {prefix + nearest[0]!r}?"
    return f"unknown {kind}; there are {', '.join(names)}" if 0 < len(names) <= MAX_LISTED_NAMES else f"unknown {kind}"
