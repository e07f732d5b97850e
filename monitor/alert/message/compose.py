"""Composes the message of a batch."""

from __future__ import annotations

from monitor.alert.message.digest import digest_message, summary_message
from monitor.alert.message.document import AlertMessage
from monitor.alert.message.locale import Locale
from monitor.alert.message.single import single_message
from monitor.alert.model import Batch


def compose(batch: Batch, locale: Locale) -> AlertMessage:
    """Message of a batch: a single notification in full, several with a line each."""
    if len(batch.notifications) != 1:
        return digest_message(batch, locale)
    notification = batch.notifications[0]
    if notification.summary is not None:
        return summary_message(batch, notification, notification.summary, locale)
    return single_message(batch, notification, locale)
