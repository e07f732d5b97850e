"""Actions over the real server: requests that are accepted, and requests that are refused, counted and reported."""

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
from monitor.agent.actions.auth import ActionAuthenticator, UsedIds
from monitor.agent.actions.dispatcher import ActionDispatcher, ActionHandler, ActionQueueFullError
from monitor.agent.actions.outcome import ActionContext, ActionOutcome, done
from monitor.agent.http_io import MAX_BODY_BYTES
from monitor.agent.journal import ActionJournal
from monitor.agent.server import AgentServer
from monitor.detect.rules.actions_refused import RULE
from monitor.facts import NodeSnapshot
from monitor.facts.actions import Action, ActionFact, ActionState, PruneBuildCache, ScanDatasets
from monitor.facts.agents import AgentFact
from tests.agent.actions.requests_sent import request, signed, verifier
from tests.detect.builders_nodes import only, rule_context
from tests.detect.running import evaluate
from tests.support import wait_until
from tests.support.snapshots import full_snapshot

READ_TOKEN = "read-t0ken"
PER_MINUTE = 20


class Node:
    """The server of an agent whose actions only record that they ran."""

    def __init__(self, folder: Path) -> None:
        self.performed: list[Action] = []
        handlers: dict[type[Action], ActionHandler] = {PruneBuildCache: self._prune, ScanDatasets: self._scan}
        dispatcher = ActionDispatcher(handlers, frozenset({ScanDatasets}), ActionJournal(str(folder / "journal")))
        used_ids = UsedIds(str(folder / "used"), time.time())
        self.api = ActionApi(ActionAuthenticator(verifier(), PER_MINUTE, used_ids), dispatcher)
        self.server = AgentServer("127.0.0.1", 0, READ_TOKEN, self.snapshot, self.api)
        self.server.start()
        host, port = self.server.address
        self.url = f"http://{host}:{port}/v1/actions"

    def snapshot(self) -> NodeSnapshot:
        return msgspec.structs.replace(full_snapshot(), at=time.time(), actions=self.api.fact())

    def _prune(self, action: Action, _context: ActionContext) -> ActionOutcome:
        self.performed.append(action)
        return done("removed", freed_bytes=5)

    def _scan(self, action: Action, context: ActionContext) -> ActionOutcome:
        self.performed.append(action)
        context.stop.wait(120)
        return done("stopped")

    def post(self, body: bytes | None = None, headers: dict[str, str] | None = None) -> requests.Response:
        body = msgspec.json.encode(request()) if body is None else body
        return requests.post(self.url, body, headers=signed(body=body) if headers is None else headers, timeout=60)

    def ask(self, method: str, path: str) -> requests.Response:
        """A signed request without a body to a path below /v1/actions."""
        headers = signed(method, f"/v1/actions{path}")
        return requests.request(method, self.url + path, headers=headers, timeout=60)

    def metrics(self) -> str:
        page = self.url.replace("/v1/actions", "/metrics")
        return requests.get(page, headers={"Authorization": f"Bearer {READ_TOKEN}"}, timeout=60).text


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    node.api.stop()
    node.server.stop()


def fact(reply: requests.Response) -> ActionFact:
    return msgspec.json.decode(reply.content, type=ActionFact)


def test_an_action_is_accepted_done_and_told(node: Node) -> None:
    sent = request()
    reply = node.post(msgspec.json.encode(sent))
    assert (reply.status_code, fact(reply).id) == (202, sent.id)

    def current() -> ActionFact:
        return fact(node.ask("GET", f"/{sent.id}"))

    wait_until(lambda: current().state is ActionState.DONE, 30, "the action is done")
    assert (current().outcome, current().freed_bytes, node.performed) == ("removed", 5, [sent.action])
    assert 'gpuwarden_actions_total{kind="prune-build-cache",outcome="removed"} 1.0' in node.metrics()


def test_a_scan_is_stopped(node: Node) -> None:
    sent = request(ScanDatasets(root="/mnt/a", pattern="*"))
    node.post(msgspec.json.encode(sent))
    for status in (202, 409):
        assert node.ask("POST", f"/{sent.id}/stop").status_code == status
        wait_until(lambda: not node.api.fact().running, 30, "the scan has ended")


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
        ("signature", lambda node: node.post(headers={}), 401, 0),
        ("signature", lambda node: node.post(headers=signed(body=b"another")), 401, 0),
        ("token", lambda node: node.post(headers={"Authorization": f"Bearer {READ_TOKEN}"}), 401, 0),
        ("signature", lambda node: requests.get(f"{node.url}/a1", timeout=60), 401, 0),
        ("signature", lambda node: requests.post(f"{node.url}/a1/stop", timeout=60), 401, 0),
        ("node", lambda node: node.post(headers=signed(node="gpu-02")), 421, 0),
        ("replayed", replayed, 409, 1),
        ("expired", expired, 410, 0),
        ("too-many", too_many, 429, PER_MINUTE),
    ],
)
def test_it_is_refused_counted_and_found(node: Node, reason: str, ask: Ask, status: int, done: int) -> None:
    reply = ask(node)
    assert reply.status_code == status
    wait_until(lambda: len(node.performed) == done, 30, "accepted actions are done")
    snapshot = node.snapshot()
    assert snapshot.actions is not None
    assert snapshot.actions.refused == {reason: 1}
    assert f'gpuwarden_actions_refused_total{{reason="{reason}"}} 1.0' in node.metrics()
    agent = AgentFact(target="n1:9835", node="n1", snapshot=snapshot, received_at=time.time())
    assert only(evaluate(RULE, rule_context(RULE, agents=[agent], now=time.time()))).cause == reason
    assert len(node.performed) == done


def test_a_guesser_is_slowed_down_and_the_daemon_is_not(node: Node) -> None:
    guess = signed(body=b"another")
    for _ in range(PER_MINUTE):
        assert node.post(headers=guess).status_code == 401
    reply = node.post(headers=guess)
    assert (reply.status_code, node.api.fact().refused) == (429, {"signature": PER_MINUTE, "too-many": 1})
    node.api._authenticator.authenticate("GET", "/x", signed("GET", "/x")["Authorization"], "127.0.0.2", b"")


def altered(**changes: Any) -> bytes:
    plain = msgspec.to_builtins(request())
    action = plain["action"] | changes.pop("action", {})
    return json.dumps(plain | changes | {"action": action}).encode()


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("not JSON", b"oops", "not an action: JSON is malformed"),
        ("empty", b"", "not an action"),
        ("not an object", b"[]", "not an action"),
        ("not UTF-8", b'{"id": "\xff"}', "not an action"),
        ("endless nesting", b"[" * 100000, "not an action"),
        ("unknown kind", altered(action={"kind": "format-disk"}), "format-disk"),
        ("a field is missing", b'{"id":"a1"}', "issued_at"),
        ("a field of another type", altered(issued_at="now"), "issued_at"),
        ("an unknown protection", altered(action={"keep_users": ["zhang"]}), "does not know keep_users"),
        ("an unknown condition", altered(only_if="idle"), "does not know only_if"),
        ("valid for a year", altered(expires_at=time.time() + 3e7), "expires_at: at most 300 s"),
        ("a line break in the id", altered(id="a\nb"), "id: 1 to 100"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_told_what_is_wrong(node: Node, name: str, body: bytes, message: str) -> None:
    reply = node.post(body)
    assert (reply.status_code, node.api.fact().refused) == (400, {"malformed": 1})
    assert message in reply.json()["error"]
    assert node.performed == []


def test_paths_that_do_not_exist(node: Node) -> None:
    for method, path in (("GET", ""), ("GET", "/a1"), ("POST", "/a1"), ("GET", "/a1/stop"), ("POST", "/a1/b/stop")):
        assert node.ask(method, path).status_code == 404
    assert node.ask("POST", "x").status_code == 405


def test_a_body_without_end_is_not_read(node: Node) -> None:
    headers = signed() | {"Content-Length": str(MAX_BODY_BYTES + 1)}
    assert node.post(b"", headers).status_code == 413
    chunks = iter([b"{}"])
    assert requests.post(node.url, chunks, headers=signed(), timeout=60).status_code == 400
    assert node.performed == []


def test_an_action_for_which_there_is_no_room_may_come_again_under_its_id(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_dispatcher: ActionDispatcher, _action: Action) -> None:
        raise ActionQueueFullError("the queue is full")

    body = msgspec.json.encode(request())
    with monkeypatch.context() as patched:
        patched.setattr(ActionDispatcher, "check_room", full)
        reply = node.post(body)
    assert (reply.status_code, reply.headers["Retry-After"]) == (429, "60")
    assert node.post(body).status_code == 202
