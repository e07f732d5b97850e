"""WeCom group bots (qyapi.weixin.qq.com): markdown with colours, or text where only text can mention somebody.

A bot knows `<@userid>` in markdown, but mobile numbers and @all only in text. So a message that has to reach somebody
whose user id is not known, or everybody, goes as text. A markdown message that is refused for what it contains goes as
text at the next attempt: one attempt is one request, as the bot counts 20 of them in a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.alert.message.formats import wecom, wecom_text
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import DeliveryError, OwnerContact, RateLimit, ReceiverSettings
from monitor.alert.receivers.bots import BotCodes
from monitor.alert.receivers.configured import ID_HEADER, MENTION_ALL, BaseReceiver, MessageWriter, endpoint_of
from monitor.base.http import post_json

MARKDOWN_LIMIT = 4096
TEXT_LIMIT = 2048
# What text may cure: a type, characters, parameters or a length that is not taken; JSON that is not understood.
CONTENT = frozenset({40008, 40033, 40035, 40058, 45002, 47001})
CODES = BotCodes(
    fields=("errcode",),
    words=("errmsg",),
    permanent=CONTENT | {44004, 93000, 93004, 93008},  # empty; wrong key; bot switched off; not in the group
    patience={},
)


@dataclass(frozen=True)
class WeComMentions:
    """Who is mentioned in a text."""

    ids: tuple[str, ...]
    mobiles: tuple[str, ...]

    @property
    def only_in_text(self) -> bool:
        return bool(self.mobiles) or "@all" in self.ids


class WeCom(BaseReceiver):
    """A group bot. The key is in its address."""

    kind = "wecom"
    usual_pace = RateLimit(count=20, window=60.0)

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._way = endpoint_of(settings)
        always = [
            wecom.MARKUP.mention(OwnerContact(wecom=each)) or "" for each in settings.mention if each != MENTION_ALL
        ]
        self._markdown = MessageWriter(self, wecom.MARKUP, tail="".join(always))
        self._text = MessageWriter(self, wecom_text.MARKUP)
        self._refused_as_markdown = ""  # the id of a parcel

    def holds(self, notifications: Sequence[Notification]) -> int:
        users = [user for each in notifications for user in each.users]
        if self._called(users).only_in_text:
            return self._text.holds(notifications, TEXT_LIMIT)
        return self._markdown.holds(notifications, MARKDOWN_LIMIT)

    def deliver(self, parcel: Batch) -> str:
        letter = self._markdown.letter(parcel)
        called = self._called(letter.mentions)
        as_text = called.only_in_text or parcel.id == self._refused_as_markdown
        if as_text:
            payload = _text(self._text.text(parcel, letter, TEXT_LIMIT), called)
        else:
            content = self._markdown.text(parcel, letter, MARKDOWN_LIMIT)
            payload = {"msgtype": "markdown", "markdown": {"content": content}}
        reply = post_json(self._way, payload, {ID_HEADER: parcel.id})
        code, said = CODES.code(self._way, reply)
        if code in CONTENT and not as_text:
            self._refused_as_markdown = parcel.id
            raise DeliveryError(f"{self._way.host} answered {code} {said}; next it is sent as text", retryable=True)
        return CODES.accepted(self._way, reply)

    def _called(self, users: Iterable[str]) -> WeComMentions:
        """Given users of the cluster, return how they and those who are always mentioned are called here."""
        owners = [self.settings.owners[user] for user in dict.fromkeys(users) if user in self.settings.owners]
        always = ["@all" if each == MENTION_ALL else each for each in self.settings.mention]
        ids = [*always, *(owner.wecom for owner in owners if owner.wecom)]
        mobiles = [owner.mobile for owner in owners if owner.mobile and not owner.wecom]
        return WeComMentions(tuple(dict.fromkeys(ids)), tuple(dict.fromkeys(mobiles)))


def _text(content: str, called: WeComMentions) -> dict[str, Any]:
    text: dict[str, Any] = {"content": content}
    if called.ids:
        text["mentioned_list"] = list(called.ids)
    if called.mobiles:
        text["mentioned_mobile_list"] = list(called.mobiles)
    return {"msgtype": "text", "text": text}
