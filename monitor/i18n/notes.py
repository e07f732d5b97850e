"""Notes as sentences. Pure."""

from __future__ import annotations

from monitor.facts.text import Text
from monitor.i18n import say


def sentence(note: Text, lang: str) -> str:
    """Given a note, return its sentence. One that a catalog lacks must not hide that something is wrong."""
    try:
        return say(lang, note.key, note.values)
    except (KeyError, ValueError):
        return " ".join((note.key, *(f"{name}={value}" for name, value in note.values.items())))
