"""Markdown of DingTalk bots. A mention has an effect only if the request lists the mobile number as well."""

from __future__ import annotations

from monitor.alert.message.document import SpanStyle
from monitor.alert.message.formats.base import TagMarkup
from monitor.alert.message.formats.markdown import escape, escape_code, is_id, link
from monitor.alert.receivers.base import OwnerContact


def _mention(owner: OwnerContact) -> str | None:
    return f"@{owner.mobile}" if is_id(owner.mobile) else None


MARKUP = TagMarkup(
    escape=escape,
    escape_code=escape_code,
    heading=lambda _, title: f"### {title}",
    link=link,
    mention=_mention,
    around=dict.fromkeys((SpanStyle.BOLD, SpanStyle.GOOD, SpanStyle.BAD), ("**", "**")) | {SpanStyle.CODE: ("`", "`")},
    joiner="  \n  ",  # a bare line feed is not rendered
)
