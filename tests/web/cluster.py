"""A daemon that monitors a simulated cluster over the real protocols, and HTTP clients for it."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from monitor.access.passwords import hash_password
from monitor.access.principal import Principal
from monitor.actions.plan import UserAction, UserActionOutcome
from monitor.actions.service import PlanChangedError
from monitor.config.access import AccessConfig
from monitor.config.types import Listen
from monitor.sim.demo import settings
from monitor.sim.manifests import Workload
from monitor.sim.simulation import Simulation
from monitor.web.app import create_app
from monitor.web.authenticator import Authenticator
from monitor.web.security import Security
from monitor.web.server import WebServer
from tests.support import free_port, wait_until
from tests.support.command import command, quiet_environment
from tests.support.local_token import LOCAL_TOKEN
from tests.web.test_app import FakeCluster

PASSWORD = "correct horse battery"
QUICK_COST_BITS = 4  # fast hashes for tests; the real cost is tested separately
TOKENS = {role: f"{role}-0123456789abcdef0123" for role in ("viewer", "user", "admin")}
PASSWORD_HASH = str(hash_password(PASSWORD, QUICK_COST_BITS))
ACCESS: dict[str, Any] = {
    "users": [
        {"name": "root", "role": "admin", "password_hash": PASSWORD_HASH},
        {"name": "zhang.wei", "role": "user", "password_hash": PASSWORD_HASH, "cluster_user": "zhang"},
        {"name": "guest", "role": "viewer", "password_hash": PASSWORD_HASH},
    ],
    "tokens": [{"name": f"a {role}", "role": role, "token": token} for role, token in TOKENS.items()],
}


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """A client that keeps cookies as a browser does. `always` are headers of every request."""

    url: str
    always: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> Answer:
        """Send a request. Header names are written with _ for -."""
        named = self.always | {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            named["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            for cookie in response.headers.get_all("set-cookie") or ():
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value.strip('"')
            text = response.read().decode()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, text)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def form(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        return self.ask("POST", path, urlencode(fields), Content_Type="application/x-www-form-urlencoded", **headers)

    def post(self, path: str, payload: object, **headers: str) -> Answer:
        return self.ask("POST", path, json.dumps(payload), Content_Type="application/json", **headers)

    def csrf(self) -> str:
        """The CSRF token of the session."""
        secret: str = self.get("/v1/me").json["csrf"]
        return secret

    def sign_in(self, name: str, password: str = PASSWORD, **headers: str) -> Answer:
        return self.form("/login", {"name": name, "password": password}, **headers)


@dataclass
class DaemonSite:
    """A running daemon and the simulated cluster."""

    url: str
    story: Simulation
    config: Path
    has_tokens: bool = True

    @property
    def log(self) -> str:
        return (self.config.parent / "daemon.log").read_text()

    def client(self, role: str | None = None, **headers: str) -> Client:
        """A client with the token of a role, or without one."""
        token = {"Authorization": f"Bearer {TOKENS[role]}"} if role is not None else {}
        return Client(self.url, headers | token)

    def submit(self, name: str, user: str, gpus: int, node: str, busy: float = 0.8) -> None:
        """Submit a workload."""
        work = Workload(name, "lab", user, f"vc-{user}", gpus, "harbor.lab/lab/train:1", busy=busy)
        self.story.call(lambda stage: stage.submit("test", work, node))

    def view(self) -> Any:
        """The cluster view of the daemon; empty while it does not respond."""
        try:
            answer = self.client("viewer" if self.has_tokens else None).get("/v1/view")
        except OSError:
            return {"gpus": [], "pods": [], "nodes": []}
        return answer.json

    def gpus_of(self, pod: str) -> list[dict[str, Any]]:
        """The GPUs that a pod holds or held."""
        return [
            gpu for gpu in self.view()["gpus"] if any(holder.get("pod") == pod for holder in gpu.get("holders", ()))
        ]  # fmt: skip


class FakeActions:
    """Records the requested actions and their principals."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, UserAction, str]] = []

    def preview(self, action: UserAction, principal: Principal, _lang: str, /) -> UserActionOutcome:
        self.calls.append(("preview", action, principal.name))
        return UserActionOutcome(action=action.action, dry_run=True, plan="p1", steps=())

    def perform(
        self, action: UserAction, principal: Principal, _lang: str, /, *, expect: str | None = None, peer: str = ""
    ) -> UserActionOutcome:
        self.calls.append(("perform", action, principal.name))
        outcome = UserActionOutcome(action=action.action, dry_run=False, plan="p1", steps=(), ok=True)
        if expect not in (None, "p1"):
            raise PlanChangedError(outcome)
        return outcome


@contextmanager
def site(access: dict[str, Any], now: Callable[[], float] = time.time, **more: Any) -> Iterator[str]:
    """Serve the application with these access settings and LOCAL_TOKEN in this process; yield its URL.

    `audit`, `actions` and all arguments of create_app are accepted.
    """
    settings = AccessConfig.model_validate(access).settings(None, loopback=True)
    authenticator = Authenticator(settings, now, LOCAL_TOKEN)
    security = Security(authenticator, more.pop("audit", None), more.pop("actions", None))
    web = WebServer(create_app(FakeCluster(), security=security, **more), socket.create_server(("127.0.0.1", 0)))
    web.start()
    try:
        yield "http://{}:{}".format(*web.address)
    finally:
        web.begin_stop()
        web.wait_stopped()


@contextmanager
def daemon_on(folder: Path, access: dict[str, Any] | None = None, nodes: int = 2) -> Iterator[DaemonSite]:
    """Run a daemon on a simulated cluster without outages; yield when it sees all GPUs."""
    story = Simulation(nodes, outages=(), changing=False)  # other workloads must not take the GPUs that a test needs
    story.start()
    try:
        listen = Listen(host="127.0.0.1", port=free_port())
        written = settings(story, folder, listen, "en")
        daemon = written["daemon"]
        daemon["cycle"] = daemon["agents"]["interval"] = "300ms"
        daemon["gpu"] |= {"settle": "1s", "idle_after": "3s"}
        if access is not None:
            daemon["access"] = access
        config = folder / "gpuwarden.yml"
        config.write_text(json.dumps(written))  # JSON is YAML
        world = DaemonSite(f"http://{listen}", story, config, access is not None)
        with _daemon(folder, config):
            wait_until(lambda: _seen(world) == nodes * 8, 30, "all GPUs are seen")
            yield world
    finally:
        story.stop()


@contextmanager
def _daemon(folder: Path, config: Path) -> Iterator[None]:
    """Run a daemon that logs to a file."""
    environ = quiet_environment_without_settings(folder)
    with (folder / "daemon.log").open("wb") as log:
        process = subprocess.Popen(command("daemon", "--config", str(config)), env=environ, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()


def quiet_environment_without_settings(folder: Path) -> dict[str, str]:
    """An environment without settings: the daemon is configured by its file only."""
    environ = quiet_environment(folder)
    return {name: value for name, value in environ.items() if not name.startswith("GPUWARDEN_")} | {"LC_ALL": "C.UTF-8"}


def _seen(world: DaemonSite) -> int:
    return sum(gpu["state"] != "unknown" for gpu in world.view()["gpus"])
