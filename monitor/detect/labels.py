"""Values of labels: bounded and never empty."""

from __future__ import annotations

from monitor.base.text import shorten_name

MAX_LABEL_CHARS = 253  # the longest name in Kubernetes


def label_value(text: str) -> str:
    """`text` as the value of a label: cut to the allowed length, still unique, and never empty."""
    return shorten_name(text, MAX_LABEL_CHARS) or "?"
