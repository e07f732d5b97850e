"""Slack's incoming webhooks (hooks.slack.com), and what speaks like them: Mattermost, Rocket.Chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from monitor.alert.message.formats import slack
from monitor.alert.message.formats.base import shorten
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import DeliveryError, OwnerContact, RateLimit, ReceiverSettings
from monitor.alert.receivers.configured import ID_HEADER, MENTION_ALL, BaseReceiver, MessageWriter, endpoint_of
from monitor.base.http import Reply, post_json
from monitor.facts.findings import Severity

LIMIT = 3000  # characters of a section, and so at least as many bytes
TITLE = 150
COLOURS = {Severity.CRITICAL: "#d32f2f", Severity.WARNING: "#f9a825", Severity.INFO: "#1976d2"}
RESOLVED = "#2e7d32"


class Slack(BaseReceiver):
    """A webhook of one channel. The whole address is a secret."""

    kind = "slack"
    usual_pace = RateLimit(gap=1.0)

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._way = endpoint_of(settings)
        always = ["<!channel>" if each == MENTION_ALL else _mention(each) for each in settings.mention]
        self._writer = MessageWriter(self, slack.MARKUP, tail=" ".join(always))

    def holds(self, notifications: Sequence[Notification]) -> int:
        return self._writer.holds(notifications, LIMIT)

    def deliver(self, parcel: Batch) -> str:
        letter = self._writer.letter(parcel)
        section = {"type": "mrkdwn", "text": self._writer.text(parcel, letter, LIMIT), "verbatim": True}
        payload = {
            "attachments": [
                {
                    "color": RESOLVED if letter.resolved else COLOURS[letter.severity],
                    "fallback": shorten(letter.title, TITLE),  # what a phone shows before it is unlocked
                    "blocks": [{"type": "section", "text": section}],
                }
            ]
        }
        reply = post_json(self._way, payload, {ID_HEADER: parcel.id})
        if not _is_yes(reply):
            raise DeliveryError(f"{self._way.host} answered {reply.status}, but not as Slack does", retryable=True)
        return f"{reply.status} ok"


def _mention(slack_id: str) -> str:
    return slack.MARKUP.mention(OwnerContact(slack=slack_id)) or ""


def _is_yes(reply: Reply) -> bool:
    """Return whether an answer is Slack's "ok" or what its likes say: not the page of a network that wants a login."""
    if reply.body.strip().lower() == b"ok":
        return True
    try:
        said = msgspec.json.decode(reply.body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return said.get("ok") is True or said.get("success") is True
