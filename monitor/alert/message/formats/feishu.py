"""Markdown in a card of Feishu or Lark. The title is in the header of the card."""

from __future__ import annotations

import re

from monitor.alert.message.document import SpanStyle
from monitor.alert.message.formats.base import TagMarkup
from monitor.alert.message.formats.markdown import is_id, link
from monitor.alert.receivers.base import OwnerContact

# The documented way to escape is numeric entities; `code` shows them verbatim, so it is not used.
_SPECIAL = re.compile(r"[&<>*~_`\[\]()#!\\|$:]")


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", text)


def _mention(owner: OwnerContact) -> str | None:
    if owner.feishu is None or not is_id(owner.feishu):
        return None
    kind = "email" if "@" in owner.feishu else "id"
    return f"<at {kind}={owner.feishu}></at>"


MARKUP = TagMarkup(
    escape=_escape,
    heading=lambda _message, _title: "",
    link=link,
    mention=_mention,
    around={
        SpanStyle.BOLD: ("**", "**"),
        SpanStyle.MUTED: ("<font color='grey'>", "</font>"),
        SpanStyle.GOOD: ("<font color='green'>", "</font>"),
        SpanStyle.BAD: ("<font color='red'>", "</font>"),
    },
)
