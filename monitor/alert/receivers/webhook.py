"""Anybody's webhook: the body of Alertmanager's own (version 4), one request for each group.

`X-Gpuwarden-Id` is the same however often a parcel is tried, so whoever receives it can tell a repetition. With a
secret, `X-Gpuwarden-Signature` is `sha256=` and the HMAC-SHA256 of `<X-Gpuwarden-Timestamp>.<body>` in hexadecimal.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import msgspec

from monitor.alert.message.formats import plain
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.receivers.configured import ID_HEADER, BaseReceiver, MessageWriter, bearer, endpoint_of
from monitor.alert.receivers.payload import v4
from monitor.base.http import as_json, post

DIGEST_LIMIT = 16_384


class Webhook(BaseReceiver):
    """An address that takes what Alertmanager sends. `secret` signs, `token` is sent as bearer."""

    kind = "webhook"

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._way = endpoint_of(settings)
        self._writer = MessageWriter(self, plain.MARKUP)

    def holds(self, notifications: Sequence[Notification]) -> int:
        return max(1, len(notifications))

    def deliver(self, parcel: Batch) -> str:
        statuses = [self._post(parcel, each) for each in parcel.notifications]
        return " ".join(map(str, statuses))

    def _post(self, parcel: Batch, notification: Notification) -> int:
        payload = v4(notification, self.voice, self.name)
        if notification.summary is not None:  # a digest has no alerts, but it has something to say
            alone = msgspec.structs.replace(parcel, notifications=(notification,))
            letter = self._writer.letter(alone)
            text = self._writer.text(alone, letter, DIGEST_LIMIT)
            payload["commonAnnotations"] = {"summary": letter.title, "description": text}
        body = as_json(payload)
        headers = {ID_HEADER: parcel.id} | bearer(self.settings.token)
        if self.settings.secret:
            timestamp = str(int(parcel.at))
            headers["X-Gpuwarden-Timestamp"] = timestamp
            headers["X-Gpuwarden-Signature"] = f"sha256={signature(self.settings.secret, timestamp, body)}"
        return post(self._way, body, headers).status


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Given a secret and what is sent, return what proves that it comes from who knows the secret, and when."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
