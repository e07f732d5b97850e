"""DingTalk group bots (oapi.dingtalk.com): markdown, signed if the bot has a secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import quote

from monitor.alert.message.formats import dingtalk
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import RateLimit, ReceiverSettings
from monitor.alert.receivers.bots import ENVELOPE_BYTES, BotCodes, JsonSizedMarkup, fitted
from monitor.alert.receivers.common import ID_HEADER, MENTION_ALL, BaseReceiver, MessageWriter, endpoint_of
from monitor.base.http import post
from monitor.base.text import shorten

MAX_BODY_BYTES = 20_000
MAX_TITLE_CHARS = 100  # shown in the list of chats only
CODES = BotCodes(
    fields=("errcode",),
    texts=("errmsg",),
    # Wrong signature, keyword or time; too large; unknown token, dissolved group, bot disabled or removed; wrong type
    # or parameter; forbidden words, links or pictures.
    permanent=frozenset({310000, 460101, 300001, 300005, 400013, 400101, 400102, 400105, 400106})
    | {40035, 43004, 430101, 430102, 430103, 430104},
    # DingTalk blocks for ten minutes; an attempt per minute notices the end and does not extend the block.
    retry_after={130101: 60.0, 410100: 60.0},
)


class DingTalk(BaseReceiver):
    """A group bot. Its token is part of the URL; `secret` signs the requests."""

    kind = "dingtalk"
    default_pace = RateLimit(count=20, window=60.0)

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._endpoint = endpoint_of(settings)
        self._always = tuple(mobile for mobile in settings.mention if mobile != MENTION_ALL)
        tail = " ".join(f"@{mobile}" for mobile in self._always)  # a mention must be in the text as well
        self._writer = MessageWriter(self, dingtalk.MARKUP, tail=tail)
        self._sizer = MessageWriter(self, JsonSizedMarkup(dingtalk.MARKUP), tail=tail)

    def capacity(self, notifications: Sequence[Notification]) -> int:
        return self._sizer.capacity(notifications, MAX_BODY_BYTES - ENVELOPE_BYTES)

    def deliver(self, batch: Batch) -> str:
        message = self._writer.message(batch)
        at = {"atMobiles": self._mobiles(message.mentions), "isAtAll": MENTION_ALL in self.settings.mention}
        title = shorten(message.title, MAX_TITLE_CHARS)
        body = fitted(
            lambda room: {
                "msgtype": "markdown",
                "markdown": {"title": title, "text": self._writer.text(batch, message, room)},
                "at": at,
            },
            MAX_BODY_BYTES,
        )
        endpoint = self._endpoint
        if self.settings.secret:
            endpoint = replace(endpoint, url=signed(endpoint.url, self.settings.secret, batch.at))
        return CODES.accepted(endpoint, post(endpoint, body, {ID_HEADER: batch.id}))

    def _mobiles(self, users: Iterable[str]) -> list[str]:
        owners = [self.settings.owners[user] for user in users if user in self.settings.owners]
        return list(dict.fromkeys([*self._always, *(owner.mobile for owner in owners if owner.mobile)]))


def signed(url: str, secret: str, now: float) -> str:
    """URL of a bot with the signature of a request made at `now`."""
    timestamp = str(round(now * 1000))
    digest = hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), hashlib.sha256).digest()
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}timestamp={timestamp}&sign={quote(base64.b64encode(digest), safe='')}"
