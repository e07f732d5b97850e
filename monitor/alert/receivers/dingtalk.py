"""DingTalk group bots (oapi.dingtalk.com): markdown, signed when the bot has a secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import quote

from monitor.alert.message.formats import dingtalk
from monitor.alert.message.formats.base import shorten
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import RateLimit, ReceiverSettings
from monitor.alert.receivers.bots import ENVELOPE_BYTES, BotCodes, JsonSizedMarkup, fitted
from monitor.alert.receivers.configured import ID_HEADER, MENTION_ALL, BaseReceiver, MessageWriter, endpoint_of
from monitor.base.http import post

LIMIT = 20_000  # bytes of the whole body
TITLE = 100  # characters; it is seen in the list of chats only
CODES = BotCodes(
    fields=("errcode",),
    words=("errmsg",),
    # Signature, keyword or time not right; too large; token unknown, group dissolved, bot switched off or gone; type or
    # parameter not right; forbidden words, links or pictures.
    permanent=frozenset({310000, 460101, 300001, 300005, 400013, 400101, 400102, 400105, 400106})
    | {40035, 43004, 430101, 430102, 430103, 430104},
    # It blocks for ten minutes. Asking once a minute finds out when that is over, and asks for no more of it.
    patience={130101: 60.0, 410100: 60.0},
)


class DingTalk(BaseReceiver):
    """A group bot. The token is in its address; `secret` is the key that its requests are signed with."""

    kind = "dingtalk"
    usual_pace = RateLimit(count=20, window=60.0)

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._way = endpoint_of(settings)
        self._always = tuple(each for each in settings.mention if each != MENTION_ALL)
        # Who is not named in the text is not called either.
        called = " ".join(f"@{each}" for each in self._always)
        self._writer = MessageWriter(self, dingtalk.MARKUP, tail=called)
        self._measure = MessageWriter(self, JsonSizedMarkup(dingtalk.MARKUP), tail=called)

    def holds(self, notifications: Sequence[Notification]) -> int:
        return self._measure.holds(notifications, LIMIT - ENVELOPE_BYTES)

    def deliver(self, parcel: Batch) -> str:
        letter = self._writer.letter(parcel)
        at = {"atMobiles": self._mobiles(letter.mentions), "isAtAll": MENTION_ALL in self.settings.mention}
        title = shorten(letter.title, TITLE)
        body = fitted(
            lambda room: {
                "msgtype": "markdown",
                "markdown": {"title": title, "text": self._writer.text(parcel, letter, room)},
                "at": at,
            },
            LIMIT,
        )
        way = self._way
        if self.settings.secret:
            way = replace(way, url=signed(way.url, self.settings.secret, parcel.at))
        return CODES.accepted(way, post(way, body, {ID_HEADER: parcel.id}))

    def _mobiles(self, users: Iterable[str]) -> list[str]:
        owners = [self.settings.owners[user] for user in users if user in self.settings.owners]
        return list(dict.fromkeys([*self._always, *(owner.mobile for owner in owners if owner.mobile)]))


def signed(url: str, secret: str, now: float) -> str:
    """Given the address and the secret of a bot, return the address of a request that is made now."""
    timestamp = str(round(now * 1000))
    digest = hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), hashlib.sha256).digest()
    joint = "&" if "?" in url else "?"
    return f"{url}{joint}timestamp={timestamp}&sign={quote(base64.b64encode(digest), safe='')}"
