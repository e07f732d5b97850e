"""Markdown inside a card of Feishu or Lark. The title is in the card's header and not repeated here."""

from __future__ import annotations

import re

from monitor.alert.message.document import SpanStyle
from monitor.alert.message.formats.base import TagMarkup
from monitor.alert.message.formats.markdown import is_id, link
from monitor.alert.receivers.base import OwnerContact

# Numeric entities are the way to escape that its documentation names; `code` shows them as they are, so there is none.
_SPECIAL = re.compile(r"[&<>*~_`\[\]()#!\\|$:]")


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", text)


def _mention(owner: OwnerContact) -> str | None:
    if owner.feishu is None or not is_id(owner.feishu):
        return None
    kind = "email" if "@" in owner.feishu else "id"
    return f"<at {kind}={owner.feishu}></at>"


MARKUP = TagMarkup(
    escape=_escape,
    heading=lambda _letter, _title: "",
    link=link,
    mention=_mention,
    around={
        SpanStyle.BOLD: ("**", "**"),
        SpanStyle.MUTED: ("<font color='grey'>", "</font>"),
        SpanStyle.GOOD: ("<font color='green'>", "</font>"),
        SpanStyle.BAD: ("<font color='red'>", "</font>"),
    },
)
