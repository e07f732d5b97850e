"""Slack's mrkdwn. Send it as `verbatim`: then nothing but what is in angle brackets is a link or a mention."""

from __future__ import annotations

import html

from monitor.alert.message.document import Style
from monitor.alert.message.formats.base import Tags
from monitor.alert.message.formats.markdown import is_id
from monitor.alert.receivers.base import Owner

_LOOK_ALIKES = str.maketrans({"*": "∗", "`": "'", "~": "∼"})  # noqa: RUF001  # they look alike on purpose


def _escape(text: str) -> str:
    return html.escape(text, quote=False).translate(_LOOK_ALIKES)


def _escape_code(text: str) -> str:
    return html.escape(text, quote=False).replace("`", "'")


def _mention(owner: Owner) -> str | None:
    return f"<@{owner.slack}>" if is_id(owner.slack) else None


MARKUP = Tags(
    escape=_escape,
    escape_code=_escape_code,
    heading=lambda _, title: f"*{title}*",
    link=lambda text, url: f"<{url.replace('|', '%7C')}|{text}>",
    mention=_mention,
    around={Style.BOLD: ("*", "*"), Style.GOOD: ("*", "*"), Style.BAD: ("*", "*"), Style.CODE: ("`", "`")},
)
