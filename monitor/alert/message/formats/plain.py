"""Plain text: terminal, text part of a mail, and everything without a format of its own."""

from __future__ import annotations

from monitor.alert.message.formats.base import TagMarkup

MARKUP = TagMarkup(
    escape=lambda text: text,
    heading=lambda _, title: title,
    link=lambda text, url: f"{text}: {url}",
)
