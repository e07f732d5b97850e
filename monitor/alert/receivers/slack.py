"""Slack's incoming webhooks (hooks.slack.com), and compatible ones: Mattermost, Rocket.Chat."""

from __future__ import annotations

from typing import Any

import msgspec

from monitor.alert.message.formats import slack
from monitor.alert.model import Batch
from monitor.alert.receivers.base import DeliveryError, OwnerContact, RateLimit
from monitor.alert.receivers.common import ID_HEADER, MENTION_ALL, TextReceiver
from monitor.base.http import Reply, post_json
from monitor.base.text import shorten
from monitor.facts.findings import Severity

MAX_TITLE_CHARS = 150
COLOURS = {Severity.CRITICAL: "#d32f2f", Severity.WARNING: "#f9a825", Severity.INFO: "#1976d2"}
RESOLVED_COLOUR = "#2e7d32"


class Slack(TextReceiver):
    """Webhook of a channel. The whole URL is a secret."""

    kind = "slack"
    default_pace = RateLimit(gap=1.0)
    markup = slack.MARKUP
    max_bytes = 3000  # the limit of a section is 3000 characters

    def tail(self) -> str:
        return " ".join("<!channel>" if user == MENTION_ALL else _mention(user) for user in self.settings.mention)

    def deliver(self, batch: Batch) -> str:
        message = self.writer.message(batch)
        section = {"type": "mrkdwn", "text": self.writer.text(batch, message, self.max_bytes), "verbatim": True}
        payload = {
            "attachments": [
                {
                    "color": RESOLVED_COLOUR if message.resolved else COLOURS[message.severity],
                    "fallback": shorten(message.title, MAX_TITLE_CHARS),  # shown on a locked phone
                    "blocks": [{"type": "section", "text": section}],
                }
            ]
        }
        reply = post_json(self.endpoint, payload, {ID_HEADER: batch.id})
        if not _is_success(reply):
            raise DeliveryError(f"{self.endpoint.host} answered {reply.status}, but not like Slack", retryable=True)
        return f"{reply.status} ok"


def _mention(slack_id: str) -> str:
    return slack.MARKUP.mention(OwnerContact(slack=slack_id)) or ""


def _is_success(reply: Reply) -> bool:
    """Whether an answer is Slack's or a compatible server's success, and not the login page of a network."""
    if reply.body.strip().lower() == b"ok":
        return True
    try:
        body = msgspec.json.decode(reply.body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return body.get("ok") is True or body.get("success") is True
