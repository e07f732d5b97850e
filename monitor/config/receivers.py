"""Settings of the receivers of notifications.

The URL of a chat bot is a secret, because it is sufficient to post there: no error message contains one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import SplitResult, parse_qs

from pydantic import BeforeValidator, Field, SecretStr

from monitor.alert.receivers.base import MailSettings, RateLimit, ReceiverSettings
from monitor.alert.receivers.registry import HOSTS, KINDS, kinds_with
from monitor.base.text import unknown
from monitor.base.units import quoted
from monitor.config.derive import DerivedSection, build
from monitor.config.types import (
    AbsolutePath,
    Duration,
    NonEmpty,
    Section,
    Span,
    check_with,
    parse_list,
    read_text_file,
    short_for,
    split_url,
)

if TYPE_CHECKING:
    KindName = str
else:
    KindName = Literal[tuple(KINDS)]
Language = Literal["en", "zh"]
# Setting -> kinds of receiver that it applies to.
ONLY: Mapping[str, tuple[str, ...]] = {
    name: kinds_with(option)
    for option in sorted(frozenset().union(*(kind.options for kind in KINDS.values())))
    for name in (option, f"{option}_file")
}
SECRETS = ("url", "secret", "token", "password")  # each can also be in a file: url_file, ...
MAIL_PORTS = {"starttls": 587, "tls": 465, "none": 25}


def _parse_url(url: str) -> SplitResult:
    parts = split_url(url, "copy it whole from the robot's page")
    if not (parts.scheme and (parts.hostname or parts.path)) or any(c.isspace() for c in url):
        raise ValueError("is no address; write https://…, smtp://host:port for mail, or console")
    return parts


TextFile = Annotated[AbsolutePath, check_with(read_text_file)]
Secret = Annotated[SecretStr, Field(min_length=1)]


def check_http_url(url: str | None) -> str:
    """Require an HTTP URL. The ValueError does not contain it."""
    if url is None:
        raise ValueError("is not complete; give url or url_file")
    if _parse_url(url).scheme not in ("http", "https"):
        raise ValueError("the address has to begin with https:// or http://")
    return url


class PaceConfig(DerivedSection, settings=RateLimit, types={float: Duration}):
    """Rate limit of a receiver: `count` messages per `window`, with at least `gap` between two."""

    count: Annotated[int, Field(ge=1)] | None = None
    window: Span = RateLimit.window


def _check_template(text: str) -> None:
    from monitor.alert.message import template  # rarely used, and as slow to import as everything else together

    try:
        template.check_template(text)
    except ValueError as error:
        raise ValueError(f"the template cannot be read: {error}") from None


class ReceiverConfig(Section):
    """A receiver. The URL determines its kind unless `kind` does."""

    url: Secret | None = None
    url_file: TextFile | None = None
    kind: KindName | None = None
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    secret: Secret | None = None
    secret_file: TextFile | None = None
    token: Secret | None = None
    token_file: TextFile | None = None
    language: Language | None = None
    template: NonEmpty | None = None
    template_file: TextFile | None = None
    mention: tuple[str, ...] = ()
    timeout: Span = 10.0
    proxy: SecretStr | None = None
    ca_file: TextFile | None = None
    verify_tls: bool = True
    pace: PaceConfig | None = None
    sender: str | None = None
    to: tuple[str, ...] = ()
    to_owners: bool = False
    user: str | None = None
    password: Secret | None = None
    password_file: TextFile | None = None
    tls: Literal["starttls", "tls", "none"] | None = None

    def check(self) -> None:
        kind = self.effective_kind
        self.check_applicable("receiver", kind, ONLY)
        for name in SECRETS:
            self.read_secret(name)
        if self.template is not None and self.template_file is not None:
            raise ValueError("give template or template_file, not both")
        if (template := self._template()) is not None:
            _check_template(template)
        self._check_url(kind)

    @property
    def address(self) -> str | None:
        return self.read_secret("url")

    @property
    def effective_kind(self) -> KindName:
        """Kind of the receiver: as given, or from its URL. Raise ValueError if the URL does not determine it."""
        if self.kind is not None:
            return self.kind
        address = self.address
        if address is None:
            raise ValueError("is not complete; give url or url_file, or kind: console")
        parts = _parse_url(address)
        if parts.scheme in ("smtp", "smtps"):
            return "mail"
        if parts.scheme in ("http", "https"):
            return HOSTS.get(parts.hostname or "", "webhook")
        raise ValueError("the address has to begin with https:// or smtp://; or say what it is with kind")

    def _check_url(self, kind: KindName) -> None:
        match KINDS[kind].url:
            case "none":
                if self.address is not None:
                    raise ValueError(f"a receiver of kind {kind} has no address")
            case "smtp":
                self._mail()
            case "any":
                _parse_url(self.address or "")
            case "http":
                parts = _parse_url(check_http_url(self.address))
                if kind == "wecom" and not parse_qs(parts.query).get("key"):
                    raise ValueError(
                        "the address of a WeCom robot ends with ?key=…; copy it whole from the robot's page"
                    )

    def _mail(self) -> MailSettings:
        parts = _parse_url(self.address or "smtp:")
        if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
            raise ValueError("the address of a mail server is written smtp://host:port, or smtps://host:port")
        if parts.password is not None:
            raise ValueError("an address holds no password; use password_file")
        if self.sender is None or not (self.to or self.to_owners):
            raise ValueError("mail needs sender, and to or to_owners: true")
        tls = self.tls or ("tls" if parts.scheme == "smtps" else "starttls")
        return build(
            MailSettings,
            self,
            host=parts.hostname,
            port=parts.port or MAIL_PORTS[tls],
            user=self.user or parts.username,
            password=self.read_secret("password"),
            tls=tls,
        )

    def _template(self) -> str | None:
        return read_text_file(self.template_file) if self.template_file is not None else self.template

    def settings(self, name: str, **common: Any) -> ReceiverSettings:
        """Settings of the receiver; `common` are those of all receivers. Raise ValueError if a file is unreadable."""
        kind = self.effective_kind
        return build(
            ReceiverSettings,
            self,
            name=name,
            kind=kind,
            url=self.address or "",
            secret=self.read_secret("secret"),
            token=self.read_secret("token"),
            template=self._template(),
            proxy=self.proxy.get_secret_value() if self.proxy is not None else None,
            pace=build(RateLimit, self.pace) if self.pace is not None else None,
            mail=self._mail() if kind == "mail" else None,
            **(common | ({"language": self.language} if self.language is not None else {})),
        )


def by_name(receivers: Iterable[ReceiverConfig]) -> dict[str, ReceiverConfig]:
    """Receivers by name: as given, or the kind, numbered from the second. Raise ValueError if a name repeats."""
    named: dict[str, ReceiverConfig] = {}
    for receiver in receivers:
        name, number = receiver.name or receiver.effective_kind, 1
        if receiver.name in named:
            raise ValueError(f"two receivers are called {quoted(name)}; give each its own name")
        while name in named:
            number += 1
            name = f"{receiver.effective_kind}-{number}"
        named[name] = receiver
    return named


_CONSOLE = BeforeValidator(lambda value: {"kind": value} if value == "console" else value)
Receivers = Annotated[
    tuple[Annotated[ReceiverConfig, short_for("url"), _CONSOLE], ...],
    BeforeValidator(parse_list),
    check_with(by_name),
]


def check_receivers(names: Iterable[str], receivers: Iterable[ReceiverConfig], prefix: str, absent: str) -> None:
    """Require that a receiver of each name exists; `absent` is the error text if there are none at all."""
    known = by_name(receivers)
    for name in names:
        if name not in known:
            raise ValueError(f"{prefix}{name!r}: {unknown('receiver', name, known) if known else absent}")
