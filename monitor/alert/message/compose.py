"""From a parcel to a letter: what people read at three in the morning. Pure."""

from __future__ import annotations

from monitor.alert.message.digest import digest, summary
from monitor.alert.message.document import AlertMessage
from monitor.alert.message.locale import Locale
from monitor.alert.message.single import one
from monitor.alert.model import Batch

__all__ = ["Voice", "compose"]


def compose(parcel: Batch, voice: Locale) -> AlertMessage:
    """Given what goes out in one request, return it in words: one notification in full, several in a line each."""
    if len(parcel.notifications) != 1:
        return digest(parcel, voice)
    notification = parcel.notifications[0]
    if notification.summary is not None:
        return summary(parcel, notification, notification.summary, voice)
    return one(parcel, notification, voice)
