"""Notifications about one alert: who was notified when, and whether it was delivered."""

from __future__ import annotations

import logging

import msgspec

from monitor.alert.model import NotificationReason
from monitor.base.sqlite import Database
from monitor.facts.base import Fact

log = logging.getLogger(__name__)


class Mention(Fact, frozen=True, kw_only=True):
    """A notification that contains an alert. `state` and `answer` are those of its delivery, `at` when it was sent.

    Until it is sent, `at` is when it was decided.
    """

    receiver: str
    reason: NotificationReason
    at: float
    state: str
    answer: str | None = None


class _Decision(msgspec.Struct):
    """The fields of a stored notification that a mention needs; its subjects may be thousands."""

    at: float
    reason: NotificationReason


class Mentions:
    """Finds the notifications about an alert in the outbox."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, group: str, fingerprint: str, since: float, limit: int) -> tuple[Mention, ...]:
        """Notifications of a group that contain an alert, since a time, the latest first."""
        field = b'"fingerprint":' + msgspec.json.encode(fingerprint)
        query = """
            SELECT body, outbox.receiver, state, done_at, word
            FROM outbox LEFT JOIN parcels ON parcels.id = outbox.parcel
            WHERE topic = ? AND instr(body, ?) ORDER BY place DESC LIMIT ?
        """
        mentions = []
        for body, receiver, state, done_at, word in self._database.select(query, (group, field, limit)):
            try:
                decision = msgspec.json.decode(body, type=_Decision)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                log.error("skipping a stored notification that cannot be decoded: %s", error)
                continue
            if decision.at >= since:
                at = decision.at if done_at is None else done_at
                mention = Mention(
                    receiver=receiver, reason=decision.reason, at=at, state=state or "waiting", answer=word
                )
                mentions.append(mention)
        return tuple(mentions)
