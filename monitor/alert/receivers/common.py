"""Base class and helpers of receivers."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alert.message.compose import compose
from monitor.alert.message.document import AlertMessage
from monitor.alert.message.formats import plain
from monitor.alert.message.formats.base import Markup, capacity, fit
from monitor.alert.message.locale import Locale
from monitor.alert.message.template import render_template
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import RateLimit, ReceiverSettings
from monitor.base.endpoint import Endpoint

ID_HEADER = "X-Gpuwarden-Id"
MENTION_ALL = "all"


class BaseReceiver:
    """A configured receiver; a subclass sets `kind` and, if the service has a rate limit, `default_pace`."""

    kind = ""
    default_pace = RateLimit()

    def __init__(self, settings: ReceiverSettings) -> None:
        self.settings = settings
        self.endpoint = endpoint_of(settings)
        self.locale = Locale(
            lang=settings.language, page=settings.page, cluster=settings.cluster, timezone=settings.timezone
        )

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def pace(self) -> RateLimit:
        return self.settings.pace or self.default_pace

    def capacity(self, notifications: Sequence[Notification]) -> int:
        """No limit; a receiver with a limit overrides it."""
        return max(1, len(notifications))


class TextReceiver(BaseReceiver):
    """A receiver of texts in the format `markup` with at most `max_bytes`."""

    markup: Markup = plain.MARKUP
    max_bytes = 0

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        self.writer = MessageWriter(self, self.markup, self.tail())

    def tail(self) -> str:
        """End of every message: mentions of the users in `mention`."""
        return ""

    def capacity(self, notifications: Sequence[Notification]) -> int:
        return self.writer.capacity(notifications, self.max_bytes)


def endpoint_of(settings: ReceiverSettings) -> Endpoint:
    """HTTP endpoint of a receiver."""
    return Endpoint(
        url=settings.url,
        timeout=settings.timeout,
        proxy=settings.proxy,
        ca_file=settings.ca_file,
        verify_tls=settings.verify_tls,
        secrets=tuple(secret for secret in (settings.secret, settings.token) if secret),
    )


def bearer(token: str | None) -> dict[str, str]:
    """Authorization header for a token, if there is one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


class MessageWriter:
    """Writes batches in one format, each message followed by `tail`."""

    def __init__(self, receiver: BaseReceiver, markup: Markup, tail: str = "") -> None:
        self._settings = receiver.settings
        self._locale = receiver.locale
        self._markup = markup
        self._tail = f"{markup.joiner}{tail}" if tail else ""

    def message(self, batch: Batch) -> AlertMessage:
        return compose(batch, self._locale)

    def text(self, batch: Batch, message: AlertMessage, limit_bytes: int) -> str:
        """Text of a batch in at most `limit_bytes`."""
        room, owners, template = self._room(limit_bytes), self._settings.owners, self._settings.template
        if template is not None and self.uses_template(batch):
            return render_template(template, batch, self._locale, room, self._markup, owners) + self._tail
        return fit(message, self._markup, room, owners) + self._tail

    def capacity(self, notifications: Sequence[Notification], limit_bytes: int) -> int:
        """How many of the notifications, from the first, fit into one message."""
        return capacity(notifications, self._locale, self._markup, self._room(limit_bytes), self._settings.owners)

    def uses_template(self, batch: Batch) -> bool:
        """Whether the user's template applies; a digest never uses it."""
        return self._settings.template is not None and len(batch.notifications) == 1

    def _room(self, limit_bytes: int) -> int:
        return limit_bytes - len(self._tail.encode())
