"""Settings of the platform services that are probed."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import SplitResult

from pydantic import Field, SecretStr

from monitor.base.units import quoted
from monitor.config.derive import build
from monitor.config.types import AbsolutePath, Duration, NonEmpty, Section, Span, check_with, split_url, unique_names
from monitor.probes.runner import ServiceTarget

ServiceKind = Literal["http", "tcp", "postgresql", "harbor", "registry"]
SCHEMES: dict[ServiceKind, tuple[str, ...]] = {
    "http": ("http", "https"),
    "harbor": ("http", "https"),
    "registry": ("http", "https"),
    "tcp": ("tcp",),
    "postgresql": ("postgresql", "postgres"),
}
# Setting -> kinds of service that it applies to.
ONLY: dict[str, tuple[str, ...]] = {
    "status": ("http", "harbor"),
    "contains": ("http",),
    **dict.fromkeys(("password", "password_file", "max_lag", "write"), ("postgresql",)),
}
UNIQUE_NAMES = unique_names("two services are called {}; give each its own name", "effective_name")


def _parse_url(url: str) -> SplitResult:
    parts = split_url(url, "write for example https://portal.lab/login")
    if parts.password is not None:
        raise ValueError("an address holds no password; use password_file")
    if not any(parts.scheme in schemes for schemes in SCHEMES.values()) or not parts.hostname:
        example = "https://portal.lab/login, tcp://10.0.0.1:22 or postgresql://user@db.lab/name"
        raise ValueError(f"{quoted(url)} is not a service's address; write for example {example}")
    if parts.scheme == "tcp" and parts.port is None:
        raise ValueError(f"{quoted(url)} has no port; write tcp://host:port")
    return parts


class ServiceConfig(Section):
    """A service. The URL determines its kind; `kind` distinguishes Harbor and registries from other pages."""

    url: Annotated[str, check_with(_parse_url)]
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    kind: ServiceKind | None = None
    interval: Span = ServiceTarget.interval
    limit: Span = ServiceTarget.limit
    status: tuple[Annotated[int, Field(ge=100, le=599)], ...] = ()
    contains: NonEmpty | None = None
    ca_file: AbsolutePath | None = None
    verify_tls: bool = True
    write: bool = True
    max_lag: Duration | None = None
    password: SecretStr | None = None
    password_file: AbsolutePath | None = None

    def check(self) -> None:
        kind, scheme = self.effective_kind, _parse_url(self.url).scheme
        if scheme not in SCHEMES[kind]:
            raise ValueError(f"a service of kind {kind} has an address that begins with {SCHEMES[kind][-1]}://")
        self.check_applicable("service", kind, ONLY)
        self._password()

    @property
    def effective_kind(self) -> ServiceKind:
        """Kind of the service: as given, or from its URL."""
        scheme = _parse_url(self.url).scheme
        fitting = (kind for kind, schemes in SCHEMES.items() if scheme in schemes)
        return next(fitting) if self.kind is None else self.kind

    @property
    def effective_name(self) -> str:
        """Name of the service: as given, or the host and port of its URL."""
        return self.name or _parse_url(self.url).netloc.rpartition("@")[2]

    def target(self) -> ServiceTarget:
        """Target of the prober. Raise ValueError if the password file is unreadable."""
        return build(ServiceTarget, self, name=self.effective_name, kind=self.effective_kind, password=self._password())

    def _password(self) -> str | None:
        return self.read_secret("password", allow_empty=True)
