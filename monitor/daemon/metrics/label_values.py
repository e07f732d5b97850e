"""Label values from names that users and other systems choose."""

from __future__ import annotations

from monitor.base.metrics import label
from monitor.base.text import shorten

MAX_LABEL_CHARS = 253  # longest Kubernetes name; an owner taken from an annotation may be longer


def short(text: str | int | None) -> str:
    """Label value of bounded length."""
    if text is None:
        return ""
    if isinstance(text, str) and text.isascii() and len(text) <= MAX_LABEL_CHARS:  # nearly all are
        return text
    return shorten(label(text), MAX_LABEL_CHARS)
