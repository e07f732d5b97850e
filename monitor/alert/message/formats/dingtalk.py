"""Markdown as the bots of DingTalk show it. A mention counts only where the mobile number is named apart as well."""

from __future__ import annotations

from monitor.alert.message.document import Style
from monitor.alert.message.formats.base import Tags
from monitor.alert.message.formats.markdown import escape, escape_code, is_id, link
from monitor.alert.receivers.base import Owner


def _mention(owner: Owner) -> str | None:
    return f"@{owner.mobile}" if is_id(owner.mobile) else None


MARKUP = Tags(
    escape=escape,
    escape_code=escape_code,
    heading=lambda _, title: f"### {title}",
    link=link,
    mention=_mention,
    around={Style.BOLD: ("**", "**"), Style.GOOD: ("**", "**"), Style.BAD: ("**", "**"), Style.CODE: ("`", "`")},
    joiner="  \n  ",  # a bare line feed is not shown as one
)
