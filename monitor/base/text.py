"""Texts that anybody may have written, made fit to be shown."""

from __future__ import annotations

ELLIPSIS = "…"


def clean(text: str) -> str:
    """Given any text, return it without what breaks a line, hides itself, or cannot be sent."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def shorten(text: str, most: int) -> str:
    """Given a text, return at most that many characters of it, with an ellipsis where some are missing."""
    return text if len(text) <= most else text[: max(0, most - 1)].rstrip() + ELLIPSIS
