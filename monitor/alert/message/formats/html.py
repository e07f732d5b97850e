"""HTML, for mail."""

from __future__ import annotations

import html

from monitor.alert.message.document import Letter, Style
from monitor.alert.message.formats.base import Tags
from monitor.facts.findings import Severity

_COLOURS = {Severity.CRITICAL: "#c62828", Severity.WARNING: "#e65100", Severity.INFO: "#37474f"}
_GOOD = "#2e7d32"


def _heading(letter: Letter, title: str) -> str:
    colour = _GOOD if letter.resolved else _COLOURS[letter.severity]
    return f'<b style="color:{colour}">{title}</b>'


MARKUP = Tags(
    escape=html.escape,
    heading=_heading,
    link=lambda text, url: f'<a href="{html.escape(url)}">{text}</a>',
    around={
        Style.BOLD: ("<b>", "</b>"),
        Style.CODE: ("<code>", "</code>"),
        Style.MUTED: ('<span style="color:#757575">', "</span>"),
        Style.GOOD: (f'<span style="color:{_GOOD}">', "</span>"),
        Style.BAD: ('<span style="color:#c62828">', "</span>"),
    },
    joiner="<br>\n",
)
