"""Passwords, lockout, tokens, roles, and the access settings."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from monitor.access import lockout
from monitor.access.lockout import FORGET_SECONDS, NAME_POLICY, PEER_POLICY, Lockout
from monitor.access.passwords import hash_password, parse_hash, verify_password
from monitor.access.principal import Principal, Role
from monitor.config.access import AccessConfig
from monitor.config.file import ConfigError, load
from monitor.config.root import Config
from monitor.daemon.main import print_login_link
from monitor.web.app import create_app
from monitor.web.authenticator import Authenticator
from monitor.web.security import Security
from monitor.web.server import WebServer
from tests.support.command import command, quiet_environment, run
from tests.web.cluster import PASSWORD, QUICK_COST_BITS, TOKENS
from tests.web.test_app import FakeCluster

GOOD = str(hash_password(PASSWORD, QUICK_COST_BITS))


def test_a_password_is_right_or_not() -> None:
    known = parse_hash(GOOD)
    assert verify_password(PASSWORD, known)
    assert not verify_password(PASSWORD + "x", known)
    assert not verify_password("", known)
    assert not verify_password("x" * 10_000, known)
    assert str(hash_password(PASSWORD, QUICK_COST_BITS)) != GOOD  # salted


def test_a_name_that_nobody_has_takes_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    costs: list[int] = []
    scrypt = hashlib.scrypt

    def counting(password: bytes, **parameters: Any) -> bytes:
        costs.append(parameters["n"] * parameters["p"])
        return scrypt(password, **parameters)

    monkeypatch.setattr(hashlib, "scrypt", counting)
    expensive = hash_password(PASSWORD)
    assert not verify_password("wrong", expensive)
    assert not verify_password("wrong", None)
    assert not verify_password("\x00" * 5, None)
    assert len(set(costs)) == 1
    assert len(costs) == 4


def test_a_hash_does_not_show_in_a_repr() -> None:
    assert GOOD.rpartition("$")[2] not in repr(parse_hash(GOOD))


BROKEN = [
    "", "hunter2", "scrypt$", "md5$1$2$3$4$5", GOOD[:-4], GOOD.replace("scrypt$16$", "scrypt$15$"),
    GOOD.replace("scrypt$16$", "scrypt$1073741824$"), GOOD.replace("$8$3$", "$8$0$"), GOOD.replace("$8$3$", "$x$3$"),
    GOOD[: GOOD.rindex("$")] + "$!!!!", GOOD + "$", "scrypt$16$8$3$AA==$" + GOOD.rpartition("$")[2],
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))  # the texts contain a random salt
def test_what_is_no_hash_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="hash-password") as raised:
        parse_hash(text)
    assert not text or text not in str(raised.value)


def test_the_command_that_makes_one() -> None:
    line = command("hash-password", "--stdin")
    made = subprocess.run(line, input=f"{PASSWORD}\n", capture_output=True, text=True, timeout=300, check=True)
    assert verify_password(PASSWORD, parse_hash(made.stdout.strip()))
    short = subprocess.run(line, input="short\n", capture_output=True, text=True, timeout=300, check=False)
    assert (short.returncode, short.stdout) == (2, "")
    assert "at least 8" in short.stderr


# Lockout


def guess(lock: Lockout, times: int, name: str | None, peer: str, now: float) -> list[float]:
    return [lock.begin(name, peer, now) for _ in range(times)]


def test_guesses_at_a_name_have_to_wait_longer_each_time() -> None:
    lock, now = Lockout(), 0.0
    waits = []
    for _ in range(12):
        assert lock.begin("root", "10.0.0.1", now) == 0
        waits.append(lock.delay("root", "10.0.0.1", now))
        now += waits[-1]
    assert waits[: NAME_POLICY.free_attempts - 1] == [0.0] * (NAME_POLICY.free_attempts - 1)
    assert waits[NAME_POLICY.free_attempts - 1 :] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


def test_many_at_once_are_not_one() -> None:
    lock = Lockout()
    waits = guess(lock, 50, "root", "10.0.0.1", 100.0)
    assert waits.count(0.0) == NAME_POLICY.free_attempts


def test_a_name_is_guarded_from_everywhere_and_a_guesser_with_every_name() -> None:
    lock = Lockout()
    for number in range(NAME_POLICY.free_attempts):
        assert lock.begin("root", f"10.0.0.{number}", 0.0) == 0
    assert lock.begin("root", "10.9.9.9", 0.0) > 0
    assert lock.begin("li", "10.9.9.9", 0.0) == 0
    other = Lockout()
    delays = [other.begin(f"name{number}", "10.0.0.1", 0.0) for number in range(PEER_POLICY.free_attempts + 5)]
    assert delays.count(0.0) == PEER_POLICY.free_attempts
    assert other.begin("other", "10.0.0.2", 0.0) == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
    ],
)
def test_who_counts_as_the_same_guesser(one: str, other: str, same: bool) -> None:
    lock = Lockout()
    guess(lock, PEER_POLICY.free_attempts, None, one, 0.0)
    assert (lock.begin(None, other, 0.0) > 0) is same


def test_who_was_right_is_not_kept_waiting_and_does_not_excuse_other_guesses() -> None:
    lock = Lockout()
    guess(lock, NAME_POLICY.free_attempts - 1, "root", "10.0.0.1", 0.0)
    for _ in range(100):  # signing in to one account does not reset the attempts at others
        assert lock.begin("root", "10.0.0.1", 0.0) == 0
        lock.succeeded("root", "10.0.0.1")
    delays = [lock.begin(f"n{number}", "10.0.0.1", 0.0) for number in range(PEER_POLICY.free_attempts)]
    assert delays.count(0.0) == PEER_POLICY.free_attempts - (NAME_POLICY.free_attempts - 1)


def test_after_a_while_all_is_forgotten_and_memory_is_bounded() -> None:
    lock = Lockout(max_keys=100)
    guess(lock, 20, "root", "10.0.0.1", 0.0)
    assert lock.begin("root", "10.0.0.2", FORGET_SECONDS + 100) == 0
    for number in range(1000):
        lock.begin(f"n{number}", f"10.0.{number // 250}.{number % 250}", 5000.0)
    assert len(lock._attempts) == 100
    assert lockout.MAX_KEYS >= 1000


# Principals


@pytest.mark.parametrize(
    ("role", "cluster_user", "owner", "expect"),
    [
        (Role.ADMIN, None, "zhang", True),
        (Role.ADMIN, None, None, True),
        (Role.USER, "zhang", "zhang", True),
        (Role.USER, "zhang", "li", False),
        (Role.USER, "zhang", None, False),
        (Role.USER, None, None, False),
        (Role.VIEWER, "zhang", "zhang", False),
        (Role.NONE, "zhang", "zhang", False),
    ],
)
def test_who_may_act_on_whose(role: Role, cluster_user: str | None, owner: str | None, expect: bool) -> None:
    assert Principal("x", role, cluster_user).may_act_on(owner) is expect


def test_each_role_may_what_those_below_it_may() -> None:
    may = [[one.includes(other) for other in Role] for one in Role]
    assert may == [[column <= row for column in range(4)] for row in range(4)]


# Settings


def user(**more: Any) -> dict[str, Any]:
    return {"name": "zhang", "role": "user", "password_hash": GOOD} | more


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"users": [user(password_hash="hunter2-secret")]}, "create one with gpuwarden hash-password"),
    ({"users": [user(), user()]}, "'zhang' is there twice"),
    ({"users": [user(role="root")]}, "is not one of"),
    ({"users": [user(name=" zhang")]}, "is no name"),
    ({"users": [{"name": "zhang"}]}, "is required"),
    ({"users": [user(password="x")]}, "unknown key"),
    ({"tokens": [{"name": "a", "role": "admin"}]}, "at least 20 characters"),
    ({"tokens": [{"name": "a", "role": "admin", "token": "short-secret"}]}, "at least 20 characters"),
    ({"tokens": [{"name": "a", "token": TOKENS["admin"], "token_file": "/x"}]}, "not both"),
    ({"trusted_header": {"name": "X-Forwarded-User"}}, "is required"),
    ({"trusted_header": {"name": "X-Forwarded-User", "from": []}}, "proves nothing"),
    ({"trusted_header": {"name": "X-Forwarded-User", "from": ["10.0.0.1/8"]}}, "host bits set"),
    ({"trusted_header": {"name": "X Forwarded", "from": ["10.0.0.1"]}}, "no name of a header"),
    ({"anonymous": "admin"}, "is not one of"),
    ({"session_idle": "0s"}, "too short"),
]


@pytest.mark.parametrize(("access", "message"), WRONG, ids=[row[1] for row in WRONG])
def test_what_is_wrong_with_the_settings_is_said_without_secrets(tmp_path: Path, access: Any, message: str) -> None:
    file = tmp_path / "gpuwarden.yml"
    file.write_text(json.dumps({"daemon": {"access": access}}))
    with pytest.raises(ConfigError) as raised:
        load(str(file), {})
    assert message in str(raised.value)
    for secret in ("hunter2-secret", "short-secret", GOOD, TOKENS["admin"]):
        assert secret not in str(raised.value)


def test_no_secret_is_in_a_repr() -> None:
    access = AccessConfig.model_validate(
        {"users": [user()], "tokens": [{"name": "a", "role": "admin", "token": TOKENS["admin"]}]}
    )
    for settings in (access, access.settings("daemon-token-secret", loopback=True)):
        for secret in (GOOD, GOOD.rpartition("$")[2], TOKENS["admin"], "daemon-token-secret"):
            assert secret not in repr(settings)


REACH: list[tuple[str, dict[str, Any], str | None, bool, tuple[str, bool] | None]] = [
    ("nothing, here", {}, None, True, ("viewer", True)),
    ("nothing, elsewhere", {}, None, False, None),
    ("a token, elsewhere", {}, "t", False, ("none", True)),
    ("users, elsewhere", {"users": [user()]}, None, False, ("none", True)),
    ("users, here", {"users": [user()]}, None, True, ("viewer", True)),
    ("anyone may read", {"anonymous": "viewer"}, None, False, ("viewer", False)),
    ("no one may read, here", {"anonymous": "none", "users": [user()]}, None, True, ("none", False)),
    ("a proxy authenticates", {"trusted_header": {"name": "X-User", "from": "10.0.0.5"}}, None, False, ("none", True)),
]


@pytest.mark.parametrize(("name", "access", "token", "loopback", "expect"), REACH, ids=[row[0] for row in REACH])
def test_who_may_look_without_a_name(
    name: str, access: dict[str, Any], token: str | None, loopback: bool, expect: tuple[str, bool] | None
) -> None:
    config = AccessConfig.model_validate(access)
    if expect is None:
        with pytest.raises(ValueError, match="name users or tokens"):
            config.settings(token, loopback=loopback)
        return
    settings = config.settings(token, loopback=loopback)
    assert (settings.anonymous.value, settings.local_only) == expect


def test_a_user_without_a_mapping_is_who_they_are_called() -> None:
    accounts = AccessConfig.model_validate({"users": [user(), user(name="wei", cluster_user="li")]}).settings(
        None, loopback=True
    )
    assert [account.cluster_user for account in accounts.accounts] == ["zhang", "li"]


@pytest.mark.parametrize("process", ["daemon", "up"])
def test_others_reach_it_and_nobody_is_named_so_it_does_not_start(tmp_path: Path, process: str) -> None:
    ended = run(process, environ=quiet_environment(tmp_path, DAEMON__LISTEN="0.0.0.0:0"))
    assert ended.returncode == 1
    assert "daemon.access: others can reach the page" in ended.stderr
    assert "hash-password" in ended.stderr


def test_the_command_line_has_the_token_of_an_admin() -> None:
    tokens = [{"name": role, "role": role, "token": token} for role, token in TOKENS.items()]
    config = Config.model_validate({"daemon": {"access": {"tokens": tokens}}})
    assert config.daemon.access.admin_token() == TOKENS["admin"]
    with pytest.raises(ValidationError):
        Config.model_validate({"daemon": {"access": {"tokens": [tokens[0], tokens[0]]}}})


@pytest.mark.parametrize(("access", "offered"), [({}, True), ({"users": [user()]}, False)])
def test_a_link_to_act_is_offered_where_nobody_can_sign_in(access: dict[str, Any], offered: bool) -> None:
    security = Security(Authenticator(AccessConfig.model_validate(access).settings(None, loopback=True)))
    out = io.StringIO()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print_login_link(security, WebServer(create_app(FakeCluster(), security=security), listening), out)
        address = "http://{}:{}".format(*listening.getsockname())
    assert (f"{address}/login#code=" in out.getvalue()) is offered
    assert bool(out.getvalue()) is offered
