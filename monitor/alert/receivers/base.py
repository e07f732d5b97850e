"""What every receiver of alerts is, and how it says that it could not deliver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from monitor.alert.model import Batch, Notification
from monitor.base.http import RequestError


class DeliveryError(RequestError):
    """A receiver did not accept a message, for a reason other than the request itself."""


@dataclass(frozen=True)
class RateLimit:
    """How many messages a receiver takes in how many seconds; `gap` is the least time between two. None: no limit."""

    count: int | None = None
    window: float = 60.0
    gap: float = 0.0


@dataclass(frozen=True)
class OwnerContact:
    """How a user of the cluster is reached: a WeCom user id, a mobile number (WeCom, DingTalk), and so on."""

    wecom: str | None = None
    mobile: str | None = None
    mail: str | None = None
    feishu: str | None = None
    slack: str | None = None


@dataclass(frozen=True)
class MailSettings:
    """How mail is sent. `to_owners` adds the owners of what a message is about."""

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
    """What a receiver is told about itself. `url`, `secret` and `token` are secrets: they show nowhere."""

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
    mention: tuple[str, ...] = ()  # always, in the receiver's own ids; "all" for everybody
    timeout: float = 10.0
    proxy: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    verify_tls: bool = True
    pace: RateLimit | None = None  # None: the kind's own
    mail: MailSettings | None = None


class Receiver(Protocol):
    """Somebody who is told. Deliver may take as long as its time limit; it is called from one thread at a time."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def pace(self) -> RateLimit: ...

    def holds(self, notifications: Sequence[Notification]) -> int:
        """Return how many of these, from the first, fit into one message as a digest. At least one."""
        ...

    def deliver(self, parcel: Batch) -> str:
        """Send, and return the receiver's own answer in short, without secrets. Raise RequestError."""
        ...
