"""Where a server that listens is reached from the same machine."""

from __future__ import annotations

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # where one listens -> where one connects


def reached_at(host: str) -> str:
    """Given the host that a server listens on, return the one to connect to: all addresses are no address."""
    return _EVERYWHERE.get(host, host)


def everywhere(host: str) -> bool:
    """Return whether a server that listens on this host listens on all addresses."""
    return host in _EVERYWHERE
