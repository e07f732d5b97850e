"""Another user of the daemon's machine, who reaches the loopback port and may read but not act."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from monitor.access.local_token import create_local_token, read_local_token, token_path
from tests.support import need, wait_until
from tests.support.command import run
from tests.support.local_token import AS_LOCAL, local_headers
from tests.web.cluster import Client, DaemonSite, daemon_on, quiet_environment_without_settings, site
from tests.web.test_roles import BODIES

NOBODY_ID = 65534
TARGETS = BODIES | {"deletePods": {"pods": [{"namespace": "lab", "name": "bert-0"}]}}
DISGUISES: dict[str, dict[str, str]] = {
    "plain": {},
    "by name": {"Host": "localhost"},
    "as a form": {"Content_Type": "application/x-www-form-urlencoded"},
    "as a page": {"Origin": "http://127.0.0.1", "HX_Request": "true"},
    "as a proxy": {"X_Forwarded_For": "127.0.0.1", "X_Forwarded_User": "root"},
    "with an empty token": {"Authorization": "Bearer "},
    "with a guess": {"Authorization": "Bearer cli.token", "X_Forwarded_For": "10.9.9.9"},  # locked out after some
}


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonSite]:
    """A daemon with the default access settings, started by the command line in a directory open to all users."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        with daemon_on(Path(directory)) as made:
            made.submit("bert-0", "zhang", 1, "gpu01")
            wait_until(lambda: made.gpus_of("bert-0"), 30, "the job runs")
            yield made


def state_of(daemon: DaemonSite) -> Path:
    return daemon.config.parent / "state"


def owner(daemon: DaemonSite) -> Client:
    """The user who runs the daemon, and can read its state directory."""
    return Client(daemon.url, local_headers(state_of(daemon)))


QUESTIONS = ("mcp",)  # it is sent like a change, and changes nothing


def writes(daemon: DaemonSite) -> list[tuple[str, str, Any]]:
    """Method, path and valid body of every operation in the OpenAPI document that changes something."""
    paths = Client(daemon.url).get("/v1/openapi.json").json["paths"]
    found = [
        (method.upper(), path.replace("{own}", "s1").replace("{trash}", "t1"), TARGETS.get(each["operationId"], {}))
        for path, operations in paths.items()
        for method, each in operations.items()
        if method not in ("get", "head", "options") and each["operationId"] not in QUESTIONS
    ]
    assert len(found) > 10
    return found


def facts(daemon: DaemonSite) -> dict[str, Any]:
    """Everything that the operations could change."""
    asked = {path: owner(daemon).get(path).json for path in ("/v1/silences", "/v1/cleanup/history", "/v1/audit")}
    view = daemon.view()
    cordoned = {node["name"]: node.get("cordoned") for node in view["nodes"]}
    return asked | {"cordoned": cordoned, "pods": sorted(pod["name"] for pod in view["pods"])}


@pytest.mark.parametrize("headers", DISGUISES.values(), ids=DISGUISES)
def test_no_operation_is_open_to_other_users_of_the_machine(daemon: DaemonSite, headers: dict[str, str]) -> None:
    before = facts(daemon)
    statuses = {
        (method, path): Client(daemon.url)
        .ask(method, path, json.dumps(body), **({"Content_Type": "application/json"} | headers))
        .status
        for method, path, body in writes(daemon)
    }
    assert {key: status for key, status in statuses.items() if status not in (401, 403, 429)} == {}
    assert facts(daemon) == before


def test_another_user_reads_the_page_but_gets_neither_token_nor_link(daemon: DaemonSite) -> None:
    need(os.geteuid() == 0, "root, to become another user")
    os.seteuid(NOBODY_ID)
    try:
        with pytest.raises(PermissionError):
            read_local_token(str(state_of(daemon)))
        linked = Client(daemon.url).post("/v1/login-link", {})
        read = Client(daemon.url).get("/v1/view")
    finally:
        os.seteuid(0)
    assert (linked.status, "code" in linked.body, read.status) == (401, False, 200)


@pytest.mark.parametrize("path", ["/", "/nodes", "/v1/view", "/v1/alerts", "/v1/silences", "/metrics", "/healthz"])
def test_reading_needs_no_credentials_on_the_machine(daemon: DaemonSite, path: str) -> None:
    assert Client(daemon.url).get(path).status == 200


def test_only_the_daemon_s_user_can_read_the_token_file(daemon: DaemonSite) -> None:
    state = state_of(daemon)
    file = os.lstat(token_path(str(state)))
    assert stat.filemode(file.st_mode) == "-rw-------"
    assert file.st_uid == os.geteuid()
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert len(read_local_token(str(state))) >= 43  # 256 bits in base64
    assert read_local_token(str(state)) not in daemon.log


def test_a_link_planted_at_the_token_path_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("unharmed")
    state = tmp_path / "state"
    state.mkdir()
    for name in ("cli.token", "cli.token.new"):
        (state / name).symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        read_local_token(str(state))
    token = create_local_token(str(state))
    assert victim.read_text() == "unharmed"
    assert not os.path.islink(token_path(str(state)))
    assert read_local_token(str(state)) == token


def test_no_umask_opens_the_token_file_to_others(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        create_local_token(str(tmp_path / "state"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.lstat(token_path(str(tmp_path / "state"))).st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_a_start_replaces_the_token_and_keeps_no_old_one(tmp_path: Path) -> None:
    first, second = create_local_token(str(tmp_path)), create_local_token(str(tmp_path))
    assert first != second
    assert read_local_token(str(tmp_path)) == second
    assert [path.name for path in tmp_path.iterdir()] == ["cli.token"]


def test_commands_of_the_daemon_s_user_act_with_the_token_file(daemon: DaemonSite) -> None:
    made = command(daemon, "alerts", "silence", "node=gpu01", "--for", "1h", "--author", "li", "--json")
    assert (made.returncode, made.stderr) == (0, "")
    silence = json.loads(made.stdout)
    assert silence["author"] == "li"
    entry = owner(daemon).get("/v1/audit").json[0]
    assert (entry["what"], entry["who"], entry["how"], entry["result"]) == ("silence", "local", "machine", "done")
    assert command(daemon, "alerts", "unsilence", silence["id"]).returncode == 0


def test_the_link_of_the_daemon_s_user_signs_in_once(daemon: DaemonSite) -> None:
    link = command(daemon, "login-link").stdout.strip()
    code = link.partition("#code=")[2]
    browser, thief = Client(daemon.url), Client(daemon.url)
    assert link.startswith(f"{daemon.url}/login#code=")
    assert browser.form("/login", {"code": code}).status == 303
    assert thief.form("/login", {"code": code}).status == 401
    assert browser.get("/v1/me").json["role"] == "admin"
    assert thief.get("/v1/me").json["role"] == "viewer"
    cordon = {"nodes": ["gpu01"], "dry_run": True}
    assert browser.post("/v1/actions/cordon", cordon).status == 403  # a session needs its CSRF token
    assert browser.post("/v1/actions/cordon", cordon, X_CSRF_Token=browser.csrf()).status == 200


def test_of_many_who_use_a_link_at_once_one_is_signed_in() -> None:
    with site({}) as url, ThreadPoolExecutor(8) as pool:
        code = Client(url).post("/v1/login-link", {}, **AS_LOCAL).json["path"].partition("=")[2]
        statuses = pool.map(lambda _: Client(url).form("/login", {"code": code}).status, range(8))
        assert sorted(statuses) == [303] + [401] * 7


def test_wrong_codes_do_not_lock_the_admin_out() -> None:
    with site({}) as url:
        code = Client(url).post("/v1/login-link", {}, **AS_LOCAL).json["path"].partition("=")[2]
        guesses = [Client(url).form("/login", {"code": f"guess-{number}"}).status for number in range(25)]
        assert set(guesses) == {401, 429}
        assert Client(url).post("/v1/login-link", {}, **AS_LOCAL).status == 201
        assert Client(url).form("/login", {"code": code}).status == 303


UNREADABLE = [
    ("no file", lambda path: None, "cannot read the token of the daemon in {} (No such file or directory)"),
    ("a link", lambda path: path.symlink_to("/etc/hostname"), "cannot read the token of the daemon in {} (Too many"),
    ("no token", lambda path: path.write_text("two words"), "cannot use the token of the daemon in {} (not a token)"),
    (
        "of another daemon", lambda path: path.write_text("x" * 43),
        " does not accept the token in {}, which is of another one",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "message"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_a_command_without_the_token_says_which_file_it_needs(
    daemon: DaemonSite, tmp_path: Path, plant: Any, message: str
) -> None:
    path = tmp_path / "cli.token"
    plant(path)
    refused = command(daemon, "login-link", state=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert message.format(path) in refused.stderr
    assert "run this as the daemon's user or with sudo, or configure a token" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_without_the_token_a_command_reads_and_changes_nothing(daemon: DaemonSite, tmp_path: Path) -> None:
    refused = command(daemon, "alerts", "silence", "node=gpu01", "--for", "1h", state=tmp_path)
    assert (refused.returncode, str(tmp_path / "cli.token") in refused.stderr) == (1, True)
    listed = command(daemon, "alerts", "list", "--json", state=tmp_path)
    assert (listed.stderr, json.loads(listed.stdout)["silences"]) == ("", [])


def command(daemon: DaemonSite, *words: str, state: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command with the daemon's configuration, or with another state directory."""
    config = daemon.config
    if state is not None:
        written = json.loads(config.read_text())
        written["daemon"]["state"] = str(state)
        config = state / "gpuwarden.yml"
        config.write_text(json.dumps(written))
    return run(*words, "--config", str(config), environ=quiet_environment_without_settings(config.parent))
