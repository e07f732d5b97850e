"""Settings of access control.

daemon:
  access:
    users:
      - name: zhang
        role: user
        password_hash: scrypt$...      # gpuwarden hash-password
        cluster_user: zhang.wei        # owner name on the pods; default: the name
    tokens:
      - {name: portal, role: viewer, token_file: /etc/gpuwarden/portal.token}
    trusted_header: {name: X-Forwarded-User, from: [10.0.0.5/32]}
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr

from monitor.access.passwords import parse_hash
from monitor.access.principal import Role
from monitor.access.settings import AccessSettings, AccessToken, Account, TrustedHeader
from monitor.base.net import Network
from monitor.config.types import SecretSection, Section, Span, check_with, require, unique_names

MIN_TOKEN_CHARS = 20
DAEMON_TOKEN = "daemon.token"  # noqa: S105  # principal of the token in that setting
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}", re.ASCII)
_UNIQUE_NAMES = unique_names("{} is there twice; give each its own name")  # the audit log refers to them
RoleName = Literal["viewer", "user", "admin"]


def parse_networks(value: object) -> tuple[Network, ...]:
    """Networks from `10.0.0.5`, or from a list of addresses and networks such as `10.0.0.0/24`."""
    items = value if isinstance(value, (list, tuple)) else (value,)
    try:
        networks = tuple(ipaddress.ip_network(str(item)) for item in items)
    except ValueError as error:
        raise ValueError(f"{error}; write an address, or a network like 10.0.0.0/24") from None
    if not networks:
        raise ValueError("name the addresses of the proxy; a header from anywhere proves nothing")
    return networks


UserName = Annotated[
    str,
    require(
        lambda name: name and name == name.strip() and name.isprintable() and len(name) <= 100,
        "{} is no name; write up to 100 letters, without spaces around them",
    ),
]
Header = Annotated[str, require(_HEADER.fullmatch, "{} is no name of a header; one is X-Forwarded-User")]
PasswordHash = Annotated[SecretStr, check_with(lambda text: parse_hash(text.get_secret_value()))]


class UserConfig(Section):
    """A user who signs in with a password."""

    name: UserName
    role: RoleName = "viewer"
    password_hash: PasswordHash
    cluster_user: UserName | None = None

    def account(self) -> Account:
        password = parse_hash(self.password_hash.get_secret_value())
        return Account(self.name, Role(self.role), password, self.cluster_user or self.name)


class AccessTokenConfig(SecretSection):
    """A program that authenticates with a token."""

    name: UserName
    role: RoleName = "viewer"

    def check(self) -> None:
        if len(self.read_token() or "") < MIN_TOKEN_CHARS:
            raise ValueError(f"a token has at least {MIN_TOKEN_CHARS} characters; openssl rand -hex 20 makes one")

    def access_token(self) -> AccessToken:
        return AccessToken(self.name, Role(self.role), self.read_token() or "")


class TrustedHeaderConfig(Section):
    """An authenticating proxy. `role` is the default for users without another role."""

    name: Header
    networks: Annotated[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...], BeforeValidator(parse_networks)] = (
        Field(alias="from")
    )
    role_header: Header | None = None
    role: RoleName = "viewer"

    def header(self) -> TrustedHeader:
        return TrustedHeader(self.name, self.networks, Role(self.role), self.role_header)


class AccessConfig(Section):
    """Who may view and who may act. Viewing without authentication is the default on the loopback address only."""

    users: Annotated[tuple[UserConfig, ...], _UNIQUE_NAMES] = ()
    tokens: Annotated[tuple[AccessTokenConfig, ...], _UNIQUE_NAMES] = ()
    anonymous: Literal["viewer", "none"] | None = None
    trusted_header: TrustedHeaderConfig | None = None
    session_lifetime: Span = AccessSettings.lifetime
    session_idle: Span = AccessSettings.idle

    def settings(self, token: str | None, *, loopback: bool) -> AccessSettings:
        """Settings of access control. `token` is that of the daemon; `loopback`: only this machine can connect.

        Raise ValueError, for the user, if a token file is unreadable or no client could authenticate.
        """
        tokens = tuple(config.access_token() for config in self.tokens)
        if token is not None:
            tokens = (AccessToken(DAEMON_TOKEN, Role.ADMIN, token), *tokens)
        settings = AccessSettings(
            accounts=tuple(user.account() for user in self.users),
            tokens=tokens,
            header=self.trusted_header.header() if self.trusted_header is not None else None,
            anonymous=Role(self.anonymous or ("viewer" if loopback else "none")),
            local_only=self.anonymous is None,
            lifetime=self.session_lifetime,
            idle=self.session_idle,
        )
        if not loopback and not settings.closed and settings.anonymous is Role.NONE:
            raise ValueError(
                "others can reach the page, and nothing says who may; name users or tokens in daemon.access "
                "(gpuwarden hash-password makes the password_hash), or allow viewing by all with anonymous: viewer"
            )
        return settings

    def admin_token(self) -> str | None:
        """Token of an admin, for the command line. Raise ValueError if its file is unreadable."""
        return next((token.read_token() for token in self.tokens if token.role == "admin"), None)
