"""Colours of severities and states in the terminal."""

from __future__ import annotations

_STYLES = {
    "bold red": ("critical", "faulty", "wedged", "failed"),
    "red": ("zombie", "orphan", "ghost", "phantom", "not ready", "firing"),
    "yellow": ("warning", "idle-held", "cordoned", "refused"),
    "cyan": ("info", "pending", "later"),
    "green": ("free", "ok", "accepted", "done", "resolved"),
    "dim": ("unknown", "no agent"),
}
_BY_WORD = {word: style for style, words in _STYLES.items() for word in words}


def word_style(word: str) -> str:
    """Style of a severity or state; empty for any other word."""
    return _BY_WORD.get(word, "")
