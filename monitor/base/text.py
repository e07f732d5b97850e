"""Texts that anybody may have written, made fit to be shown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ELLIPSIS = "…"
MAX_LISTED_NAMES = 20  # a longer list of names would not be read


def clean(text: str) -> str:
    """Given any text, return it without what breaks a line, hides itself, or cannot be sent."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def shorten(text: str, most: int) -> str:
    """Given a text, return at most that many characters of it, with an ellipsis where some are missing."""
    return text if len(text) <= most else text[: max(0, most - 1)].rstrip() + ELLIPSIS


def unknown(kind: str, given: str, known: Iterable[str], prefix: str = "") -> str:
    """Given a name that is not known, return that, with the nearest known name or, if they are few, all.

    A `prefix` that all names share is left out of the comparison: it would make them all look alike.
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(given, names, n=1)
    if nearest:
        return f"unknown {kind}; did you mean {prefix + nearest[0]!r}?"
    return f"unknown {kind}; there are {', '.join(names)}" if 0 < len(names) <= MAX_LISTED_NAMES else f"unknown {kind}"
