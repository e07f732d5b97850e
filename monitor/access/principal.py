"""Persons and what they may do. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Role(StrEnum):
    """What somebody may do, each with all that those before it may."""

    NONE = "none"  # nothing but sign in
    VIEWER = "viewer"  # look at everything
    USER = "user"  # act on what is their own
    ADMIN = "admin"  # act on everything

    def covers(self, other: Role) -> bool:
        """Return whether this role may do all that the other may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


class How(StrEnum):
    """How it is known who asks."""

    ANONYMOUS = "anonymous"
    MACHINE = "machine"  # somebody on this machine, while nobody has to prove who they are
    TOKEN = "token"  # noqa: S105  # a word
    SESSION = "session"
    HEADER = "header"  # a proxy says so


@dataclass(frozen=True)
class Person:
    """Who asks. `cluster_user` is what their pods call them; `csrf` is what each of their forms has to carry."""

    name: str
    role: Role
    cluster_user: str | None = None
    csrf: str | None = field(default=None, repr=False)
    how: How = How.ANONYMOUS

    @property
    def known(self) -> bool:
        """Return whether they have shown who they are."""
        return self.how is not How.ANONYMOUS

    def may(self, role: Role | str) -> bool:
        """Return whether they may do what this role may."""
        return self.role.covers(Role(role))

    def owns(self, user: str | None) -> bool:
        """Given whose something is, return whether this person may act on it. What is nobody's is an admin's."""
        if self.role is Role.ADMIN:
            return True
        return self.role is Role.USER and user is not None and user == self.cluster_user
