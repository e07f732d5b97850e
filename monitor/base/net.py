"""Host names and addresses."""

from __future__ import annotations

import ipaddress
import select
import socket
from collections.abc import Sequence
from typing import Protocol

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_LOOPBACK_NAMES = ("localhost", "localhost.localdomain")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # listening address -> address to connect to


class SupportsFileno(Protocol):
    """A socket, also one that belongs to an event loop."""

    def fileno(self) -> int: ...


def connect_host(host: str) -> str:
    """Host to connect to for a server that listens on `host`, which may be a wildcard address."""
    return _EVERYWHERE.get(host, host)


def is_wildcard(host: str) -> bool:
    """Whether `host` is a wildcard address."""
    return host in _EVERYWHERE


def is_loopback(host: str) -> bool:
    """Whether a name or address is a loopback address."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def in_networks(host: str, networks: Sequence[Network]) -> bool:
    """Whether an address is in one of the networks."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return any((mapped or address) in network for network in networks)


def break_off(sock: socket.socket) -> None:
    """End both directions of a connection, also one with TLS that another thread is using."""
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not that of TLS, which is not thread-safe
    except OSError:  # not connected
        return


def has_unread_data(sock: SupportsFileno) -> bool:
    """Whether the peer of a connection has sent data that is still to be read, and has not hung up."""
    poll = select.poll()
    try:
        poll.register(sock.fileno(), select.POLLIN | select.POLLRDHUP)
        return [event for _, event in poll.poll(0)] == [select.POLLIN]
    except (OSError, ValueError):  # closed
        return False
