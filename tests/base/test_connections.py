from __future__ import annotations

import pytest

from monitor.base.connections import ConnectionLimits, ConnectionTable, OpenConnection, Placement, client_of, place

LIMITS = ConnectionLimits(total=4, per_client=2, reserved=1)


def connection(client: str, *, busy: bool = False) -> OpenConnection:
    return OpenConnection(client, lambda: None, busy=busy)


def connections(clients: str) -> list[OpenConnection]:
    """One connection per letter, oldest first; a capital one is busy."""
    return [connection(letter.lower(), busy=letter.isupper()) for letter in clients]


@pytest.mark.parametrize(
    ("existing", "client", "victim"),
    [
        ("", "a", None),
        ("abc", "a", None),
        ("aab", "a", 0),  # the client has its share: its own oldest
        ("Aab", "a", 1),
        ("baac", "d", 1),  # the server is full: the oldest of the client with most connections
        ("abcd", "e", 0),
        ("AbCD", "e", 1),
        ("AAbc", "d", 2),
    ],
)
def test_who_makes_room(existing: str, client: str, victim: int | None) -> None:
    others = connections(existing)
    expected = others[victim] if victim is not None else None
    assert place(others, client, LIMITS) == Placement(accepted=True, victim=expected)


def test_a_request_that_has_arrived_is_not_displaced() -> None:
    others = connections("aab")
    others[0].has_data = lambda: True
    assert place(others, "a", LIMITS).victim is others[1]
    others[0].begun = True  # what follows is read at the pace of the server, and does not count
    assert place(others, "a", LIMITS).victim is others[0]


@pytest.mark.parametrize(
    ("existing", "client", "accepted"),
    [("AABC", "d", True), ("AAbC", "a", True), ("AAABC", "d", False), ("AAAb", "a", False)],
)
def test_without_idle_connections_only_health_checks_are_served(existing: str, client: str, accepted: bool) -> None:
    assert place(connections(existing), client, LIMITS) == Placement(accepted=accepted, health_only=True)


def test_the_table() -> None:
    table, disconnected = ConnectionTable(LIMITS), list[int]()
    kept = [table.admit("a", lambda n=number: disconnected.append(n)) for number in range(5)]  # type: ignore[misc]
    assert disconnected == [0, 1, 2]
    assert kept[3] is not None
    table.remove(kept[3])
    table.remove(kept[3])
    assert table.admit("a", lambda: disconnected.append(9)) is not None
    assert disconnected == [0, 1, 2]


def test_a_proxy_may_use_all_connections() -> None:
    table, disconnected = ConnectionTable(LIMITS), list[int]()
    for _ in range(LIMITS.total):
        opened = table.admit("proxy", lambda: disconnected.append(1), trusted=True)
        assert opened is not None
        opened.busy = True
    assert disconnected == []
    last = table.admit("proxy", lambda: None, trusted=True)
    assert last is not None
    assert last.health_only
    last.busy = True
    assert table.admit("b", lambda: None) is None


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_which_client_an_address_is(address: str, client: str) -> None:
    assert client_of(address) == client
