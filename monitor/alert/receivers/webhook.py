"""Generic webhook with the payload of Alertmanager's webhook (version 4), one request per group.

`X-Gpuwarden-Id` is the same for all retries of a batch, so that the server can recognise repetitions. With a secret,
`X-Gpuwarden-Signature` is `sha256=` and the hexadecimal HMAC-SHA256 of `<X-Gpuwarden-Timestamp>.<body>`.
"""

from __future__ import annotations

import hashlib
import hmac

import msgspec

from monitor.alert.message.formats import plain
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.receivers.common import ID_HEADER, BaseReceiver, MessageWriter, bearer
from monitor.alert.receivers.payload import webhook_payload
from monitor.base.http import as_json, post

MAX_DIGEST_BYTES = 16_384


class Webhook(BaseReceiver):
    """A webhook. `secret` signs the requests, `token` is sent as bearer token."""

    kind = "webhook"

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self._writer = MessageWriter(self, plain.MARKUP)

    def deliver(self, batch: Batch) -> str:
        statuses = [self._post(batch, notification) for notification in batch.notifications]
        return " ".join(map(str, statuses))

    def _post(self, batch: Batch, notification: Notification) -> int:
        payload = webhook_payload(notification, self.locale, self.name)
        if notification.summary is not None:  # a digest has text instead of alerts
            single = msgspec.structs.replace(batch, notifications=(notification,))
            message = self._writer.message(single)
            text = self._writer.text(single, message, MAX_DIGEST_BYTES)
            payload["commonAnnotations"] = {"summary": message.title, "description": text}
        body = as_json(payload)
        headers = {ID_HEADER: batch.id} | bearer(self.settings.token)
        if self.settings.secret:
            timestamp = str(int(batch.at))
            headers["X-Gpuwarden-Timestamp"] = timestamp
            headers["X-Gpuwarden-Signature"] = f"sha256={signature(self.settings.secret, timestamp, body)}"
        return post(self.endpoint, body, headers).status


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC that proves the origin and the time of a request."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
