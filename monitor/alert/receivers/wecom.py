"""WeCom group bots (qyapi.weixin.qq.com): coloured markdown, or text for mentions that markdown cannot express.

Markdown supports `<@userid>`; mobile numbers and @all work in text only, so a message that mentions one of them is sent
as text. Markdown that is refused for its content is sent as text on the next attempt: each attempt is one request,
because the bot accepts 20 per minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.alert.message.formats import wecom
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import DeliveryError, OwnerContact, RateLimit, ReceiverSettings
from monitor.alert.receivers.bots import BotCodes
from monitor.alert.receivers.common import ID_HEADER, MENTION_ALL, BaseReceiver, MessageWriter
from monitor.base.http import post_json

MAX_MARKDOWN_BYTES = 4096
MAX_TEXT_BYTES = 2048
# Refusals that sending text may cure: type, characters, parameters or length; JSON that was not understood.
CONTENT_CODES = frozenset({40008, 40033, 40035, 40058, 45002, 47001})
CODES = BotCodes(
    fields=("errcode",),
    texts=("errmsg",),
    permanent=CONTENT_CODES | {44004, 93000, 93004, 93008},  # empty; wrong key; bot disabled; not in the group
    retry_after={},
)


@dataclass(frozen=True)
class WeComMentions:
    """Mentions in a text message."""

    ids: tuple[str, ...]
    mobiles: tuple[str, ...]

    @property
    def need_text(self) -> bool:
        return bool(self.mobiles) or "@all" in self.ids


class WeCom(BaseReceiver):
    """A group bot. Its key is part of the URL."""

    kind = "wecom"
    default_pace = RateLimit(count=20, window=60.0)

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        always = [user for user in settings.mention if user != MENTION_ALL]
        tail = "".join(wecom.MARKUP.mention(OwnerContact(wecom=user)) or "" for user in always)
        self._markdown = MessageWriter(self, wecom.MARKUP, tail=tail)
        self._text = MessageWriter(self, wecom.TEXT_MARKUP)
        self._refused_as_markdown = ""  # id of a batch

    def capacity(self, notifications: Sequence[Notification]) -> int:
        users = [user for notification in notifications for user in notification.users]
        if self._mentions(users).need_text:
            return self._text.capacity(notifications, MAX_TEXT_BYTES)
        return self._markdown.capacity(notifications, MAX_MARKDOWN_BYTES)

    def deliver(self, batch: Batch) -> str:
        message = self._markdown.message(batch)
        mentions = self._mentions(message.mentions)
        as_text = mentions.need_text or batch.id == self._refused_as_markdown
        if as_text:
            payload = _text_payload(self._text.text(batch, message, MAX_TEXT_BYTES), mentions)
        else:
            content = self._markdown.text(batch, message, MAX_MARKDOWN_BYTES)
            payload = {"msgtype": "markdown", "markdown": {"content": content}}
        reply = post_json(self.endpoint, payload, {ID_HEADER: batch.id})
        code, text = CODES.code(self.endpoint, reply)
        if code in CONTENT_CODES and not as_text:
            self._refused_as_markdown = batch.id
            raise DeliveryError(
                f"{self.endpoint.host} answered {code} {text}; the next attempt sends text", retryable=True
            )
        return CODES.accepted(self.endpoint, reply)

    def _mentions(self, users: Iterable[str]) -> WeComMentions:
        """Mentions of the configured users and of the owners."""
        owners = [self.settings.owners[user] for user in dict.fromkeys(users) if user in self.settings.owners]
        always = ["@all" if user == MENTION_ALL else user for user in self.settings.mention]
        ids = [*always, *(owner.wecom for owner in owners if owner.wecom)]
        mobiles = [owner.mobile for owner in owners if owner.mobile and not owner.wecom]
        return WeComMentions(tuple(dict.fromkeys(ids)), tuple(dict.fromkeys(mobiles)))


def _text_payload(content: str, mentions: WeComMentions) -> dict[str, Any]:
    text: dict[str, Any] = {"content": content}
    if mentions.ids:
        text["mentioned_list"] = list(mentions.ids)
    if mentions.mobiles:
        text["mentioned_mobile_list"] = list(mentions.mobiles)
    return {"msgtype": "text", "text": text}
