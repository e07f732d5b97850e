"""Principals, their roles, and how they are authenticated."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Role(StrEnum):
    """Roles in ascending order; each includes the permissions of those before it."""

    NONE = "none"  # may only sign in
    VIEWER = "viewer"  # reads everything
    USER = "user"  # acts on their own workloads
    ADMIN = "admin"  # acts on everything

    def includes(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


class AuthMethod(StrEnum):
    """How a principal is authenticated."""

    ANONYMOUS = "anonymous"
    MACHINE = "machine"  # a command that can read the token file in the state directory
    TOKEN = "token"  # noqa: S105  # not a secret
    SESSION = "session"
    HEADER = "header"  # set by a trusted proxy
    LINK = "link"  # the signed link of a notice


@dataclass(frozen=True)
class Principal:
    """Who makes a request. `cluster_user` owns pods; `csrf` is required in every change made with a session."""

    name: str
    role: Role
    cluster_user: str | None = None
    csrf: str | None = field(default=None, repr=False)
    method: AuthMethod = AuthMethod.ANONYMOUS

    @property
    def authenticated(self) -> bool:
        return self.method is not AuthMethod.ANONYMOUS

    def has_role(self, role: Role | str) -> bool:
        return self.role.includes(Role(role))

    def may_act_on(self, owner: str | None) -> bool:
        """Whether this principal may act on the workloads of `owner`; those without an owner are left to admins."""
        if self.role is Role.ADMIN:
            return True
        return self.role is Role.USER and owner is not None and owner == self.cluster_user
