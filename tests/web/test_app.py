from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import msgspec
import pytest

from monitor.facts import DiskFact, NodeSnapshot
from monitor.web.app import NoSnapshotError, create_app
from monitor.web.server import WebServer
from tests.support import wait_until
from tests.support.command import get
from tests.support.snapshots import full_snapshot

EVIL = "<script>alert(1)</script>\"'&"


@contextmanager
def serving(read: Callable[[], NodeSnapshot]) -> Iterator[str]:
    server = WebServer(create_app(read), socket.create_server(("127.0.0.1", 0)))
    server.start()
    try:
        yield "http://{}:{}".format(*server.address)
    finally:
        server.begin_stop()
        server.wait_stopped()
        assert not server.running


def broken() -> NodeSnapshot:
    raise RuntimeError("a mistake in the program")


def absent() -> NodeSnapshot:
    raise NoSnapshotError(f"the agent does not answer {EVIL}")


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serving(full_snapshot) as url:
        yield url


def test_the_page_shows_the_node(site: str) -> None:
    status, headers, body = get(f"{site}/")
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    for shown in ("gpu-01", "NVIDIA A100-SXM4-80GB", "team-a/bert-0", "/mnt/数据", "hangs for 30s", "59.0 GiB"):
        assert shown in body


def test_the_snapshot_is_the_wire_format(site: str) -> None:
    status, headers, body = get(f"{site}/v1/snapshot")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert msgspec.json.decode(body, type=NodeSnapshot) == full_snapshot()


def test_a_sign_of_life(site: str) -> None:
    assert get(f"{site}/healthz")[::2] == (200, "ok\n")


def test_the_page_needs_nothing_inline(site: str) -> None:
    body = get(f"{site}/")[2]
    assert "<script" not in body
    assert "style=" not in body
    assert 'href="/static/status.css"' in body
    assert get(f"{site}/static/status.css")[1]["content-type"] == "text/css; charset=utf-8"


@pytest.mark.parametrize(
    ("read", "path", "status"),
    [
        (full_snapshot, "/", 200),
        (full_snapshot, "/healthz", 200),
        (full_snapshot, "/v1/snapshot", 200),
        (full_snapshot, "/static/status.css", 200),
        (full_snapshot, "/static/../app.py", 404),
        (full_snapshot, "/static/%2e%2e/app.py", 404),
        (full_snapshot, "/nope", 404),
        (absent, "/", 503),
        (absent, "/v1/snapshot", 503),
        (absent, "/healthz", 200),
        (broken, "/", 500),
    ],
)
def test_every_answer_has_the_headers_that_keep_a_browser_safe(
    read: Callable[[], NodeSnapshot], path: str, status: int
) -> None:
    with serving(read) as url:
        answered, headers, body = get(url + path)
    assert answered == status
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'self'"
    assert "server" not in headers
    assert "RuntimeError" not in body


def test_everything_shown_is_escaped() -> None:
    def evil() -> NodeSnapshot:
        disk = (DiskFact(mount=EVIL, device=EVIL, fstype=EVIL, error=EVIL),)
        return msgspec.structs.replace(full_snapshot(), node=EVIL, disk=disk)

    for read in (evil, absent):
        with serving(read) as url:
            body = get(f"{url}/")[2]
        assert "<script" not in body
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in body


def test_without_a_snapshot_the_reason_is_told() -> None:
    with serving(absent) as url:
        assert "the agent does not answer" in get(f"{url}/")[2]
        assert msgspec.json.decode(get(f"{url}/v1/snapshot")[2]) == {"error": f"the agent does not answer {EVIL}"}


def test_a_reader_that_takes_its_time_does_not_keep_others_waiting_nor_the_server_from_stopping() -> None:
    entered, release = threading.Event(), threading.Event()

    def slow() -> NodeSnapshot:
        entered.set()
        release.wait(20)
        return full_snapshot()

    with socket.socket() as client, serving(slow) as url:  # the client is still there when the server stops
        parts = urlsplit(url)
        client.connect((parts.hostname, parts.port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        wait_until(entered.is_set, 5, "the slow request is under way")
        assert get(f"{url}/healthz")[0] == 200
    release.set()
