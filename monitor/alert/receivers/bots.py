"""Chat bots answer 200 whatever happens and say in the body whether they took the message: one table of codes each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from monitor.alert.message.document import AlertMessage, TextLine
from monitor.alert.message.formats.base import Markup, Owners
from monitor.alert.receivers.base import DeliveryError
from monitor.base.endpoint import Endpoint
from monitor.base.http import Reply, as_json

ENVELOPE_BYTES = 2000  # bytes of a body that are not the text


@dataclass(frozen=True)
class BotCodes:
    """The codes of one kind of bot. `fields` hold the code and `words` what it means, the first that is there.

    `permanent` are those that no retry cures: a wrong key, a wrong signature, a content that is not taken. Those that
    nobody has written down are tried again: that may be in vain, but it loses nothing, and it is reported.
    `patience` is for how many seconds a bot is left alone that says it is asked too often.
    """

    fields: tuple[str, ...]
    words: tuple[str, ...]
    permanent: frozenset[int]
    patience: Mapping[int, float]

    def code(self, way: Endpoint, reply: Reply) -> tuple[int, str]:
        """Return the code of an answer, 0 for success, and the bot's words. Raise DeliveryError: it has none."""
        try:
            body = msgspec.json.decode(reply.body, type=dict[str, Any])
            codes = [int(body[field]) for field in self.fields if field in body]
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError, ValueError):
            codes = []
        if not codes:  # the page of a proxy, or of a network that wants a login first
            raise DeliveryError(f"{way.host} answered {reply.status}, but not as a bot does", retryable=True)
        said = next((str(body[field]) for field in self.words if body.get(field)), "")
        return next((code for code in codes if code), 0), way.redact(said)

    def accepted(self, way: Endpoint, reply: Reply) -> str:
        """Return the bot's own answer. Raise DeliveryError if it did not take the message."""
        code, said = self.code(way, reply)
        answer = f"{code} {said}".rstrip()
        if code:
            permanent = code in self.permanent
            raise DeliveryError(f"{way.host} answered {answer}", retryable=not permanent, after=self.patience.get(code))
        return answer


@dataclass(frozen=True)
class JsonSizedMarkup:
    """A format as it is measured where the whole body has a limit: quotes and line breaks take two bytes there."""

    markup: Markup

    @property
    def joiner(self) -> str:
        return _in_json(self.markup.joiner)

    def title(self, letter: AlertMessage) -> str:
        return _in_json(self.markup.title(letter))

    def line(self, line: TextLine, owners: Owners) -> str:
        return _in_json(self.markup.line(line, owners))


def _in_json(text: str) -> str:
    return as_json(text)[1:-1].decode()


def fitted(build: Callable[[int], Any], limit: int) -> bytes:
    """Given what makes a body with a text of so many bytes, return the body with the longest text that fits."""
    room = limit - ENVELOPE_BYTES
    body = as_json(build(room))
    while len(body) > limit and room > 0:
        room -= max(len(body) - limit, 1)
        body = as_json(build(max(room, 0)))
    return body
