"""Markdown as the group bots of WeCom show it: three colours, mentions by user id, 4096 bytes."""

from __future__ import annotations

from monitor.alert.message.document import Letter, Style
from monitor.alert.message.formats.base import Tags
from monitor.alert.message.formats.markdown import escape, escape_code, is_id, link
from monitor.alert.receivers.base import Owner
from monitor.facts.findings import Severity

_COLOURS = {Severity.CRITICAL: "warning", Severity.WARNING: "warning", Severity.INFO: "comment"}


def _heading(letter: Letter, title: str) -> str:
    colour = "info" if letter.resolved else _COLOURS[letter.severity]
    return f'**<font color="{colour}">{title}</font>**'


def _mention(owner: Owner) -> str | None:
    return f"<@{owner.wecom}>" if is_id(owner.wecom) else None


MARKUP = Tags(
    escape=escape,
    escape_code=escape_code,
    heading=_heading,
    link=link,
    mention=_mention,
    around={
        Style.BOLD: ("**", "**"),
        Style.CODE: ("`", "`"),
        Style.MUTED: ('<font color="comment">', "</font>"),
        Style.GOOD: ('<font color="info">', "</font>"),
        Style.BAD: ('<font color="warning">', "</font>"),
    },
)
