"""Feishu and Lark group bots (open.feishu.cn, open.larksuite.com): a card with a coloured header, optionally signed."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from monitor.alert.message.document import AlertMessage
from monitor.alert.message.formats import feishu
from monitor.alert.model import Batch
from monitor.alert.receivers.base import OwnerContact, RateLimit
from monitor.alert.receivers.bots import BodyLimitedBot, BotCodes
from monitor.alert.receivers.common import ID_HEADER
from monitor.base.http import post
from monitor.base.text import shorten
from monitor.facts.findings import Severity

MAX_TITLE_CHARS = 150
CODES = BotCodes(
    fields=("code", "StatusCode"),
    texts=("msg", "StatusMessage"),
    # Wrong token or parameters, signature, source address, keyword; invalid card.
    permanent=frozenset({19001, 19002, 19021, 19022, 19024, 11246}),
    retry_after={},
)
COLOURS = {Severity.CRITICAL: "red", Severity.WARNING: "orange", Severity.INFO: "blue"}


class Feishu(BodyLimitedBot):
    """A group bot. Its token is part of the URL; `secret` signs the requests."""

    kind = "feishu"
    default_pace = RateLimit(count=100, window=60.0, gap=0.2)
    markup = feishu.MARKUP
    max_bytes = 20_000

    def tail(self) -> str:
        # Feishu itself uses "all" for all members.
        return "".join(feishu.MARKUP.mention(OwnerContact(feishu=user)) or "" for user in self.settings.mention)

    def deliver(self, batch: Batch) -> str:
        message = self.writer.message(batch)
        signature = _signature(self.settings.secret, batch.at) if self.settings.secret else {}
        body = self.fitted(lambda room: signature | card(message, self.writer.text(batch, message, room)))
        return CODES.accepted(self.endpoint, post(self.endpoint, body, {ID_HEADER: batch.id}))


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
