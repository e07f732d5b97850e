"""Host names and addresses."""

from __future__ import annotations

import ipaddress

_LOOPBACK_NAMES = ("localhost", "localhost.localdomain")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # where one listens -> where one connects


def reached_at(host: str) -> str:
    """Given the host that a server listens on, return the one to connect to: all addresses are no address."""
    return _EVERYWHERE.get(host, host)


def everywhere(host: str) -> bool:
    """Return whether a server that listens on this host listens on all addresses."""
    return host in _EVERYWHERE


def is_loopback(host: str) -> bool:
    """Return whether a name or an address means this machine."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
