"""Actions on a simulated cluster through the API of a daemon: the preview is what happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import wait_until
from tests.support.command import run
from tests.web.cluster import ACCESS, Client, DaemonSite, daemon_on, quiet_environment_without_settings

RELEASE, DELETE, CORDON = "/v1/actions/release-gpu", "/v1/actions/delete-pods", "/v1/actions/cordon"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonSite]:
    with daemon_on(tmp_path_factory.mktemp("daemon"), ACCESS, nodes=3) as made:
        yield made


@pytest.fixture
def admin(daemon: DaemonSite) -> Client:
    return daemon.client("admin")


@pytest.fixture
def zhang(daemon: DaemonSite) -> Client:
    """A user whose cluster user is zhang."""
    client = Client(daemon.url)
    assert client.sign_in("zhang.wei").status == 303
    client.always["X-CSRF-Token"] = client.csrf()
    return client


def begin(daemon: DaemonSite, name: str, user: str, gpus: int, node: str, busy: float = 0.8) -> None:
    """Submit a workload, and wait until the daemon sees it."""
    daemon.submit(name, user, gpus, node, busy)
    wait_until(lambda: len(daemon.gpus_of(name)) == gpus and pod(daemon, name), 30, f"{name} is seen on its GPUs")


def pod(daemon: DaemonSite, name: str) -> Any:
    return next((each for each in daemon.view()["pods"] if each["name"] == name), None)


def named(*names: str) -> dict[str, Any]:
    return {"pods": [{"namespace": "lab", "name": name} for name in names]}


def state(daemon: DaemonSite, gpu: dict[str, Any]) -> str:
    key = gpu["node"], gpu["index"]
    return next(str(other["state"]) for other in daemon.view()["gpus"] if (other["node"], other["index"]) == key)


def audited(daemon: DaemonSite, action: str) -> list[tuple[str, str, str]]:
    entries = daemon.client("admin").get("/v1/audit").json
    return [(entry["who"], entry["on"], entry["result"]) for entry in entries if entry["what"] == action]


def test_an_admin_releases_a_zombie_and_it_is_free_and_a_viewer_cannot(daemon: DaemonSite, admin: Client) -> None:
    begin(daemon, "dead-0", "li", 2, "gpu01")
    daemon.story.call(lambda stage: stage.cluster.finish(stage.pods["test"][-1], keep_processes=True))

    def all_zombies() -> bool:
        return [gpu["state"] for gpu in daemon.gpus_of("dead-0")] == ["zombie"] * 2

    wait_until(all_zombies, 30, "its GPUs are zombies")
    gpu = daemon.gpus_of("dead-0")[0]
    content = {"node": gpu["node"], "gpu": gpu["index"]}
    for role in ("viewer", "user"):
        assert daemon.client(role).post(RELEASE, content).status == 403
    wait_until(lambda: _kinds(admin, content) == ["kill"], 30, "its container is known to be gone")
    preview = admin.post(RELEASE, content | {"dry_run": True})
    (step,) = preview.json["steps"]
    assert (step["kind"], step["target"], step["owner"]) == ("kill", "lab/dead-0", "li")
    assert step["text"].startswith("Kill process ")
    assert (
        "结束 gpu01 上的进程" in admin.post(f"{RELEASE}?lang=zh", content | {"dry_run": True}).json["steps"][0]["text"]
    )
    assert state(daemon, gpu) == "zombie"  # unchanged
    done = admin.post(RELEASE, content | {"expect": preview.json["plan"]})
    assert (done.status, done.json["ok"], done.json["steps"][0]["outcome"]) == (200, True, "killed")
    wait_until(lambda: state(daemon, gpu) == "free", 30, "the GPU is free")
    assert state(daemon, daemon.gpus_of("dead-0")[0]) == "zombie"  # the other GPU is a separate action
    assert audited(daemon, "release-gpu")[:2] == [
        ("a admin", f"kill lab/dead-0 on {gpu['node']}/{gpu['index']}", "done"),
        ("a admin", f"lab/dead-0 on {gpu['node']}/{gpu['index']}", "begun"),
    ]  # fmt: skip
    again = admin.post(RELEASE, content | {"expect": preview.json["plan"]})
    assert (again.status, "nothing to release" in again.json["error"]) == (400, True)


def _kinds(client: Client, content: dict[str, Any]) -> list[str]:
    return [step["kind"] for step in client.post(RELEASE, content | {"dry_run": True}).json["steps"]]


def test_a_batch_is_stopped(daemon: DaemonSite, admin: Client) -> None:
    names = [f"batch-{number}" for number in range(3)]
    for name in names:
        begin(daemon, name, "li", 1, "gpu02")
    preview = admin.post(DELETE, named(*names, "never-was") | {"dry_run": True})
    assert [step["kind"] for step in preview.json["steps"]] == ["delete"] * 3 + ["gone"]
    assert preview.json["steps"][0]["text"] == (
        "Delete pod lab/batch-0 of li on gpu02: graceful termination, then it is killed. This frees 1 GPU of gpu02."
    )
    assert all(pod(daemon, name) for name in names)
    done = admin.post(DELETE, named(*names, "never-was") | {"expect": preview.json["plan"]})
    assert (done.status, done.json["ok"]) == (200, True)
    assert [step["state"] for step in done.json["steps"]] == ["done"] * 4
    wait_until(lambda: not any(pod(daemon, name) for name in names), 30, "they are gone")
    wait_until(lambda: not any(daemon.gpus_of(name) for name in names), 30, "their GPUs are free")
    assert ("a admin", "delete lab/batch-1", "done") in audited(daemon, "delete-pods")


def test_a_user_stops_what_is_their_own_and_nothing_else(daemon: DaemonSite, zhang: Client) -> None:
    begin(daemon, "mine-0", "zhang", 1, "gpu02")
    begin(daemon, "theirs-0", "li", 1, "gpu02")
    for content in (named("theirs-0"), named("mine-0", "theirs-0"), named("theirs-0") | {"dry_run": True}):
        answer = zhang.post(DELETE, content)
        assert (answer.status, "lab/theirs-0" in answer.json["error"]) == (403, True)
    assert zhang.post(CORDON, {"nodes": ["gpu02"]}).status == 403
    done = zhang.post(DELETE, named("mine-0"))
    assert (done.status, done.json["ok"]) == (200, True)
    wait_until(lambda: not pod(daemon, "mine-0"), 30, "it is gone")
    assert pod(daemon, "theirs-0")
    assert audited(daemon, "delete-pods")[0] == ("zhang.wei", "delete lab/mine-0", "done")
    assert ("zhang.wei", "lab/mine-0 lab/theirs-0", "refused") in audited(daemon, "delete-pods")


def test_a_user_releases_what_is_their_own(daemon: DaemonSite, zhang: Client) -> None:
    begin(daemon, "idle-mine", "zhang", 1, "gpu03", busy=0.0)
    begin(daemon, "idle-theirs", "li", 1, "gpu03", busy=0.0)

    def idle(name: str) -> bool:
        return [gpu["state"] for gpu in daemon.gpus_of(name)] == ["idle-held"]

    wait_until(lambda: idle("idle-mine") and idle("idle-theirs"), 30, "both do nothing")
    mine, theirs = ({"node": "gpu03", "gpu": daemon.gpus_of(name)[0]["uuid"]} for name in ("idle-mine", "idle-theirs"))
    assert zhang.post(RELEASE, theirs).status == 403
    done = zhang.post(RELEASE, mine)
    assert (done.status, done.json["ok"], done.json["steps"][0]["kind"]) == (200, True, "evict")
    wait_until(lambda: not pod(daemon, "idle-mine"), 30, "it is gone")
    assert pod(daemon, "idle-theirs")


def test_nothing_is_done_if_it_is_not_what_was_shown(daemon: DaemonSite, admin: Client) -> None:
    begin(daemon, "twice-0", "li", 1, "gpu02")
    preview = admin.post(DELETE, named("twice-0") | {"dry_run": True}).json
    uid = pod(daemon, "twice-0")["uid"]
    daemon.story.call(lambda stage: stage.cluster.delete_pod("lab", "twice-0", 0))
    wait_until(lambda: not pod(daemon, "twice-0"), 30, "it is gone")
    begin(daemon, "twice-0", "li", 1, "gpu02")
    changed = admin.post(DELETE, named("twice-0") | {"expect": preview["plan"]})
    assert changed.status == 409
    assert changed.json["now"]["plan"] != preview["plan"]
    old = admin.post(DELETE, {"pods": [{"namespace": "lab", "name": "twice-0", "uid": uid}]})
    assert [step["kind"] for step in old.json["steps"]] == ["gone"]
    assert pod(daemon, "twice-0")["uid"] != uid


def test_a_node_is_cordoned_and_let_go(daemon: DaemonSite, admin: Client) -> None:
    def schedulable() -> bool:
        return bool(next(node.get("schedulable", True) for node in daemon.view()["nodes"] if node["name"] == "gpu03"))

    content = {"nodes": ["gpu03", "gpu03"]}
    for role in ("viewer", "user"):
        assert daemon.client(role).post(CORDON, content).status == 403
    preview = admin.post(CORDON, content | {"dry_run": True}).json
    assert [step["text"].partition(":")[0] for step in preview["steps"]] == ["Cordon gpu03"]
    assert schedulable()
    assert admin.post(CORDON, content).json["ok"] is True
    wait_until(lambda: not schedulable(), 30, "it is cordoned")
    again = admin.post(CORDON, content | {"dry_run": True}).json
    assert again["steps"][0]["warnings"] == ["gpu03 is already cordoned."]
    assert admin.post("/v1/actions/uncordon", content).json["ok"] is True
    wait_until(schedulable, 30, "it is uncordoned")
    assert audited(daemon, "cordon")[0] == ("a admin", "cordon gpu03", "done")


WRONG: list[tuple[str, str, Any, str]] = [
    ("a node that is not", CORDON, {"nodes": ["gpu99"]}, "no node 'gpu99'"),
    ("no node", CORDON, {"nodes": []}, "from 1 to 200"),
    ("no pod", DELETE, {"pods": []}, "from 1 to 1000"),
    ("no gpu", RELEASE, {"node": "gpu01", "gpu": 99}, "has no GPU 99"),
    ("no node of it", RELEASE, {"node": "gpu99", "gpu": 0}, "has no GPU 0"),
    ("wrong type", DELETE, {"pods": ["x"]}, "invalid request body"),
    ("no language", f"{CORDON}?lang=fr", {"nodes": ["gpu01"]}, "lang is en or zh"),
]


@pytest.mark.parametrize(("name", "path", "content", "message"), WRONG, ids=[row[0] for row in WRONG])
def test_what_cannot_be_done_is_said(admin: Client, name: str, path: str, content: Any, message: str) -> None:
    answer = admin.post(path, content)
    assert (answer.status, message in answer.json["error"]) == (400, True)


def test_the_command_line_acts_with_the_token_of_an_admin(daemon: DaemonSite) -> None:
    environ = quiet_environment_without_settings(daemon.config.parent)
    ended = run("cleanup", "release", "gpu01", "99", "--config", str(daemon.config), environ=environ)
    assert (ended.returncode, "gpu01 has no GPU 99" in ended.stderr) == (1, True)
    linked = run("login-link", "--config", str(daemon.config), environ=environ)
    code = linked.stdout.strip().partition("#code=")[2]
    browser = Client(daemon.url)
    assert browser.form("/login", {"code": code}).status == 303
    assert browser.get("/v1/me").json["role"] == "admin"
