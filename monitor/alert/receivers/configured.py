"""What receivers have in common: their settings, their pace, and writing a parcel as text."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alert.message.compose import Locale, compose
from monitor.alert.message.document import AlertMessage
from monitor.alert.message.formats.base import Markup, capacity, fit
from monitor.alert.message.template import render_template
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import RateLimit, ReceiverSettings
from monitor.base.endpoint import Endpoint

ID_HEADER = "X-Gpuwarden-Id"
MENTION_ALL = "all"


class BaseReceiver:
    """A receiver's settings, as the protocol wants to see them. `usual_pace` is that of the kind."""

    kind = ""
    usual_pace = RateLimit()

    def __init__(self, settings: ReceiverSettings) -> None:
        self.settings = settings
        self.voice = Locale(
            lang=settings.language, page=settings.page, cluster=settings.cluster, timezone=settings.timezone
        )

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def pace(self) -> RateLimit:
        return self.settings.pace or self.usual_pace


def endpoint_of(settings: ReceiverSettings) -> Endpoint:
    """Given the settings of a receiver, return how it is reached."""
    return Endpoint(
        url=settings.url,
        timeout=settings.timeout,
        proxy=settings.proxy,
        ca_file=settings.ca_file,
        verify_tls=settings.verify_tls,
        secrets=tuple(secret for secret in (settings.secret, settings.token) if secret),
    )


def bearer(token: str | None) -> dict[str, str]:
    """Return the header by which a token is shown, if there is one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


class MessageWriter:
    """Writes parcels in one format. `tail` is put under each message: who is always mentioned."""

    def __init__(self, receiver: BaseReceiver, markup: Markup, tail: str = "") -> None:
        self._settings = receiver.settings
        self._voice = receiver.voice
        self._markup = markup
        self._tail = f"{markup.joiner}{tail}" if tail else ""

    def letter(self, parcel: Batch) -> AlertMessage:
        return compose(parcel, self._voice)

    def text(self, parcel: Batch, letter: AlertMessage, limit: int) -> str:
        """Return the message, in at most `limit` bytes."""
        room, owners, template = limit - len(self._tail.encode()), self._settings.owners, self._settings.template
        if template is not None and self.templated(parcel):
            return render_template(template, parcel, self._voice, room, self._markup, owners) + self._tail
        return fit(letter, self._markup, room, owners) + self._tail

    def holds(self, notifications: Sequence[Notification], limit: int) -> int:
        """Return how many of these fit into one message, from the first."""
        room = limit - len(self._tail.encode())
        return capacity(notifications, self._voice, self._markup, room, self._settings.owners)

    def templated(self, parcel: Batch) -> bool:
        """Return whether this is written by the user's own template. Several at once never are."""
        return self._settings.template is not None and len(parcel.notifications) == 1
