"""DingTalk group bots (oapi.dingtalk.com): markdown, signed if the bot has a secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import quote

from monitor.alert.message.formats import dingtalk
from monitor.alert.model import Batch
from monitor.alert.receivers.base import RateLimit
from monitor.alert.receivers.bots import BodyLimitedBot, BotCodes
from monitor.alert.receivers.common import ID_HEADER, MENTION_ALL
from monitor.base.http import post
from monitor.base.text import shorten

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


class DingTalk(BodyLimitedBot):
    """A group bot. Its token is part of the URL; `secret` signs the requests."""

    kind = "dingtalk"
    default_pace = RateLimit(count=20, window=60.0)
    markup = dingtalk.MARKUP
    max_bytes = 20_000

    def tail(self) -> str:
        return " ".join(f"@{mobile}" for mobile in self._always())  # a mention must be in the text as well

    def deliver(self, batch: Batch) -> str:
        message = self.writer.message(batch)
        at = {"atMobiles": self._mobiles(message.mentions), "isAtAll": MENTION_ALL in self.settings.mention}
        title = shorten(message.title, MAX_TITLE_CHARS)
        body = self.fitted(
            lambda room: {
                "msgtype": "markdown",
                "markdown": {"title": title, "text": self.writer.text(batch, message, room)},
                "at": at,
            }
        )
        endpoint = self.endpoint
        if self.settings.secret:
            endpoint = replace(endpoint, url=signed(endpoint.url, self.settings.secret, batch.at))
        return CODES.accepted(endpoint, post(endpoint, body, {ID_HEADER: batch.id}))

    def _always(self) -> list[str]:
        return [mobile for mobile in self.settings.mention if mobile != MENTION_ALL]

    def _mobiles(self, users: Iterable[str]) -> list[str]:
        owners = [self.settings.owners[user] for user in users if user in self.settings.owners]
        return list(dict.fromkeys([*self._always(), *(owner.mobile for owner in owners if owner.mobile)]))


def signed(url: str, secret: str, now: float) -> str:
    """URL of a bot with the signature of a request made at `now`."""
    timestamp = str(round(now * 1000))
    digest = hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), hashlib.sha256).digest()
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}timestamp={timestamp}&sign={quote(base64.b64encode(digest), safe='')}"
