"""Markdown as the group bots of WeCom show it: three colours, mentions by user id, 4096 bytes."""

from __future__ import annotations

from monitor.alert.message.document import AlertMessage, SpanStyle
from monitor.alert.message.formats.base import TagMarkup
from monitor.alert.message.formats.markdown import escape, escape_code, is_id, link
from monitor.alert.receivers.base import OwnerContact
from monitor.facts.findings import Severity

_COLOURS = {Severity.CRITICAL: "warning", Severity.WARNING: "warning", Severity.INFO: "comment"}


def _heading(letter: AlertMessage, title: str) -> str:
    colour = "info" if letter.resolved else _COLOURS[letter.severity]
    return f'**<font color="{colour}">{title}</font>**'


def _mention(owner: OwnerContact) -> str | None:
    return f"<@{owner.wecom}>" if is_id(owner.wecom) else None


MARKUP = TagMarkup(
    escape=escape,
    escape_code=escape_code,
    heading=_heading,
    link=link,
    mention=_mention,
    around={
        SpanStyle.BOLD: ("**", "**"),
        SpanStyle.CODE: ("`", "`"),
        SpanStyle.MUTED: ('<font color="comment">', "</font>"),
        SpanStyle.GOOD: ('<font color="info">', "</font>"),
        SpanStyle.BAD: ('<font color="warning">', "</font>"),
    },
)
