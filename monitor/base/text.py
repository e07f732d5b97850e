"""Untrusted text made presentable."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ELLIPSIS = "…"
MAX_LISTED_NAMES = 20  # a longer list of names would not be read


def clean(text: str) -> str:
    """The text without control characters, line breaks and invisible characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def shorten(text: str, most: int) -> str:
    """At most `most` characters of the text, with an ellipsis if some are missing."""
    return text if len(text) <= most else text[: max(0, most - 1)].rstrip() + ELLIPSIS


def unknown(kind: str, given: str, known: Iterable[str], prefix: str = "") -> str:
    """Error text for an unknown name: with the closest known name or, if they are few, all of them.

    A `prefix` shared by all names is left out of the comparison, because it would make them all look similar.
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(given, names, n=1)
    if nearest:
        return f"unknown {kind}; did you mean {prefix + nearest[0]!r}?"
    return f"unknown {kind}; there are {', '.join(names)}" if 0 < len(names) <= MAX_LISTED_NAMES else f"unknown {kind}"
