"""The platform's services that are probed: what can be written about one, and what that means."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from monitor.base.units import quoted
from monitor.config.types import AbsolutePath, Duration, Section, Span, read_password
from monitor.probes.runner import ServiceTarget

Kind = Literal["http", "tcp", "postgresql", "harbor", "registry"]
SCHEMES: dict[Kind, tuple[str, ...]] = {
    "http": ("http", "https"),
    "harbor": ("http", "https"),
    "registry": ("http", "https"),
    "tcp": ("tcp",),
    "postgresql": ("postgresql", "postgres"),
}
# What says something only about services of one kind.
ONLY = {
    "status": ("http", "harbor"),
    "contains": ("http",),
    "password": ("postgresql",),
    "password_file": ("postgresql",),
    "max_lag": ("postgresql",),
    "write": ("postgresql",),
}
Status = Annotated[int, Field(ge=100, le=599)]


def parse_service(value: object) -> object:
    """`https://portal.lab` is short for `{url: https://portal.lab}`."""
    return {"url": value} if isinstance(value, str) else value


def split_url(url: str) -> SplitResult:
    """Given an address, return its parts. Raise ValueError that says what to write; a password is not repeated."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("the address cannot be read; write for example https://portal.lab/login") from None
    if parts.password is not None:
        raise ValueError("an address holds no password; use password_file")
    if not any(parts.scheme in known for known in SCHEMES.values()) or not parts.hostname:
        example = "https://portal.lab/login, tcp://10.0.0.1:22 or postgresql://user@db.lab/name"
        raise ValueError(f"{quoted(url)} is not a service's address; write for example {example}")
    if parts.scheme == "tcp" and port is None:
        raise ValueError(f"{quoted(url)} has no port; write tcp://host:port")
    return parts


class ServiceConfig(Section):
    """One service. What it is follows from its address; `kind` tells Harbor and registries from other pages."""

    url: str
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    kind: Kind | None = None
    interval: Span = 15.0
    limit: Span = 10.0
    status: tuple[Status, ...] = ()
    contains: Annotated[str, Field(min_length=1)] | None = None
    ca_file: AbsolutePath | None = None
    verify_tls: bool = True
    write: bool = True
    max_lag: Duration | None = None
    password: SecretStr | None = None
    password_file: AbsolutePath | None = None

    @field_validator("url")
    @classmethod
    def _an_address(cls, url: str) -> str:
        split_url(url)
        return url

    @model_validator(mode="after")
    def _what_is_given_fits_the_kind(self) -> Self:
        kind, scheme = self.real_kind, split_url(self.url).scheme
        if scheme not in SCHEMES[kind]:
            raise ValueError(f"a service of kind {kind} has an address that begins with {SCHEMES[kind][-1]}://")
        for name in sorted(self.model_fields_set & ONLY.keys()):
            if kind not in ONLY[name]:
                raise ValueError(f"{name} says nothing about a service of kind {kind}")
        if self.password is not None and self.password_file is not None:
            raise ValueError("give password or password_file, not both")
        self._read_password()
        return self

    @property
    def real_kind(self) -> Kind:
        """What it is: as given, else as its address says."""
        if self.kind is not None:
            return self.kind
        scheme = split_url(self.url).scheme
        return next(kind for kind, schemes in SCHEMES.items() if scheme in schemes)

    @property
    def real_name(self) -> str:
        """What it is called: as given, else by its address."""
        return self.name or split_url(self.url).netloc.rpartition("@")[2]

    def target(self) -> ServiceTarget:
        """Return what is to be probed. Raise ValueError if the password's file cannot be read."""
        plain = self.model_dump(exclude={"url", "name", "kind", "password", "password_file"})
        return ServiceTarget(
            name=self.real_name, kind=self.real_kind, url=self.url, password=self._read_password(), **plain
        )

    def _read_password(self) -> str | None:
        return read_password(self.password, self.password_file)


def unlike_names(services: tuple[ServiceConfig, ...]) -> tuple[ServiceConfig, ...]:
    """Given services, return them. Raise ValueError if two have the same name: what is found is known by it."""
    seen: set[str] = set()
    for service in services:
        if service.real_name in seen:
            raise ValueError(f"two services are called {quoted(service.real_name)}; give each its own name")
        seen.add(service.real_name)
    return services
