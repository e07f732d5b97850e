"""Receiver protocol, settings of receivers, and the delivery error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from monitor.alert.model import Batch, Notification
from monitor.base.http import RequestError


class DeliveryError(RequestError):
    """A receiver did not accept a message, for a reason other than the request itself."""


@dataclass(frozen=True)
class RateLimit:
    """Messages per `window` seconds (`count`, None: unlimited), and the minimum time between two (`gap`)."""

    count: int | None = None
    window: float = 60.0
    gap: float = 0.0


@dataclass(frozen=True)
class OwnerContact:
    """How to mention or reach a user: chat ids, a mobile number (WeCom, DingTalk), a mail address."""

    wecom: str | None = None
    mobile: str | None = None
    mail: str | None = None
    feishu: str | None = None
    slack: str | None = None


@dataclass(frozen=True)
class MailSettings:
    """SMTP server and recipients; `to_owners` adds the owners of the affected jobs."""

    host: str
    port: int
    sender: str
    to: tuple[str, ...] = ()
    to_owners: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Literal["starttls", "tls", "none"] = "starttls"


@dataclass(frozen=True)
class ReceiverSettings:
    """Settings of one receiver. `url`, `secret` and `token` are secrets and never shown."""

    name: str
    kind: str
    url: str = field(default="", repr=False)
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    language: str = "en"
    page: str | None = None
    cluster: str | None = None
    timezone: str = "UTC"
    template: str | None = None
    owners: Mapping[str, OwnerContact] = field(default_factory=dict)
    mention: tuple[str, ...] = ()  # in every message: ids of the receiver's own, or "all"
    timeout: float = 10.0
    proxy: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    verify_tls: bool = True
    pace: RateLimit | None = None  # None: the default of the kind
    mail: MailSettings | None = None


def users_reached_alone(settings: ReceiverSettings) -> frozenset[str]:
    """Users who alone get the messages of a receiver about them: a chat is a group, mail may be personal.

    An address that several users share is not personal.
    """
    mail = settings.mail
    if mail is None or mail.to or not mail.to_owners:
        return frozenset()
    addresses = Counter(owner.mail.casefold() for owner in settings.owners.values() if owner.mail)
    return frozenset(
        user for user, owner in settings.owners.items() if owner.mail and addresses[owner.mail.casefold()] == 1
    )


class Receiver(Protocol):
    """Destination of notifications. Its methods are called from one thread at a time."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def pace(self) -> RateLimit: ...

    def capacity(self, notifications: Sequence[Notification]) -> int:
        """How many of the notifications, from the first, fit into one message; at least one."""
        ...

    def deliver(self, batch: Batch) -> str:
        """Send a batch and return the receiver's answer, shortened and without secrets. Raise RequestError."""
        ...
