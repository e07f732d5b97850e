"""Slack's mrkdwn. With `verbatim`, only angle brackets make links and mentions."""

from __future__ import annotations

import html

from monitor.alert.message.document import SpanStyle
from monitor.alert.message.formats.base import TagMarkup
from monitor.alert.message.formats.markdown import is_id
from monitor.alert.receivers.base import OwnerContact

_LOOK_ALIKES = str.maketrans({"*": "∗", "`": "'", "~": "∼"})  # noqa: RUF001  # look-alikes


def _escape(text: str) -> str:
    return html.escape(text, quote=False).translate(_LOOK_ALIKES)


def _escape_code(text: str) -> str:
    return html.escape(text, quote=False).replace("`", "'")


def _mention(owner: OwnerContact) -> str | None:
    return f"<@{owner.slack}>" if is_id(owner.slack) else None


MARKUP = TagMarkup(
    escape=_escape,
    escape_code=_escape_code,
    heading=lambda _, title: f"*{title}*",
    link=lambda text, url: f"<{url.replace('|', '%7C')}|{text}>",
    mention=_mention,
    around=dict.fromkeys((SpanStyle.BOLD, SpanStyle.GOOD, SpanStyle.BAD), ("*", "*")) | {SpanStyle.CODE: ("`", "`")},
)
