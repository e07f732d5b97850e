"""Settings of access control; `monitor.config.access` creates them."""

from __future__ import annotations

from dataclasses import dataclass, field

from monitor.access.passwords import PasswordHash
from monitor.access.principal import AuthMethod, Role
from monitor.base.net import Network

HOUR = 3600.0


@dataclass(frozen=True)
class Account:
    """A user who signs in with a password. `cluster_user` is the owner name on their pods."""

    name: str
    role: Role
    password: PasswordHash
    cluster_user: str


@dataclass(frozen=True)
class AccessToken:
    """A bearer token of a program or of the command line."""

    name: str
    role: Role
    token: str = field(repr=False)
    method: AuthMethod = AuthMethod.TOKEN


@dataclass(frozen=True)
class TrustedHeader:
    """A header in which an authenticating proxy names the user; trusted from these networks only.

    `role` applies when `role_header` is not sent and there is no account of that name.
    """

    name: str
    networks: tuple[Network, ...]
    role: Role = Role.VIEWER
    role_header: str | None = None


@dataclass(frozen=True)
class AccessSettings:
    """Who has access. `anonymous` is the role without authentication, with `local_only` for local clients only."""

    accounts: tuple[Account, ...] = ()
    tokens: tuple[AccessToken, ...] = ()
    header: TrustedHeader | None = None
    anonymous: Role = Role.VIEWER
    local_only: bool = True
    lifetime: float = 12 * HOUR
    idle: float = 2 * HOUR

    @property
    def closed(self) -> bool:
        """Whether a way to authenticate is configured, in addition to the login link and the local token."""
        return bool(self.accounts or self.tokens or self.header)

    @property
    def proxies(self) -> tuple[Network, ...]:
        """Networks of the authenticating proxy, through which all users may come."""
        return self.header.networks if self.header is not None else ()
