"""Who is let in, as the gate takes it. `monitor.config.access` makes it of the configuration."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from monitor.access.passwords import PasswordHash
from monitor.access.principal import Role

HOUR = 3600.0
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Account:
    """Somebody who signs in with a password. `cluster_user` is what their pods call them."""

    name: str
    role: Role
    password: PasswordHash
    cluster_user: str


@dataclass(frozen=True)
class AccessToken:
    """A program, or the command line, that sends a token."""

    name: str
    role: Role
    token: str = field(repr=False)


@dataclass(frozen=True)
class TrustedHeader:
    """A proxy that has asked who somebody is, and says so in a header. Only these networks are believed.

    Without a word in `role_header`, and without an account of that name, the role is `role`.
    """

    name: str
    networks: tuple[Network, ...]
    role: Role = Role.VIEWER
    role_header: str | None = None


@dataclass(frozen=True)
class AccessSettings:
    """Who is let in. `anonymous` is what those may do who do not say who they are, `here_only` if they are here."""

    accounts: tuple[Account, ...] = ()
    tokens: tuple[AccessToken, ...] = ()
    header: TrustedHeader | None = None
    anonymous: Role = Role.VIEWER
    here_only: bool = True
    lifetime: float = 12 * HOUR
    idle: float = 2 * HOUR

    @property
    def closed(self) -> bool:
        """Return whether there is a way to show who one is; then it has to be gone, by those on this machine too."""
        return bool(self.accounts or self.tokens or self.header)
