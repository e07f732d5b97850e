"""Values of labels: bounded and never empty."""

from __future__ import annotations

from collections.abc import Mapping

from monitor.base.text import shorten_name

MAX_LABEL_CHARS = 253  # the longest name in Kubernetes


def label_value(text: str) -> str:
    """`text` as the value of a label: cut to the allowed length, still unique, and never empty."""
    return shorten_name(text, MAX_LABEL_CHARS) or "?"


def label_values(labels: Mapping[str, str | None]) -> dict[str, str]:
    """Labels that have a value, cut to the allowed length."""
    return {name: label_value(value) for name, value in labels.items() if value}
