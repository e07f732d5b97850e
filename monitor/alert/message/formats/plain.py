"""Text without any markup: the terminal, the text part of a mail, everything else."""

from __future__ import annotations

from monitor.alert.message.formats.base import TagMarkup

MARKUP = TagMarkup(
    escape=lambda text: text,
    heading=lambda _, title: title,
    link=lambda text, url: f"{text}: {url}",
)
