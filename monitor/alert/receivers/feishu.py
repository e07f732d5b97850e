"""Feishu and Lark group bots (open.feishu.cn, open.larksuite.com): a card with a coloured header, optionally signed."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

from monitor.alert.message.document import AlertMessage
from monitor.alert.message.formats import feishu
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import OwnerContact, RateLimit, ReceiverSettings
from monitor.alert.receivers.bots import ENVELOPE_BYTES, BotCodes, JsonSizedMarkup, fitted
from monitor.alert.receivers.common import ID_HEADER, BaseReceiver, MessageWriter, endpoint_of
from monitor.base.http import post
from monitor.base.text import shorten
from monitor.facts.findings import Severity

MAX_BODY_BYTES = 20_000
MAX_TITLE_CHARS = 150
CODES = BotCodes(
    fields=("code", "StatusCode"),
    texts=("msg", "StatusMessage"),
    # Wrong token or parameters, signature, source address, keyword; invalid card.
    permanent=frozenset({19001, 19002, 19021, 19022, 19024, 11246}),
    retry_after={},
)
COLOURS = {Severity.CRITICAL: "red", Severity.WARNING: "orange", Severity.INFO: "blue"}


class Feishu(BaseReceiver):
    """A group bot. Its token is part of the URL; `secret` signs the requests."""

    kind = "feishu"
    default_pace = RateLimit(count=100, window=60.0, gap=0.2)

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._endpoint = endpoint_of(settings)
        # Feishu itself uses "all" for all members.
        tail = "".join(feishu.MARKUP.mention(OwnerContact(feishu=user)) or "" for user in settings.mention)
        self._writer = MessageWriter(self, feishu.MARKUP, tail=tail)
        self._sizer = MessageWriter(self, JsonSizedMarkup(feishu.MARKUP), tail=tail)

    def capacity(self, notifications: Sequence[Notification]) -> int:
        return self._sizer.capacity(notifications, MAX_BODY_BYTES - ENVELOPE_BYTES)

    def deliver(self, batch: Batch) -> str:
        message = self._writer.message(batch)
        signature = _signature(self.settings.secret, batch.at) if self.settings.secret else {}
        body = fitted(
            lambda room: signature | card(message, self._writer.text(batch, message, room)), MAX_BODY_BYTES
        )  # fmt: skip
        return CODES.accepted(self._endpoint, post(self._endpoint, body, {ID_HEADER: batch.id}))


def card(message: AlertMessage, text: str) -> dict[str, Any]:
    """Card with the rendered lines of a message."""
    title = {"tag": "plain_text", "content": shorten(message.title, MAX_TITLE_CHARS)}
    return {
        "msg_type": "interactive",
        "card": {
            "config": {"wide_screen_mode": True},
            "header": {"title": title, "template": "green" if message.resolved else COLOURS[message.severity]},
            "elements": [{"tag": "markdown", "content": text}],
        },
    }


def _signature(secret: str, now: float) -> dict[str, str]:
    """Timestamp and signature: for Feishu, time and secret are the key and the signed text is empty."""
    timestamp = str(int(now))
    digest = hmac.new(f"{timestamp}\n{secret}".encode(), b"", hashlib.sha256).digest()
    return {"timestamp": timestamp, "sign": base64.b64encode(digest).decode()}
