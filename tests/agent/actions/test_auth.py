"""Admission of action requests: token, single use, validity and rate limit."""

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


def request(clock: FakeClock, request_id: str = "a1", **more: Any) -> ActionRequest:
    fields: dict[str, Any] = {"issued_at": clock.time(), "expires_at": clock.time() + 60, "policy": "p", "plan": "1"}
    action = PruneBuildCache(runtime="docker", unused_seconds=0.0)
    return ActionRequest(**(fields | {"id": request_id, "action": action} | more))


def authenticator(folder: Path, clock: FakeClock, per_minute: int = 3) -> ActionAuthenticator:
    return ActionAuthenticator(TOKEN, per_minute, UsedIds(str(folder / "used"), clock.time()), clock)


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xe9"],
)
def test_a_wrong_token(tmp_path: Path, authorization: str) -> None:
    with pytest.raises(ActionRefusedError) as refused:
        authenticator(tmp_path, FakeClock()).authenticate(authorization, "10.0.0.1")
    assert (refused.value.reason, refused.value.status) == ("token", HTTPStatus.UNAUTHORIZED)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("authorization", [BEARER, f"bearer  {TOKEN} "])
def test_the_right_token(tmp_path: Path, authorization: str) -> None:
    authenticator(tmp_path, FakeClock()).authenticate(authorization, "10.0.0.1")


def test_an_address_that_guesses_has_to_wait_and_no_other(tmp_path: Path) -> None:
    clock = FakeClock()
    auth = authenticator(tmp_path, clock)
    for _ in range(3):
        with pytest.raises(ActionRefusedError, match="Bearer"):
            auth.authenticate("Bearer x", "10.0.0.1")
    for authorization in ("Bearer x", BEARER):  # a correct guess is not revealed either
        with pytest.raises(ActionRefusedError, match="too many wrong tokens") as refused:
            auth.authenticate(authorization, "10.0.0.1")
        assert (refused.value.reason, refused.value.retry_after) == ("too-many", 60.0)
    auth.authenticate(BEARER, "10.0.0.2")
    clock.advance(60)
    auth.authenticate(BEARER, "10.0.0.1")


def test_addresses_that_guess_are_not_remembered_without_end(tmp_path: Path) -> None:
    auth = authenticator(tmp_path, FakeClock())
    for number in range(MAX_PEERS + 50):
        with pytest.raises(ActionRefusedError):
            auth.authenticate("Bearer x", str(number))
    assert len(auth._wrong_tokens) == MAX_PEERS


@pytest.mark.parametrize(
    ("name", "more", "reason"),
    [
        ("valid for five minutes", {"expires_at": 300.0}, None),
        ("valid for longer", {"expires_at": 301.0}, "malformed"),
        ("expires before it is issued", {"expires_at": -1.0}, "malformed"),
        ("expired within the clock skew", {"issued_at": -60.0, "expires_at": -29.0}, None),
        ("expired", {"issued_at": -60.0, "expires_at": -31.0}, "expired"),
        ("issued in the future within the clock skew", {"issued_at": 29.0, "expires_at": 60.0}, None),
        ("issued in the future", {"issued_at": 31.0, "expires_at": 60.0}, "expired"),
        ("without an id", {"id": ""}, "malformed"),
        ("with a line break in its id", {"id": "a\nb"}, "malformed"),
        ("with an id that is too long", {"id": "a" * 101}, "malformed"),
    ],
)
def test_when_a_request_is_good(tmp_path: Path, name: str, more: dict[str, Any], reason: str | None) -> None:
    clock = FakeClock()
    times = {key: clock.time() + value for key, value in more.items() if key != "id"}
    sent = request(clock, **(more | times))
    if reason is None:
        authenticator(tmp_path, clock).admit(sent)
        return
    with pytest.raises(ActionRefusedError) as refused:
        authenticator(tmp_path, clock).admit(sent)
    assert refused.value.reason == reason


def test_a_request_is_good_once_also_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    sent = request(clock)
    authenticator(tmp_path, clock).admit(sent)
    for auth in (authenticator(tmp_path, clock), authenticator(tmp_path, clock)):
        with pytest.raises(ActionRefusedError) as refused:
            auth.admit(sent)
        assert (refused.value.reason, refused.value.status) == ("replayed", HTTPStatus.CONFLICT)


def test_an_id_is_remembered_for_as_long_as_its_request_may_come_again(tmp_path: Path) -> None:
    clock = FakeClock()
    authenticator(tmp_path, clock).admit(request(clock))
    clock.advance(89)
    assert "a1" in UsedIds(str(tmp_path / "used"), clock.time())
    clock.advance(1)
    assert "a1" not in UsedIds(str(tmp_path / "used"), clock.time())
    assert (tmp_path / "used").read_text() == ""


def test_the_file_does_not_grow_without_end(tmp_path: Path) -> None:
    clock = FakeClock()
    auth = authenticator(tmp_path, clock, per_minute=10**6)
    for number in range(500):
        auth.admit(request(clock, f"a{number}"))
        clock.advance(1)
    assert len((tmp_path / "used").read_text().splitlines()) < 250


@pytest.mark.parametrize("torn", ["17000", "1700000100.0", "1700000100.0 ", "\x00\x00\x00", "x y"])
def test_a_line_that_was_torn_by_a_power_cut(tmp_path: Path, torn: str) -> None:
    clock = FakeClock()
    authenticator(tmp_path, clock).admit(request(clock))
    with (tmp_path / "used").open("a") as file:
        file.write(torn)
    assert "a1" in UsedIds(str(tmp_path / "used"), clock.time())


def test_too_many(tmp_path: Path) -> None:
    clock = FakeClock()
    auth = authenticator(tmp_path, clock)
    for number in range(3):
        auth.admit(request(clock, f"a{number}"))
        clock.advance(10)
    with pytest.raises(ActionRefusedError, match="more than 3 actions per minute") as refused:
        auth.admit(request(clock, "a4"))
    assert (refused.value.reason, refused.value.status) == ("too-many", HTTPStatus.TOO_MANY_REQUESTS)
    assert refused.value.retry_after == 30.0
    clock.advance(30)
    auth.admit(request(clock, "a4"))  # the refusal did not consume the id


def test_what_cannot_be_remembered_is_not_let_in(tmp_path: Path) -> None:
    clock = FakeClock()
    auth = authenticator(tmp_path, clock)
    (tmp_path / "used").unlink()
    (tmp_path / "used").mkdir()
    with pytest.raises(OSError, match="used"):
        auth.admit(request(clock))
