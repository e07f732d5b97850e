"""Feishu and Lark group bots (open.feishu.cn, open.larksuite.com): a card with a coloured header, signed or not."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

from monitor.alert.message.document import AlertMessage
from monitor.alert.message.formats import feishu
from monitor.alert.message.formats.base import shorten
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import OwnerContact, RateLimit, ReceiverSettings
from monitor.alert.receivers.bots import ENVELOPE_BYTES, BotCodes, JsonSizedMarkup, fitted
from monitor.alert.receivers.configured import ID_HEADER, BaseReceiver, MessageWriter, endpoint_of
from monitor.base.http import post
from monitor.facts.findings import Severity

LIMIT = 20_000  # bytes of the whole body
TITLE = 150  # characters
CODES = BotCodes(
    fields=("code", "StatusCode"),
    words=("msg", "StatusMessage"),
    # Token or parameters not right, signature, sender's address, keyword; a card that is not understood.
    permanent=frozenset({19001, 19002, 19021, 19022, 19024, 11246}),
    patience={},
)
COLOURS = {Severity.CRITICAL: "red", Severity.WARNING: "orange", Severity.INFO: "blue"}


class Feishu(BaseReceiver):
    """A group bot. The token is in its address; `secret` is the key that its requests are signed with."""

    kind = "feishu"
    usual_pace = RateLimit(count=100, window=60.0, gap=0.2)

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._way = endpoint_of(settings)
        # "all" is its own word for everybody, too.
        called = "".join(feishu.MARKUP.mention(OwnerContact(feishu=each)) or "" for each in settings.mention)
        self._writer = MessageWriter(self, feishu.MARKUP, tail=called)
        self._measure = MessageWriter(self, JsonSizedMarkup(feishu.MARKUP), tail=called)

    def holds(self, notifications: Sequence[Notification]) -> int:
        return self._measure.holds(notifications, LIMIT - ENVELOPE_BYTES)

    def deliver(self, parcel: Batch) -> str:
        letter = self._writer.letter(parcel)
        seal = _seal(self.settings.secret, parcel.at) if self.settings.secret else {}
        body = fitted(lambda room: seal | card(letter, self._writer.text(parcel, letter, room)), LIMIT)
        return CODES.accepted(self._way, post(self._way, body, {ID_HEADER: parcel.id}))


def card(letter: AlertMessage, text: str) -> dict[str, Any]:
    """Given a letter and its lines written out, return the message."""
    title = {"tag": "plain_text", "content": shorten(letter.title, TITLE)}
    return {
        "msg_type": "interactive",
        "card": {
            "config": {"wide_screen_mode": True},
            "header": {"title": title, "template": "green" if letter.resolved else COLOURS[letter.severity]},
            "elements": [{"tag": "markdown", "content": text}],
        },
    }


def _seal(secret: str, now: float) -> dict[str, str]:
    """Return the time and the signature: the secret is in the key here, and nothing is signed with it."""
    timestamp = str(int(now))
    digest = hmac.new(f"{timestamp}\n{secret}".encode(), b"", hashlib.sha256).digest()
    return {"timestamp": timestamp, "sign": base64.b64encode(digest).decode()}
