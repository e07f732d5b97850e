"""Actions over the real server: what is let in, and what is refused, counted and found."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import requests

from monitor.agent.actions.api import ActionApi
from monitor.agent.actions.auth import Gate, UsedIds
from monitor.agent.actions.dispatcher import BusyError, Desk, Handler
from monitor.agent.actions.outcome import Job, Outcome, done
from monitor.agent.journal import Journal
from monitor.agent.server import MAX_BODY, AgentServer
from monitor.detect.rules.actions_refused import RULE
from monitor.facts import NodeSnapshot
from monitor.facts.actions import Action, ActionFact, ActionState, PruneBuildCache, ScanDatasets
from monitor.facts.agents import AgentFact
from tests.agent.actions.requests_made import request
from tests.detect.builders_nodes import only, rule_context
from tests.support import wait_until
from tests.support.snapshots import full_snapshot

TOKEN, READING = "act-t0ken", "read-t0ken"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PER_MINUTE = 20


class Node:
    """An agent's server with actions that only count how often they were done."""

    def __init__(self, folder: Path) -> None:
        self.did: list[Action] = []
        handlers: dict[type[Action], Handler] = {PruneBuildCache: self._do, ScanDatasets: self._scan}
        desk = Desk(handlers, frozenset({ScanDatasets}), Journal(str(folder / "journal")))
        self.api = ActionApi(Gate(TOKEN, PER_MINUTE, UsedIds(str(folder / "used"), time.time())), desk)
        self.server = AgentServer("127.0.0.1", 0, READING, self.snapshot, self.api)
        self.server.start()
        host, port = self.server.address
        self.url = f"http://{host}:{port}/v1/actions"

    def snapshot(self) -> NodeSnapshot:
        return msgspec.structs.replace(full_snapshot(), at=time.time(), actions=self.api.fact())

    def _do(self, action: Action, _job: Job) -> Outcome:
        self.did.append(action)
        return done("removed", freed_bytes=5)

    def _scan(self, action: Action, job: Job) -> Outcome:
        self.did.append(action)
        job.stop.wait(10)
        return done("stopped")

    def post(self, body: bytes | None = None, headers: dict[str, str] | None = None) -> requests.Response:
        body = msgspec.json.encode(request()) if body is None else body
        return requests.post(self.url, body, headers=BEARER if headers is None else headers, timeout=5)

    def metrics(self) -> str:
        page = self.url.replace("/v1/actions", "/metrics")
        return requests.get(page, headers={"Authorization": f"Bearer {READING}"}, timeout=5).text


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.api.stop()
    made.server.stop()


def fact(reply: requests.Response) -> ActionFact:
    return msgspec.json.decode(reply.content, type=ActionFact)


def test_an_action_is_accepted_done_and_told(node: Node) -> None:
    asked = request()
    reply = node.post(msgspec.json.encode(asked))
    assert (reply.status_code, fact(reply).id) == (202, asked.id)

    def told() -> ActionFact:
        return fact(requests.get(f"{node.url}/{asked.id}", headers=BEARER, timeout=5))

    wait_until(lambda: told().state is ActionState.DONE, 5, "it was done")
    assert (told().outcome, told().freed_bytes, node.did) == ("removed", 5, [asked.action])
    assert 'gpuwarden_actions_total{kind="prune-build-cache",outcome="removed"} 1.0' in node.metrics()


def test_a_scan_is_stopped(node: Node) -> None:
    asked = request(ScanDatasets(root="/mnt/a", pattern="*"))
    node.post(msgspec.json.encode(asked))
    for status in (202, 409):
        assert requests.post(f"{node.url}/{asked.id}/stop", headers=BEARER, timeout=5).status_code == status
        wait_until(lambda: not node.api.fact().running, 5, "it ended")


def replayed(node: Node) -> requests.Response:
    body = msgspec.json.encode(request())
    assert node.post(body).status_code == 202
    return node.post(body)


def expired(node: Node) -> requests.Response:
    long_ago = time.time() - 400
    return node.post(msgspec.json.encode(request(issued_at=long_ago, expires_at=long_ago + 300)))


def too_many(node: Node) -> requests.Response:
    for _ in range(PER_MINUTE):
        assert node.post().status_code == 202
    reply = node.post()
    assert 0 < int(reply.headers["Retry-After"]) <= 60
    return reply


Ask = Callable[[Node], requests.Response]


@pytest.mark.parametrize(
    ("reason", "ask", "status", "done"),
    [
        ("token", lambda node: node.post(headers={}), 401, 0),
        ("token", lambda node: node.post(headers={"Authorization": "Bearer wrong"}), 401, 0),
        ("token", lambda node: node.post(headers={"Authorization": f"Bearer {READING}"}), 401, 0),
        ("token", lambda node: requests.get(f"{node.url}/a1", timeout=5), 401, 0),
        ("token", lambda node: requests.post(f"{node.url}/a1/stop", timeout=5), 401, 0),
        ("replayed", replayed, 409, 1),
        ("expired", expired, 410, 0),
        ("too-many", too_many, 429, PER_MINUTE),
    ],
)
def test_it_is_refused_counted_and_found(node: Node, reason: str, ask: Ask, status: int, done: int) -> None:
    reply = ask(node)
    assert reply.status_code == status
    assert TOKEN not in reply.text
    wait_until(lambda: len(node.did) == done, 5, "what was accepted is done")
    snapshot = node.snapshot()
    assert snapshot.actions is not None
    assert snapshot.actions.refused == {reason: 1}
    assert f'gpuwarden_actions_refused_total{{reason="{reason}"}} 1.0' in node.metrics()
    heard = AgentFact(target="n1:9835", node="n1", snapshot=snapshot, received_at=time.time())
    assert only(RULE(rule_context(RULE, agents=[heard], now=time.time()), None)).cause == reason
    assert len(node.did) == done


def test_a_guesser_is_slowed_down_and_the_daemon_is_not(node: Node) -> None:
    for _ in range(PER_MINUTE):
        assert node.post(headers={"Authorization": "Bearer guess"}).status_code == 401
    reply = node.post(headers={"Authorization": "Bearer guess"})
    assert (reply.status_code, node.api.fact().refused) == (429, {"token": PER_MINUTE, "too-many": 1})
    node.api._gate.identify(f"Bearer {TOKEN}", "127.0.0.2")


def bent(**changes: Any) -> bytes:
    plain = msgspec.to_builtins(request())
    action = plain["action"] | changes.pop("action", {})
    return json.dumps(plain | changes | {"action": action}).encode()


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("no JSON", b"oops", "not an action: JSON is malformed"),
        ("nothing", b"", "not an action"),
        ("no object", b"[]", "not an action"),
        ("not UTF-8", b'{"id": "\xff"}', "not an action"),
        ("endless nesting", b"[" * 100000, "not an action"),
        ("no such kind", bent(action={"kind": "format-disk"}), "format-disk"),
        ("a field is missing", b'{"id":"a1"}', "issued_at"),
        ("of another type", bent(issued_at="now"), "issued_at"),
        ("a protection that is not known here", bent(action={"keep_users": ["zhang"]}), "does not know keep_users"),
        ("a condition that is not known here", bent(only_if="idle"), "does not know only_if"),
        ("good for a year", bent(expires_at=time.time() + 3e7), "expires_at: at most 300 s"),
        ("an id that no log line should have", bent(id="a\nb"), "id: 1 to 100"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_told_what_is_wrong(node: Node, name: str, body: bytes, says: str) -> None:
    reply = node.post(body)
    assert (reply.status_code, node.api.fact().refused) == (400, {"malformed": 1})
    assert says in reply.json()["error"]
    assert node.did == []


def test_paths_that_do_not_exist(node: Node) -> None:
    for method, path in (("GET", ""), ("GET", "/a1"), ("POST", "/a1"), ("GET", "/a1/stop"), ("POST", "/a1/b/stop")):
        assert requests.request(method, node.url + path, headers=BEARER, timeout=5).status_code == 404
    assert requests.post(f"{node.url}x", headers=BEARER, timeout=5).status_code == 405


def test_a_body_without_end_is_not_read(node: Node) -> None:
    headers = BEARER | {"Content-Length": str(MAX_BODY + 1)}
    assert node.post(b"", headers).status_code == 413
    chunks = iter([b"{}"])
    assert requests.post(node.url, chunks, headers=BEARER, timeout=5).status_code == 413
    assert node.did == []


def test_an_action_for_which_there_is_no_room_may_come_again_under_its_id(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_desk: Desk, _action: Action) -> None:
        raise BusyError("too many are waiting")

    body = msgspec.json.encode(request())
    with monkeypatch.context() as patched:
        patched.setattr(Desk, "check_room", full)
        reply = node.post(body)
    assert (reply.status_code, reply.headers["Retry-After"]) == (429, "60")
    assert node.post(body).status_code == 202
