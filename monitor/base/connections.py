"""Which connections a server keeps: limits in total and per client, with room for health checks.

A full server disconnects the oldest connection that is not being answered, first of the client with the most
connections: slow or idle clients displace each other, and one client cannot keep out the rest. A request that has
arrived but not been read yet stays, or a burst of idle connections would displace it before its turn.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

IPV6_SITE_BITS = 64  # a single machine usually has this whole range


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of a server; `reserved` connections beyond each limit serve health checks only."""

    total: int
    per_client: int
    reserved: int


@dataclass(eq=False)
class OpenConnection:
    """A connection of a client; while `busy`, its request is being answered and it is not disconnected.

    `has_data` tells whether unread data has arrived; it counts until the server has `begun` to read.
    """

    client: str
    disconnect: Callable[[], None]
    has_data: Callable[[], bool] = lambda: False
    busy: bool = False
    begun: bool = False
    health_only: bool = False


@dataclass(frozen=True)
class Placement:
    """Whether a new connection is accepted, and which older one makes room for it."""

    accepted: bool
    victim: OpenConnection | None = None
    health_only: bool = False


def place(existing: Sequence[OpenConnection], client: str, limits: ConnectionLimits) -> Placement:
    """Decide about a new connection; `existing` lists the others, oldest first."""
    counts = Counter(connection.client for connection in existing)
    client_full, full = counts[client] >= limits.per_client, len(existing) >= limits.total
    if not client_full and not full:
        return Placement(accepted=True)
    candidates = [
        connection
        for connection in existing
        if not connection.busy and (not client_full or connection.client == client)
    ]
    candidates.sort(key=lambda connection: -counts[connection.client])  # the oldest of several first
    victim = next((connection for connection in candidates if connection.begun or not connection.has_data()), None)
    if victim is not None:
        return Placement(accepted=True, victim=victim)
    within_reserve = (
        counts[client] < limits.per_client + limits.reserved and len(existing) < limits.total + limits.reserved
    )
    return Placement(accepted=within_reserve, health_only=True)


class ConnectionTable:
    """The open connections of a server. Thread-safe."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._open: dict[OpenConnection, None] = {}  # oldest first

    def admit(
        self,
        client: str,
        disconnect: Callable[[], None],
        has_data: Callable[[], bool] = lambda: False,
        *,
        trusted: bool = False,
    ) -> OpenConnection | None:
        """Register a connection, disconnecting another one if necessary; None if there is no room.

        A trusted client, such as a proxy, may use all connections.
        """
        limits = self._limits
        if trusted:
            limits = ConnectionLimits(limits.total, limits.total, limits.reserved)
        with self._lock:
            placement = place(tuple(self._open), client, limits)
            if placement.victim is not None:
                del self._open[placement.victim]
                placement.victim.disconnect()
            if not placement.accepted:
                return None
            connection = OpenConnection(client, disconnect, has_data, health_only=placement.health_only)
            self._open[connection] = None
            return connection

    def remove(self, connection: OpenConnection) -> None:
        """Forget a connection before its socket is closed."""
        with self._lock:
            self._open.pop(connection, None)


def client_of(address: str) -> str:
    """The client that an IP address counts as: the address itself, or its network for IPv6."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, IPV6_SITE_BITS), strict=False))
    return str(parsed)
