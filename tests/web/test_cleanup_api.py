"""Cleanup over HTTP: queries, changes, and their authorization."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from monitor.access.settings import AccessSettings
from monitor.cleanup.execute.scanner import ScanProgress
from monitor.cleanup.journal_records import ItemState, JournalEntry
from monitor.cleanup.model import KeptItem
from monitor.present.cleanup import ShownPlan, ShownRun, show_plan
from monitor.web.alerts_api import ApiTokens
from monitor.web.app import create_app
from monitor.web.authenticator import Authenticator
from monitor.web.security import Security
from monitor.web.server import WebServer
from tests.cleanup.support import NOW, item, plan, run
from tests.support.command import get
from tests.support.local_token import AS_LOCAL, LOCAL_TOKEN
from tests.web.test_app import FakeCluster

TOKEN = "s3cret-t0ken"
PROGRESS = ScanProgress(policy="data", root="/mnt/share", node="nas-01", started_at=NOW, counts={"entries": 5})


class FakeCleanup:
    """Records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def plans(self, policy: str | None, lang: str) -> tuple[ShownPlan, ...]:
        self.calls.append(("plans", policy, lang))
        if policy == "nonsense":
            raise ValueError("there is no policy 'nonsense'; there are images")
        kept = (KeptItem(name="harbor.lab/base:1", protection="needed", bytes=5 << 30, detail="nlp/bert-0"),)
        counts = {"needed": 1, "in-use": 7}
        plans = (plan(item(), kept=kept, kept_counts=counts), plan(policy="idle", kept=kept, kept_counts=counts))
        return tuple(show_plan(each, lang) for each in plans[: 1 if policy is not None else 2])

    def policies_on(self, node: str, kind: str) -> tuple[str, ...]:
        self.calls.append(("policies_on", node, kind))
        return ("node-images",)

    def history(self, limit: int, policy: str | None) -> tuple[ShownRun, ...]:
        self.calls.append(("history", limit, policy))
        return (ShownRun(run=run(), items=(JournalEntry(item=item(), place=0, state=ItemState.DONE),)),)

    def run(self, policy: str, node: str | None, by: str) -> tuple[str, ...]:
        self.calls.append(("run", policy, node, by))
        return ("gpu01",)

    def release(self, node: str, gpu: str, by: str) -> ShownRun:
        self.calls.append(("release", node, gpu, by))
        if gpu == "9":
            raise ValueError("gpu01 has no GPU 9; it has 0, 1")
        return ShownRun(run=run(policy="release", by=by))

    def restore(self, trash: str, by: str) -> ShownRun:
        self.calls.append(("restore", trash, by))
        return ShownRun(run=run(policy="restore"))

    def begin_scan(self, policy: str) -> ScanProgress:
        self.calls.append(("begin_scan", policy))
        return PROGRESS

    def scan(self, policy: str) -> ScanProgress:
        self.calls.append(("scan", policy))
        return PROGRESS

    def stop_scan(self, policy: str) -> bool:
        self.calls.append(("stop_scan", policy))
        return True


@contextmanager
def served(cleanup: FakeCleanup, token: str | None = None) -> Iterator[int]:
    """Serve cleanup with LOCAL_TOKEN, or with the token of the daemon alone."""
    listening = socket.create_server(("127.0.0.1", 0))
    security = Security(Authenticator(AccessSettings(), local_token=LOCAL_TOKEN)) if token is None else None
    app = create_app(FakeCluster(), cleanup=cleanup, tokens=ApiTokens(token), security=security)
    web = WebServer(app, listening)
    web.start()
    try:
        yield web.address[1]
    finally:
        web.begin_stop()
        web.wait_stopped()


def ask(
    port: int, path: str, body: Any = None, headers: dict[str, str] | None = None, raw: bytes | None = None
) -> tuple[int, Any]:
    """Send a GET, or with a body a POST; return status and decoded response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    sent = raw if raw is not None else json.dumps(body).encode() if body is not None else None
    given = {"Content-Type": "application/json"} | (headers or {})
    try:
        connection.request("GET" if sent is None else "POST", path, sent, given)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


READS: list[tuple[str, str, tuple[Any, ...]]] = [
    ("all plans", "/v1/cleanup/plan", ("plans", None, "en")),
    ("one plan in Chinese", "/v1/cleanup/plan?policy=images&lang=zh", ("plans", "images", "zh")),
    ("history", "/v1/cleanup/history", ("history", 50, None)),
    ("more of it", "/v1/cleanup/history?limit=7&policy=images", ("history", 7, "images")),
    ("a scan", "/v1/cleanup/scan?policy=data", ("scan", "data")),
]
CHANGES: list[tuple[str, str, Any, tuple[Any, ...], int]] = [
    ("run", "/v1/cleanup/run", {"policy": "images"}, ("run", "images", None, "?@127.0.0.1"), 202),
    (
        "run on one node",
        "/v1/cleanup/run",
        {"policy": "images", "node": "gpu01", "by": "zhang\n"},
        ("run", "images", "gpu01", "zhang@127.0.0.1"),
        202,
    ),
    ("release", "/v1/cleanup/release", {"node": "g1", "gpu": 3}, ("release", "g1", "3", "?@127.0.0.1"), 200),
    ("restore", "/v1/cleanup/restore/t-1", {}, ("restore", "t-1", "?@127.0.0.1"), 200),
    ("scan", "/v1/cleanup/scan", {"policy": "data"}, ("begin_scan", "data"), 202),
    ("stop a scan", "/v1/cleanup/scan/stop", {"policy": "data"}, ("stop_scan", "data"), 200),
]  # fmt: skip


@pytest.mark.parametrize(("path", "expect"), [row[1:] for row in READS], ids=[row[0] for row in READS])
def test_what_can_be_asked(path: str, expect: tuple[Any, ...]) -> None:
    cleanup = FakeCleanup()
    with served(cleanup, TOKEN) as port:  # reading needs no token
        status, answer = ask(port, path)
    assert (status, cleanup.calls) == (200, [expect])
    assert answer


@pytest.mark.parametrize(("path", "body", "expect", "status"), [r[1:] for r in CHANGES], ids=[r[0] for r in CHANGES])
def test_what_can_be_changed_and_by_whom(path: str, body: Any, expect: tuple[Any, ...], status: int) -> None:
    cleanup = FakeCleanup()
    with served(cleanup) as port:
        assert ask(port, path, body, AS_LOCAL)[0] == status
        assert cleanup.calls == [expect]
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for headers in ({}, form, {"Host": "evil.example"}, {"X-Forwarded-For": "10.0.0.9"}):
            assert ask(port, path, body, headers)[0] in (401, 403)
        assert len(cleanup.calls) == 1
    with served(cleanup, TOKEN) as port:
        assert ask(port, path, body)[0] == 401
        assert ask(port, path, body, {"Authorization": "Bearer wrong"})[0] == 401
        assert len(cleanup.calls) == 1
        assert ask(port, path, body, {"Authorization": f"Bearer {TOKEN}"})[0] == status


WRONG: list[tuple[str, str, bytes | None, str]] = [
    ("no such policy", "/v1/cleanup/plan?policy=nonsense", None, "there is no policy"),
    ("no such language", "/v1/cleanup/plan?lang=tlh", None, "lang is en or zh"),
    ("no number", "/v1/cleanup/history?limit=x", None, "limit is a number"),
    ("too many", "/v1/cleanup/history?limit=100000", None, "limit is a number"),
    ("too many behind noughts", "/v1/cleanup/history?limit=00000010099999", None, "limit is a number"),
    ("no JSON", "/v1/cleanup/run", b"{", "invalid request body"),
    ("something is missing", "/v1/cleanup/release", b'{"node":"gpu01"}', "`gpu`"),
    ("of another kind", "/v1/cleanup/run", b'{"policy":5}', "Expected `str`"),
    ("no such GPU", "/v1/cleanup/release", b'{"node":"gpu01","gpu":"9"}', "gpu01 has no GPU 9"),
]


@pytest.mark.parametrize(("path", "body", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_asked_wrongly(path: str, body: bytes | None, message: str) -> None:
    with served(FakeCleanup()) as port:
        status, answer = ask(port, path, None, AS_LOCAL, body)
    assert status == 400
    assert message in answer["error"]


def test_too_much_at_once() -> None:
    with served(FakeCleanup()) as port:
        assert ask(port, "/v1/cleanup/run", None, AS_LOCAL, b" " * 70_000)[0] == 413


KEPT = [
    (
        "en",
        ["8 items are kept", "A pod or pod template needs it.", "harbor.lab/base:1", "nlp/bert-0", "... and 7 more"],
    ),
    ("zh", ["保留了 8 项", "harbor.lab/base:1"]),
]


@pytest.mark.parametrize(("lang", "shows"), KEPT)
def test_the_page_says_what_is_kept_and_why_also_where_nothing_is_cleaned_up(lang: str, shows: list[str]) -> None:
    with served(FakeCleanup()) as port:
        body = get(f"http://127.0.0.1:{port}/cleanup/plan?lang={lang}")[2]
    active, _, idle = body.partition("<b>idle</b>")
    assert [each for each in shows if each not in active] == []
    assert [each for each in shows if each not in idle] == []
