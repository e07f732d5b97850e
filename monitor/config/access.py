"""Who may look and who may act: the settings of `daemon.access`.

daemon:
  access:
    users:
      - name: zhang
        role: user
        password_hash: scrypt$...      # gpuwarden hash-password
        cluster_user: zhang.wei        # what the pods call them; the name, if it is not given
    tokens:
      - {name: portal, role: viewer, token_file: /etc/gpuwarden/portal.token}
    trusted_header: {name: X-Forwarded-User, from: [10.0.0.5/32]}
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Literal, Protocol, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from monitor.access.passwords import parse_hash
from monitor.access.principal import Role
from monitor.access.settings import HOUR, AccessSettings, AccessToken, Account, Network, TrustedHeader
from monitor.base.units import quoted
from monitor.config.types import SecretSection, Section, Span

SHORTEST_TOKEN = 20
DAEMON_TOKEN = "daemon.token"  # noqa: S105  # who sends the token of that setting
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}", re.ASCII)
RoleName = Literal["viewer", "user", "admin"]


class Named(Protocol):
    """Something with a name."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def check_name(name: str) -> str:
    """Given a name, return it. Raise ValueError if it could not be typed, or not be told from another."""
    if not name or name != name.strip() or not name.isprintable() or len(name) > 100:
        raise ValueError(f"{quoted(name)} is no name; write up to 100 letters, without spaces around them")
    return name


def check_hash(value: SecretStr) -> SecretStr:
    """Given a password hash, return it. Raise ValueError, without the hash in it."""
    parse_hash(value.get_secret_value())
    return value


def check_header(name: str) -> str:
    """Given the name of a header, return it. Raise ValueError."""
    if not _HEADER.fullmatch(name):
        raise ValueError(f"{quoted(name)} is no name of a header; one is X-Forwarded-User")
    return name


def parse_networks(value: object) -> tuple[Network, ...]:
    """Given `10.0.0.5` or a list of such and `10.0.0.0/24`, return the networks. Raise ValueError."""
    listed = value if isinstance(value, (list, tuple)) else (value,)
    try:
        found = tuple(ipaddress.ip_network(str(each)) for each in listed)
    except ValueError as error:
        raise ValueError(f"{error}; write an address, or a network like 10.0.0.0/24") from None
    if not found:
        raise ValueError("name the addresses of the proxy; a header from anywhere proves nothing")
    return found


def unlike_names(each: tuple[N, ...]) -> tuple[N, ...]:
    """Given named settings, return them. Raise ValueError if two have one name: the record would not tell whose."""
    twice = _first_twice(one.name for one in each)
    if twice is not None:
        raise ValueError(f"{quoted(twice)} is there twice; give each its own name")
    return each


def _first_twice(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


Name = Annotated[str, AfterValidator(check_name)]
Header = Annotated[str, AfterValidator(check_header)]


class UserConfig(Section):
    """Somebody who signs in with a password."""

    name: Name
    role: RoleName = "viewer"
    password_hash: Annotated[SecretStr, AfterValidator(check_hash)]
    cluster_user: Name | None = None

    def account(self) -> Account:
        """Return it as the gate takes it."""
        known = parse_hash(self.password_hash.get_secret_value())
        return Account(self.name, Role(self.role), known, self.cluster_user or self.name)


class AccessTokenConfig(SecretSection):
    """A program that sends a token."""

    name: Name
    role: RoleName = "viewer"

    @model_validator(mode="after")
    def _has_one_that_nobody_guesses(self) -> Self:
        if len(self.read_token() or "") < SHORTEST_TOKEN:
            raise ValueError(f"a token has at least {SHORTEST_TOKEN} characters; openssl rand -hex 20 makes one")
        return self

    def access_token(self) -> AccessToken:
        """Return it as the gate takes it. Raise ValueError if its file is gone."""
        return AccessToken(self.name, Role(self.role), self.read_token() or "")


class TrustedHeaderConfig(Section):
    """A proxy that asks people who they are. `role` is what those have of whom nothing else says one."""

    name: Header
    networks: Annotated[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...], BeforeValidator(parse_networks)] = (
        Field(alias="from")
    )
    role_header: Header | None = None
    role: RoleName = "viewer"

    def header(self) -> TrustedHeader:
        """Return it as the gate takes it."""
        return TrustedHeader(self.name, self.networks, Role(self.role), self.role_header)


class AccessConfig(Section):
    """Who may look and who may act. Nobody has to sign in to look, where only this machine can; elsewhere all do."""

    users: Annotated[tuple[UserConfig, ...], AfterValidator(unlike_names)] = ()
    tokens: Annotated[tuple[AccessTokenConfig, ...], AfterValidator(unlike_names)] = ()
    anonymous: Literal["viewer", "none"] | None = None
    trusted_header: TrustedHeaderConfig | None = None
    session_lifetime: Span = 12 * HOUR
    session_idle: Span = 2 * HOUR

    def settings(self, token: str | None, *, loopback: bool) -> AccessSettings:
        """Given the token of the daemon, if there is one, and whether only this machine reaches it, return who may.

        Raise ValueError, in words for a user, if a file is gone, or if nobody could be let in.
        """
        tokens = tuple(each.access_token() for each in self.tokens)
        if token is not None:
            tokens = (AccessToken(DAEMON_TOKEN, Role.ADMIN, token), *tokens)
        found = AccessSettings(
            accounts=tuple(user.account() for user in self.users),
            tokens=tokens,
            header=self.trusted_header.header() if self.trusted_header is not None else None,
            anonymous=Role(self.anonymous or ("viewer" if loopback else "none")),
            local_only=self.anonymous is None,
            lifetime=self.session_lifetime,
            idle=self.session_idle,
        )
        if not loopback and not found.closed and found.anonymous is Role.NONE:
            raise ValueError(
                "others can reach the page, and nothing says who may; name users or tokens in daemon.access "
                "(gpuwarden hash-password makes the password_hash), or let everybody look with anonymous: viewer"
            )
        return found

    def own_token(self) -> str | None:
        """Return a token of an admin, for the command line. Raise ValueError if its file is gone."""
        return next((each.read_token() for each in self.tokens if each.role == "admin"), None)
