"""Markdown inside a card of Feishu or Lark. The title is in the card's header and not repeated here."""

from __future__ import annotations

import re

from monitor.alert.message.document import Style
from monitor.alert.message.formats.base import Tags
from monitor.alert.message.formats.markdown import is_id, link
from monitor.alert.receivers.base import Owner

# Numeric entities are the way to escape that its documentation names; `code` shows them as they are, so there is none.
_SPECIAL = re.compile(r"[&<>*~_`\[\]()#!\\|$:]")


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", text)


def _mention(owner: Owner) -> str | None:
    if owner.feishu is None or not is_id(owner.feishu):
        return None
    kind = "email" if "@" in owner.feishu else "id"
    return f"<at {kind}={owner.feishu}></at>"


MARKUP = Tags(
    escape=_escape,
    heading=lambda _letter, _title: "",
    link=link,
    mention=_mention,
    around={
        Style.BOLD: ("**", "**"),
        Style.MUTED: ("<font color='grey'>", "</font>"),
        Style.GOOD: ("<font color='green'>", "</font>"),
        Style.BAD: ("<font color='red'>", "</font>"),
    },
)
