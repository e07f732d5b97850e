"""Markdown and plain text of WeCom group bots.

Markdown has three colours and mentions by user id. Text has links in angle brackets; mentions are in the request.
"""

from __future__ import annotations

from dataclasses import replace

from monitor.alert.message.document import AlertMessage, SpanStyle
from monitor.alert.message.formats import plain
from monitor.alert.message.formats.base import TagMarkup
from monitor.alert.message.formats.markdown import escape, escape_code, is_id, link
from monitor.alert.receivers.base import OwnerContact
from monitor.facts.findings import Severity

_COLOURS = {Severity.CRITICAL: "warning", Severity.WARNING: "warning", Severity.INFO: "comment"}


def _heading(message: AlertMessage, title: str) -> str:
    colour = "info" if message.resolved else _COLOURS[message.severity]
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
TEXT_MARKUP = replace(plain.MARKUP, escape=lambda text: text.replace("<", "＜"))  # noqa: RUF001  # a look-alike
