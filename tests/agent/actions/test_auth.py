"""Who is let in: the token, once, in time, and not too often."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from monitor.agent.actions.auth import MAX_PEERS, ActionAuthenticator, ActionRefusedError, UsedIds
from monitor.facts.actions import ActionRequest, PruneBuildCache
from tests.support.clock import FakeClock

TOKEN = "s3cret-t0ken"
BEARER = f"Bearer {TOKEN}"


def request(clock: FakeClock, ident: str = "a1", **more: Any) -> ActionRequest:
    given: dict[str, Any] = {"issued_at": clock.time(), "expires_at": clock.time() + 60, "policy": "p", "plan": "1"}
    action = PruneBuildCache(runtime="docker", unused_seconds=0.0)
    return ActionRequest(**(given | {"id": ident, "action": action} | more))


def gate(folder: Path, clock: FakeClock, per_minute: int = 3) -> ActionAuthenticator:
    return ActionAuthenticator(TOKEN, per_minute, UsedIds(str(folder / "used"), clock.time()), clock)


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xe9"],
)
def test_a_wrong_token(tmp_path: Path, authorization: str) -> None:
    with pytest.raises(ActionRefusedError) as refused:
        gate(tmp_path, FakeClock()).identify(authorization, "10.0.0.1")
    assert (refused.value.reason, refused.value.status) == ("token", HTTPStatus.UNAUTHORIZED)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("authorization", [BEARER, f"bearer  {TOKEN} "])
def test_the_right_token(tmp_path: Path, authorization: str) -> None:
    gate(tmp_path, FakeClock()).identify(authorization, "10.0.0.1")


def test_an_address_that_guesses_has_to_wait_and_no_other(tmp_path: Path) -> None:
    clock = FakeClock()
    door = gate(tmp_path, clock)
    for _ in range(3):
        with pytest.raises(ActionRefusedError, match="Bearer"):
            door.identify("Bearer x", "10.0.0.1")
    for authorization in ("Bearer x", BEARER):  # whether it has guessed right by now is not told either
        with pytest.raises(ActionRefusedError, match="too many wrong tokens") as refused:
            door.identify(authorization, "10.0.0.1")
        assert (refused.value.reason, refused.value.retry_after) == ("too-many", 60.0)
    door.identify(BEARER, "10.0.0.2")
    clock.advance(60)
    door.identify(BEARER, "10.0.0.1")


def test_addresses_that_guess_are_not_remembered_without_end(tmp_path: Path) -> None:
    door = gate(tmp_path, FakeClock())
    for number in range(MAX_PEERS + 50):
        with pytest.raises(ActionRefusedError):
            door.identify("Bearer x", str(number))
    assert len(door._wrong) == MAX_PEERS


@pytest.mark.parametrize(
    ("name", "more", "reason"),
    [
        ("good for five minutes", {"expires_at": 300.0}, None),
        ("good for longer", {"expires_at": 301.0}, "malformed"),
        ("ends before it begins", {"expires_at": -1.0}, "malformed"),
        ("expired, as far as clocks agree", {"issued_at": -60.0, "expires_at": -29.0}, None),
        ("expired", {"issued_at": -60.0, "expires_at": -31.0}, "expired"),
        ("from a clock that is a little ahead", {"issued_at": 29.0, "expires_at": 60.0}, None),
        ("from the future", {"issued_at": 31.0, "expires_at": 60.0}, "expired"),
        ("without an id", {"id": ""}, "malformed"),
        ("with a line break in its id", {"id": "a\nb"}, "malformed"),
        ("with an endless id", {"id": "a" * 101}, "malformed"),
    ],
)
def test_when_a_request_is_good(tmp_path: Path, name: str, more: dict[str, Any], reason: str | None) -> None:
    clock = FakeClock()
    times = {key: clock.time() + value for key, value in more.items() if key != "id"}
    asked = request(clock, **(more | times))
    if reason is None:
        gate(tmp_path, clock).admit(asked)
        return
    with pytest.raises(ActionRefusedError) as refused:
        gate(tmp_path, clock).admit(asked)
    assert refused.value.reason == reason


def test_a_request_is_good_once_also_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    asked = request(clock)
    gate(tmp_path, clock).admit(asked)
    for door in (gate(tmp_path, clock), gate(tmp_path, clock)):
        with pytest.raises(ActionRefusedError) as refused:
            door.admit(asked)
        assert (refused.value.reason, refused.value.status) == ("replayed", HTTPStatus.CONFLICT)


def test_an_id_is_remembered_for_as_long_as_its_request_may_come_again(tmp_path: Path) -> None:
    clock = FakeClock()
    gate(tmp_path, clock).admit(request(clock))
    clock.advance(89)
    assert "a1" in UsedIds(str(tmp_path / "used"), clock.time())
    clock.advance(1)
    assert "a1" not in UsedIds(str(tmp_path / "used"), clock.time())
    assert (tmp_path / "used").read_text() == ""


def test_the_file_does_not_grow_without_end(tmp_path: Path) -> None:
    clock = FakeClock()
    door = gate(tmp_path, clock, per_minute=10**6)
    for number in range(500):
        door.admit(request(clock, f"a{number}"))
        clock.advance(1)
    assert len((tmp_path / "used").read_text().splitlines()) < 250


@pytest.mark.parametrize("torn", ["17000", "1700000100.0", "1700000100.0 ", "\x00\x00\x00", "x y"])
def test_a_line_that_was_torn_by_a_power_cut(tmp_path: Path, torn: str) -> None:
    clock = FakeClock()
    gate(tmp_path, clock).admit(request(clock))
    with (tmp_path / "used").open("a") as file:
        file.write(torn)
    assert "a1" in UsedIds(str(tmp_path / "used"), clock.time())


def test_too_many(tmp_path: Path) -> None:
    clock = FakeClock()
    door = gate(tmp_path, clock)
    for number in range(3):
        door.admit(request(clock, f"a{number}"))
        clock.advance(10)
    with pytest.raises(ActionRefusedError, match="more than 3 actions a minute") as refused:
        door.admit(request(clock, "a4"))
    assert (refused.value.reason, refused.value.status) == ("too-many", HTTPStatus.TOO_MANY_REQUESTS)
    assert refused.value.retry_after == 30.0
    clock.advance(30)
    door.admit(request(clock, "a4"))  # that it was refused has not used it up


def test_what_cannot_be_remembered_is_not_let_in(tmp_path: Path) -> None:
    clock = FakeClock()
    door = gate(tmp_path, clock)
    (tmp_path / "used").unlink()
    (tmp_path / "used").mkdir()
    with pytest.raises(OSError, match="used"):
        door.admit(request(clock))
