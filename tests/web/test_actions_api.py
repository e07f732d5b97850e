"""People act on a simulated cluster by the API of a real daemon: what they are shown is what happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import wait_until
from tests.support.command import run
from tests.web.cluster import ACCESS, Client, World, daemon_on, quiet_environment_without_settings

RELEASE, DELETE, CORDON = "/v1/actions/release-gpu", "/v1/actions/delete-pods", "/v1/actions/cordon"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with daemon_on(tmp_path_factory.mktemp("world"), ACCESS, nodes=3) as made:
        yield made


@pytest.fixture
def admin(world: World) -> Client:
    return world.client("admin")


@pytest.fixture
def zhang(world: World) -> Client:
    """A user of the page whose pods call them zhang."""
    client = Client(world.url)
    assert client.sign_in("zhang.wei").status == 303
    client.always["X-CSRF-Token"] = client.csrf()
    return client


def begin(world: World, name: str, user: str, gpus: int, node: str, busy: float = 0.8) -> None:
    """Have work begin, and wait until the daemon sees it."""
    world.submit(name, user, gpus, node, busy)
    wait_until(lambda: len(world.cards(name)) == gpus and pod(world, name), 15, f"{name} is seen on its cards")


def pod(world: World, name: str) -> Any:
    return next((each for each in world.view()["pods"] if each["name"] == name), None)


def named(*names: str) -> dict[str, Any]:
    return {"pods": [{"namespace": "lab", "name": name} for name in names]}


def state(world: World, card: dict[str, Any]) -> str:
    found = next(
        gpu for gpu in world.view()["gpus"] if (gpu["node"], gpu["index"]) == (card["node"], card["index"])
    )  # fmt: skip
    return str(found["state"])


def deeds(world: World, what: str) -> list[tuple[str, str, str]]:
    found = world.client("admin").get("/v1/audit").json
    return [(deed["who"], deed["on"], deed["result"]) for deed in found if deed["what"] == what]


def test_an_admin_releases_a_zombie_and_it_is_free_and_a_viewer_cannot(world: World, admin: Client) -> None:
    begin(world, "dead-0", "li", 2, "gpu01")
    world.story.call(lambda stage: stage.cluster.finish(stage.pods["test"][-1], keep_processes=True))

    def all_zombies() -> bool:
        return [card["state"] for card in world.cards("dead-0")] == ["zombie"] * 2

    wait_until(all_zombies, 15, "its cards are zombies")
    card = world.cards("dead-0")[0]
    wish = {"node": card["node"], "gpu": card["index"]}
    for role in ("viewer", "user"):
        assert world.client(role).post(RELEASE, wish).status == 403
    wait_until(lambda: _kinds(admin, wish) == ["kill"], 15, "its container is known to be gone")
    shown = admin.post(RELEASE, wish | {"dry_run": True})
    (step,) = shown.json["steps"]
    assert (step["kind"], step["target"], step["owner"]) == ("kill", "lab/dead-0", "li")
    assert step["text"].startswith("End process ")
    assert "结束 gpu01 上的进程" in admin.post(f"{RELEASE}?lang=zh", wish | {"dry_run": True}).json["steps"][0]["text"]
    assert state(world, card) == "zombie"  # nothing was done
    done = admin.post(RELEASE, wish | {"expect": shown.json["plan"]})
    assert (done.status, done.json["ok"], done.json["steps"][0]["outcome"]) == (200, True, "killed")
    wait_until(lambda: state(world, card) == "free", 15, "the card is free")
    assert state(world, world.cards("dead-0")[0]) == "zombie"  # the other one is another step
    assert deeds(world, "release-gpu")[:2] == [
        ("a admin", "kill lab/dead-0", "done"), ("a admin", "lab/dead-0", "begun"),
    ]  # fmt: skip
    again = admin.post(RELEASE, wish | {"expect": shown.json["plan"]})
    assert (again.status, "nothing to release" in again.json["error"]) == (400, True)


def _kinds(client: Client, wish: dict[str, Any]) -> list[str]:
    return [step["kind"] for step in client.post(RELEASE, wish | {"dry_run": True}).json["steps"]]


def test_a_batch_is_stopped(world: World, admin: Client) -> None:
    names = [f"batch-{number}" for number in range(3)]
    for name in names:
        begin(world, name, "li", 1, "gpu02")
    shown = admin.post(DELETE, named(*names, "never-was") | {"dry_run": True})
    assert [step["kind"] for step in shown.json["steps"]] == ["delete"] * 3 + ["gone"]
    assert shown.json["steps"][0]["text"] == (
        "Delete pod lab/batch-0 of li on gpu02: graceful termination, then it is killed. This frees 1 GPU of gpu02."
    )
    assert all(pod(world, name) for name in names)
    done = admin.post(DELETE, named(*names, "never-was") | {"expect": shown.json["plan"]})
    assert (done.status, done.json["ok"]) == (200, True)
    assert [step["state"] for step in done.json["steps"]] == ["done"] * 4
    wait_until(lambda: not any(pod(world, name) for name in names), 15, "they are gone")
    wait_until(lambda: not any(world.cards(name) for name in names), 15, "their cards are free")
    assert ("a admin", "delete lab/batch-1", "done") in deeds(world, "delete-pods")


def test_a_user_stops_what_is_their_own_and_nothing_else(world: World, zhang: Client) -> None:
    begin(world, "mine-0", "zhang", 1, "gpu02")
    begin(world, "theirs-0", "li", 1, "gpu02")
    for wish in (named("theirs-0"), named("mine-0", "theirs-0"), named("theirs-0") | {"dry_run": True}):
        answer = zhang.post(DELETE, wish)
        assert (answer.status, "lab/theirs-0" in answer.json["error"]) == (403, True)
    assert zhang.post(CORDON, {"nodes": ["gpu02"]}).status == 403
    done = zhang.post(DELETE, named("mine-0"))
    assert (done.status, done.json["ok"]) == (200, True)
    wait_until(lambda: not pod(world, "mine-0"), 15, "it is gone")
    assert pod(world, "theirs-0")
    assert deeds(world, "delete-pods")[0] == ("zhang.wei", "delete lab/mine-0", "done")
    assert ("zhang.wei", "lab/mine-0 lab/theirs-0", "refused") in deeds(world, "delete-pods")


def test_a_user_releases_what_is_their_own(world: World, zhang: Client) -> None:
    begin(world, "idle-mine", "zhang", 1, "gpu03", busy=0.0)
    begin(world, "idle-theirs", "li", 1, "gpu03", busy=0.0)

    def idle(name: str) -> bool:
        return [card["state"] for card in world.cards(name)] == ["idle-held"]

    wait_until(lambda: idle("idle-mine") and idle("idle-theirs"), 20, "both do nothing")
    mine, theirs = ({"node": "gpu03", "gpu": world.cards(name)[0]["uuid"]} for name in ("idle-mine", "idle-theirs"))
    assert zhang.post(RELEASE, theirs).status == 403
    done = zhang.post(RELEASE, mine)
    assert (done.status, done.json["ok"], done.json["steps"][0]["kind"]) == (200, True, "evict")
    wait_until(lambda: not pod(world, "idle-mine"), 15, "it is gone")
    assert pod(world, "idle-theirs")


def test_nothing_is_done_if_it_is_not_what_was_shown(world: World, admin: Client) -> None:
    begin(world, "twice-0", "li", 1, "gpu02")
    shown = admin.post(DELETE, named("twice-0") | {"dry_run": True}).json
    uid = pod(world, "twice-0")["uid"]
    world.story.call(lambda stage: stage.cluster.delete_pod("lab", "twice-0", 0))
    wait_until(lambda: not pod(world, "twice-0"), 15, "it is gone")
    begin(world, "twice-0", "li", 1, "gpu02")
    changed = admin.post(DELETE, named("twice-0") | {"expect": shown["plan"]})
    assert changed.status == 409
    assert changed.json["now"]["plan"] != shown["plan"]
    old = admin.post(DELETE, {"pods": [{"namespace": "lab", "name": "twice-0", "uid": uid}]})
    assert [step["kind"] for step in old.json["steps"]] == ["gone"]
    assert pod(world, "twice-0")["uid"] != uid


def test_a_node_is_cordoned_and_let_go(world: World, admin: Client) -> None:
    def schedulable() -> bool:
        return bool(next(node.get("schedulable", True) for node in world.view()["nodes"] if node["name"] == "gpu03"))

    wish = {"nodes": ["gpu03", "gpu03"]}
    for role in ("viewer", "user"):
        assert world.client(role).post(CORDON, wish).status == 403
    shown = admin.post(CORDON, wish | {"dry_run": True}).json
    assert [step["text"].partition(":")[0] for step in shown["steps"]] == ["Cordon gpu03"]
    assert schedulable()
    assert admin.post(CORDON, wish).json["ok"] is True
    wait_until(lambda: not schedulable(), 15, "it is cordoned")
    again = admin.post(CORDON, wish | {"dry_run": True}).json
    assert again["steps"][0]["warnings"] == ["gpu03 is already cordoned."]
    assert admin.post("/v1/actions/uncordon", wish).json["ok"] is True
    wait_until(schedulable, 15, "it is not any more")
    assert deeds(world, "cordon")[0] == ("a admin", "cordon gpu03", "done")


WRONG: list[tuple[str, str, Any, str]] = [
    ("a node that is not", CORDON, {"nodes": ["gpu99"]}, "no node 'gpu99'"),
    ("no node", CORDON, {"nodes": []}, "from 1 to 200"),
    ("no pod", DELETE, {"pods": []}, "from 1 to 1000"),
    ("no card", RELEASE, {"node": "gpu01", "gpu": 99}, "has no GPU 99"),
    ("no node of it", RELEASE, {"node": "gpu99", "gpu": 0}, "has no GPU 0"),
    ("not what belongs here", DELETE, {"pods": ["x"]}, "not what belongs here"),
    ("no language", f"{CORDON}?lang=fr", {"nodes": ["gpu01"]}, "lang is en or zh"),
]


@pytest.mark.parametrize(("name", "path", "wish", "said"), WRONG, ids=[row[0] for row in WRONG])
def test_what_cannot_be_done_is_said(admin: Client, name: str, path: str, wish: Any, said: str) -> None:
    answer = admin.post(path, wish)
    assert (answer.status, said in answer.json["error"]) == (400, True)


def test_the_command_line_acts_with_the_token_of_an_admin(world: World) -> None:
    environ = quiet_environment_without_settings(world.config.parent)
    ended = run("cleanup", "release", "gpu01", "99", "--config", str(world.config), environ=environ)
    assert (ended.returncode, "gpu01 has no GPU 99" in ended.stderr) == (1, True)
    linked = run("login-link", "--config", str(world.config), environ=environ)
    code = linked.stdout.strip().partition("#code=")[2]
    browser = Client(world.url)
    assert browser.form("/login", {"code": code}).status == 303
    assert browser.get("/v1/me").json["role"] == "admin"
