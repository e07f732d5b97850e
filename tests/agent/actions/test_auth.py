"""Admission of action requests: signature, single use, validity and rate limit."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from monitor.agent.actions.auth import MAX_PEERS, ActionAuthenticator, ActionRefusedError, UsedIds
from monitor.facts.actions import ActionRequest, PruneBuildCache
from tests.agent.actions.requests_sent import NODE, SIGNER, verifier
from tests.support.clock import FakeClock

PEER, BODY = "10.0.0.1", b"{}"


def request(clock: FakeClock, request_id: str = "a1", **more: Any) -> ActionRequest:
    fields: dict[str, Any] = {"issued_at": clock.time(), "expires_at": clock.time() + 60, "policy": "p", "plan": "1"}
    action = PruneBuildCache(runtime="docker", unused_seconds=0.0)
    return ActionRequest(**(fields | {"id": request_id, "action": action} | more))


def authenticator(folder: Path, clock: FakeClock, per_minute: int = 3) -> ActionAuthenticator:
    return ActionAuthenticator(verifier(), per_minute, UsedIds(str(folder / "used"), clock.time()), clock)


def header(clock: FakeClock, body: bytes = BODY, node: str = NODE, off: float = 0.0) -> str:
    return SIGNER.sign(node, "POST", "/v1/actions", body, clock.time() + off)


def ask(auth: ActionAuthenticator, authorization: str, peer: str = PEER) -> None:
    auth.authenticate("POST", "/v1/actions", authorization, peer, BODY)


SIGNATURE = SIGNER.sign(NODE, "POST", "/v1/actions", BODY, FakeClock().time())


@pytest.mark.parametrize(
    ("name", "authorization", "reason", "status"),
    [
        ("nothing", "", "signature", 401),
        ("a token", "Bearer s3cret-t0ken", "token", 401),
        ("half a signature", SIGNATURE[:-9], "signature", 401),
        ("not base64", SIGNATURE[:-9] + "*" * 9, "signature", 401),
        ("a missing field", SIGNATURE.replace(f"node={NODE}, ", ""), "signature", 401),
        ("fields in another order", SIGNATURE.replace(f"node={NODE}, ", "") + f", node={NODE}", "signature", 401),
        ("a time that is no number", SIGNATURE.replace("at=", "at=-"), "signature", 401),
        ("another time", SIGNATURE.replace("at=1700000000", "at=1700000001"), "signature", 401),
        ("an unknown key", SIGNATURE.replace(SIGNER.key_id, "0" * 16), "signature", 401),
        ("too long", SIGNATURE + " " * 3000, "signature", 401),
        ("another body", header(FakeClock(), b"{ }"), "signature", 401),
        ("another node", header(FakeClock(), node="gpu-02"), "node", 421),
        ("from the past", header(FakeClock(), off=-331.0), "expired", 410),
        ("from the future", header(FakeClock(), off=32.0), "expired", 410),
    ],
)
def test_what_is_not_signed_for_this_node_now(
    tmp_path: Path, name: str, authorization: str, reason: str, status: int
) -> None:
    with pytest.raises(ActionRefusedError) as refused:
        ask(authenticator(tmp_path, FakeClock()), authorization)
    assert (refused.value.reason, refused.value.status) == (reason, status)


@pytest.mark.parametrize(
    "authorization", [SIGNATURE, SIGNATURE.replace("GPUwarden", "gpuwarden"), header(FakeClock(), off=-300.0)]
)
def test_what_the_daemon_signed(tmp_path: Path, authorization: str) -> None:
    ask(authenticator(tmp_path, FakeClock()), authorization)


def test_an_address_that_guesses_has_to_wait_and_no_other(tmp_path: Path) -> None:
    clock = FakeClock()
    auth = authenticator(tmp_path, clock)
    wrong = header(clock, b"another")
    for _ in range(3):
        with pytest.raises(ActionRefusedError, match="does not match"):
            ask(auth, wrong)
    for authorization in (wrong, header(clock)):  # a valid signature is not revealed either
        with pytest.raises(ActionRefusedError, match="without a valid signature") as refused:
            ask(auth, authorization)
        assert (refused.value.reason, refused.value.retry_after) == ("too-many", 60.0)
    ask(auth, header(clock), "10.0.0.2")
    clock.advance(60)
    ask(auth, header(clock))


def test_addresses_that_guess_are_not_remembered_without_end(tmp_path: Path) -> None:
    auth = authenticator(tmp_path, FakeClock())
    for number in range(MAX_PEERS + 50):
        with pytest.raises(ActionRefusedError):
            ask(auth, "Bearer x", str(number))
    assert len(auth._wrong) == MAX_PEERS


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
