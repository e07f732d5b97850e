"""Texts rendered in a language. Pure."""

from __future__ import annotations

from monitor.facts.text import Text
from monitor.i18n import say


def sentence(note: Text, lang: str) -> str:
    """Rendered text. If the catalog lacks the key, the key and values are shown, so that the problem stays visible."""
    try:
        return say(lang, note.key, note.values)
    except (KeyError, ValueError):
        return " ".join((note.key, *(f"{name}={value}" for name, value in note.values.items())))
