"""Who is told of alerts: what can be written about a receiver, and what that means.

The address of a chat robot is a secret, because whoever has it can write there: no message ever holds one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import SplitResult, parse_qs, urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from monitor.alert.receivers.base import MailSettings, OwnerContact, RateLimit, ReceiverSettings
from monitor.base.units import quoted
from monitor.config.types import AbsolutePath, Duration, Section, Span

Kind = Literal["wecom", "dingtalk", "feishu", "slack", "webhook", "alertmanager", "mail", "console", "apprise"]
Language = Literal["en", "zh"]
HOSTS: Mapping[str, Kind] = {
    "qyapi.weixin.qq.com": "wecom",
    "oapi.dingtalk.com": "dingtalk",
    "open.feishu.cn": "feishu",
    "open.larksuite.com": "feishu",
    "hooks.slack.com": "slack",
}
CHATS: tuple[Kind, ...] = ("wecom", "dingtalk", "feishu", "slack")
# What says something only about receivers of some kinds.
ONLY: Mapping[str, tuple[Kind, ...]] = {
    **dict.fromkeys(("secret", "secret_file"), ("dingtalk", "feishu", "webhook")),
    **dict.fromkeys(("token", "token_file"), ("webhook", "alertmanager")),
    **dict.fromkeys(("sender", "to", "to_owners", "user", "password", "password_file", "tls"), ("mail",)),
    "mention": CHATS,
    **dict.fromkeys(("template", "template_file"), (*CHATS, "mail", "console", "apprise")),
}
SECRETS = ("url", "secret", "token", "password")  # each may also be in a file: url_file and so on
MAIL_PORTS = {"starttls": 587, "tls": 465, "none": 25}


def address_parts(url: str) -> SplitResult:
    """Given an address, return its parts. Raise ValueError that says what to write, and does not repeat the address."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("the address cannot be read; copy it whole from the robot's page") from None
    if not (parts.scheme and (parts.hostname or parts.path)) or any(c.isspace() for c in url):
        raise ValueError("is no address; write https://…, smtp://host:port for mail, or console")
    return parts


def read_text_file(path: str) -> str:
    """Given a file, return its text without the last line break. Raise ValueError, without the text in it."""
    try:
        text = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ValueError(f"cannot read {quoted(path)}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{quoted(path)} holds no text") from None
    if not text:
        raise ValueError(f"{quoted(path)} is empty")
    return text


def _can_be_read(path: str) -> str:
    read_text_file(path)
    return path


TextFile = Annotated[AbsolutePath, AfterValidator(_can_be_read)]
Secret = Annotated[SecretStr, Field(min_length=1)]


def given_secret(section: Section, name: str) -> str | None:
    """Return the secret of this name, inline or from its file. Raise ValueError if both are given."""
    inline, file = getattr(section, name), getattr(section, f"{name}_file")
    if inline is not None and file is not None:
        raise ValueError(f"give {name} or {name}_file, not both")
    if file is not None:
        return read_text_file(file).strip() if name == "url" else read_text_file(file)
    return inline.get_secret_value() if inline is not None else None


def http_address(url: str | None) -> str:
    """Given the address of something that speaks HTTP, return it. Raise ValueError, without the address in it."""
    if url is None:
        raise ValueError("is not complete; give url or url_file")
    if address_parts(url).scheme not in ("http", "https"):
        raise ValueError("the address has to begin with https:// or http://")
    return url


class OwnerConfig(Section):
    """How a user of the cluster is reached."""

    wecom: str | None = None
    mobile: str | None = None
    mail: str | None = None
    feishu: str | None = None
    slack: str | None = None

    def owner(self) -> OwnerContact:
        return OwnerContact(**self.model_dump())


class PaceConfig(Section):
    """How many messages a receiver takes in how long, and the least time between two."""

    count: Annotated[int, Field(ge=1)] | None = None
    window: Span = 60.0
    gap: Duration = 0.0


def check_template(text: str) -> None:
    """Given a template of messages, return if it can be read. Raise ValueError."""
    from monitor.alert.message import template  # here: few have one, and it takes as long to load as all the rest

    try:
        template.check_template(text)
    except ValueError as error:
        raise ValueError(f"the template cannot be read: {error}") from None


def parse_receiver(value: object) -> object:
    """`https://qyapi…` is short for `{url: https://qyapi…}`, and `console` for `{kind: console}`."""
    if value == "console":
        return {"kind": value}
    return {"url": value} if isinstance(value, str) else value


def parse_words(value: object) -> object:
    """`all` is short for `[all]`."""
    return [value] if isinstance(value, str) else value


class ReceiverConfig(Section):
    """Somebody who is told. What it is follows from its address, unless `kind` says so."""

    url: Secret | None = None
    url_file: TextFile | None = None
    kind: Kind | None = None
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    secret: Secret | None = None
    secret_file: TextFile | None = None
    token: Secret | None = None
    token_file: TextFile | None = None
    language: Language | None = None
    template: Annotated[str, Field(min_length=1)] | None = None
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

    @model_validator(mode="after")
    def _what_is_given_fits_the_kind(self) -> Self:
        kind = self.real_kind
        for name in sorted(self.model_fields_set & ONLY.keys()):
            if kind not in ONLY[name]:
                raise ValueError(f"{name} says nothing about a receiver of kind {kind}")
        for name in SECRETS:
            given_secret(self, name)
        if self.template is not None and self.template_file is not None:
            raise ValueError("give template or template_file, not both")
        if (template := self._template()) is not None:
            check_template(template)
        self._check_address(kind)
        return self

    @property
    def address(self) -> str | None:
        """Return the address, read from its file if that is where it is. Raise ValueError."""
        return given_secret(self, "url")

    @property
    def real_kind(self) -> Kind:
        """What it is: as given, else as its address says. Raise ValueError if that says nothing."""
        if self.kind is not None:
            return self.kind
        address = self.address
        if address is None:
            raise ValueError("is not complete; give url or url_file, or kind: console")
        parts = address_parts(address)
        if parts.scheme in ("smtp", "smtps"):
            return "mail"
        if parts.scheme in ("http", "https"):
            return HOSTS.get(parts.hostname or "", "webhook")
        raise ValueError("the address has to begin with https:// or smtp://; or say what it is with kind")

    def _check_address(self, kind: Kind) -> None:
        if kind == "console":
            if self.address is not None:
                raise ValueError("a receiver of kind console has no address")
        elif kind == "mail":
            self._mail()
        elif kind == "apprise":
            address_parts(self.address or "")
        else:
            parts = address_parts(http_address(self.address))
            if kind == "wecom" and not parse_qs(parts.query).get("key"):
                raise ValueError("the address of a WeCom robot ends with ?key=…; copy it whole from the robot's page")

    def _mail(self) -> MailSettings:
        parts = address_parts(self.address or "smtp:")
        if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
            raise ValueError("the address of a mail server is written smtp://host:port, or smtps://host:port")
        if parts.password is not None:
            raise ValueError("an address holds no password; use password_file")
        if self.sender is None or not (self.to or self.to_owners):
            raise ValueError("mail needs sender, and to or to_owners: true")
        tls = self.tls or ("tls" if parts.scheme == "smtps" else "starttls")
        return MailSettings(
            host=parts.hostname,
            port=parts.port or MAIL_PORTS[tls],
            sender=self.sender,
            to=self.to,
            to_owners=self.to_owners,
            user=self.user or parts.username,
            password=given_secret(self, "password"),
            tls=tls,
        )

    def _template(self) -> str | None:
        return read_text_file(self.template_file) if self.template_file is not None else self.template

    def settings(self, name: str, **common: Any) -> ReceiverSettings:
        """Given its name and what all receivers share, return what it is told. Raise ValueError if a file is gone."""
        kind = self.real_kind
        return ReceiverSettings(
            name=name,
            kind=kind,
            url=self.address or "",
            secret=given_secret(self, "secret"),
            token=given_secret(self, "token"),
            template=self._template(),
            mention=self.mention,
            timeout=self.timeout,
            proxy=self.proxy.get_secret_value() if self.proxy is not None else None,
            ca_file=self.ca_file,
            verify_tls=self.verify_tls,
            pace=RateLimit(**self.pace.model_dump()) if self.pace is not None else None,
            mail=self._mail() if kind == "mail" else None,
            **(common | ({"language": self.language} if self.language is not None else {})),
        )


def named(receivers: Iterable[ReceiverConfig]) -> dict[str, ReceiverConfig]:
    """Given receivers, return them by name: as given, else by kind, numbered from the second. Raise ValueError."""
    by_name: dict[str, ReceiverConfig] = {}
    for receiver in receivers:
        name, number = receiver.name or receiver.real_kind, 1
        if receiver.name in by_name:
            raise ValueError(f"two receivers are called {quoted(name)}; give each its own name")
        while name in by_name:
            number += 1
            name = f"{receiver.real_kind}-{number}"
        by_name[name] = receiver
    return by_name


def unlike_names(receivers: tuple[ReceiverConfig, ...]) -> tuple[ReceiverConfig, ...]:
    """Given receivers, return them. Raise ValueError if two have the same name: what was told is known by it."""
    named(receivers)
    return receivers
