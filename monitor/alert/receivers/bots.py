"""Chat bots always answer 200 and report success in the body, each with its own table of codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from monitor.alert.message.document import AlertMessage, TextLine
from monitor.alert.message.formats.base import Markup, Owners
from monitor.alert.model import Notification
from monitor.alert.receivers.base import DeliveryError
from monitor.alert.receivers.common import MessageWriter, TextReceiver
from monitor.base.endpoint import Endpoint
from monitor.base.http import Reply, as_json

ENVELOPE_BYTES = 2000  # of a body, around the text


@dataclass(frozen=True)
class BotCodes:
    """Result codes of a kind of bot; `fields` may hold the code and `texts` its description.

    `permanent` codes are not retried: wrong key, wrong signature, refused content. Undocumented codes are retried: that
    loses nothing and is reported. `retry_after` is the pause in seconds after a rate limit code.
    """

    fields: tuple[str, ...]
    texts: tuple[str, ...]
    permanent: frozenset[int]
    retry_after: Mapping[int, float]

    def code(self, endpoint: Endpoint, reply: Reply) -> tuple[int, str]:
        """Code of an answer, 0 for success, and its description. Raise DeliveryError if there is no code."""
        try:
            body = msgspec.json.decode(reply.body, type=dict[str, Any])
            codes = [int(body[field]) for field in self.fields if field in body]
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError, ValueError):
            codes = []
        if not codes:  # the page of a proxy, or of a network that requires a login
            raise DeliveryError(f"{endpoint.host} answered {reply.status}, but not like a bot", retryable=True)
        text = next((str(body[field]) for field in self.texts if body.get(field)), "")
        return next((code for code in codes if code), 0), endpoint.redact(text)

    def accepted(self, endpoint: Endpoint, reply: Reply) -> str:
        """Answer of the bot. Raise DeliveryError if it did not accept the message."""
        code, text = self.code(endpoint, reply)
        answer = f"{code} {text}".rstrip()
        if code:
            permanent, after = code in self.permanent, self.retry_after.get(code)
            raise DeliveryError(f"{endpoint.host} answered {answer}", retryable=not permanent, after=after)
        return answer


@dataclass(frozen=True)
class JsonSizedMarkup:
    """Markup as it counts against a limit of the whole JSON body: quotes and line breaks take two bytes."""

    markup: Markup

    @property
    def joiner(self) -> str:
        return _in_json(self.markup.joiner)

    def title(self, message: AlertMessage) -> str:
        return _in_json(self.markup.title(message))

    def line(self, line: TextLine, owners: Owners) -> str:
        return _in_json(self.markup.line(line, owners))


def _in_json(text: str) -> str:
    return as_json(text)[1:-1].decode()


class BodyLimitedBot(TextReceiver):
    """A bot that limits the whole JSON body to `max_bytes`."""

    def capacity(self, notifications: Sequence[Notification]) -> int:
        sizer = MessageWriter(self, JsonSizedMarkup(self.markup), self.tail())
        return sizer.capacity(notifications, self.max_bytes - ENVELOPE_BYTES)

    def fitted(self, build: Callable[[int], Any]) -> bytes:
        """Body with the longest text that fits; `build` makes a body with a text of some bytes."""
        room = self.max_bytes - ENVELOPE_BYTES
        body = as_json(build(room))
        while len(body) > self.max_bytes and room > 0:
            room -= max(len(body) - self.max_bytes, 1)
            body = as_json(build(max(room, 0)))
        return body
