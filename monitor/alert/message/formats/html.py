"""HTML for mail."""

from __future__ import annotations

import html

from monitor.alert.message.document import AlertMessage, SpanStyle
from monitor.alert.message.formats.base import TagMarkup
from monitor.facts.findings import Severity

_COLOURS = {Severity.CRITICAL: "#c62828", Severity.WARNING: "#e65100", Severity.INFO: "#37474f"}
_GOOD = "#2e7d32"


def _heading(message: AlertMessage, title: str) -> str:
    colour = _GOOD if message.resolved else _COLOURS[message.severity]
    return f'<b style="color:{colour}">{title}</b>'


MARKUP = TagMarkup(
    escape=html.escape,
    heading=_heading,
    link=lambda text, url: f'<a href="{html.escape(url)}">{text}</a>',
    around={
        SpanStyle.BOLD: ("<b>", "</b>"),
        SpanStyle.CODE: ("<code>", "</code>"),
        SpanStyle.MUTED: ('<span style="color:#757575">', "</span>"),
        SpanStyle.GOOD: (f'<span style="color:{_GOOD}">', "</span>"),
        SpanStyle.BAD: ('<span style="color:#c62828">', "</span>"),
    },
    joiner="<br>\n",
)
