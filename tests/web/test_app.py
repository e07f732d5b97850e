"""The application: pages, API of the cluster, headers and health check."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from monitor.explain.fits.model import FitsRequest
from monitor.facts import DiskFact, NodeSnapshot
from monitor.facts.cluster import ClusterView, GpuState, GpuView, NodeView
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Evidence, Text
from monitor.present.findings import LocalizedFinding, localize_findings
from monitor.queries.cluster import PodExplanation, WantedName
from monitor.queries.fits import FitsAnswer
from monitor.web.app import create_app
from monitor.web.server import WebServer
from tests.support import wait_until
from tests.support.command import get
from tests.support.snapshots import AT, full_snapshot

EVIL = "<script>alert(1)</script>\"'&"


def finding(node: str, **more: Any) -> Finding:
    headline = Text(key="node-down.kubelet-silent", values={"node": node, "seconds": 90.0})
    return Finding(
        rule="node-down", severity=Severity.CRITICAL, cause="x", labels={"node": node}, headline=headline, **more
    )


class FakeCluster:
    """A cluster of one node, of the given name, with one GPU."""

    def __init__(self, name: str = "gpu-01") -> None:
        self._name = name

    def view(self) -> ClusterView:
        gpu = GpuView(node=self._name, state=GpuState.ZOMBIE, index=0, evidence=(Evidence(key="pod-deleted"),))
        return ClusterView(at=AT, nodes=(NodeView(name=self._name, has_agent=True),), gpus=(gpu,))

    def overview(self) -> ClusterView:
        return self.view()

    def findings(self, lang: str) -> tuple[LocalizedFinding, ...] | None:
        return localize_findings((finding(self._name), finding(f"{self._name}-2", explained_by="x")), lang)

    def why(self, names: Sequence[WantedName], lang: str) -> tuple[PodExplanation, ...]:
        return tuple(
            PodExplanation(name=name, status="pending", cause="quota", well=False, lines=(f"{namespace} {lang}",))
            for name, namespace in names
        )

    def fits(self, request: FitsRequest, lang: str) -> FitsAnswer:
        return FitsAnswer(verdict="never", lines=(f"{request.gpus} {request.model} {request.tolerations} {lang}",))


@contextmanager
def serving(read: Callable[[], NodeSnapshot] | None, cluster: FakeCluster | None = None) -> Iterator[str]:
    app = create_app(cluster or FakeCluster(), read)
    server = WebServer(app, socket.create_server(("127.0.0.1", 0)))
    server.start()
    try:
        yield "http://{}:{}".format(*server.address)
    finally:
        server.begin_stop()
        wait_until(lambda: not server.running, 60, "the server stops")


def broken() -> NodeSnapshot:
    raise RuntimeError("a mistake in the program")


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serving(full_snapshot) as url:
        yield url


def test_the_page_shows_the_node(site: str) -> None:
    status, headers, body = get(f"{site}/nodes/gpu-01")
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    for shown in ("gpu-01", "zombie", "team-a/bert-0", "/mnt/数据", "hangs for 30s", "59.0 GiB"):
        assert shown in body


def test_the_snapshot_is_the_wire_format(site: str) -> None:
    status, headers, body = get(f"{site}/v1/snapshot")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert msgspec.json.decode(body, type=NodeSnapshot) == full_snapshot()


def test_a_sign_of_life(site: str) -> None:
    assert get(f"{site}/healthz")[::2] == (200, "ok\n")


def test_the_page_needs_nothing_inline(site: str) -> None:
    body = get(f"{site}/")[2]
    assert re.findall(r"<script[^>]*>", body) == re.findall(r'<script src="/static/[^"]+" defer>', body)
    assert " style=" not in body
    style = re.findall(r'<link rel="stylesheet" href="([^"]+)">', body)
    assert get(site + style[0])[1]["content-type"] == "text/css; charset=utf-8"


@pytest.mark.parametrize(
    ("read", "path", "status"),
    [
        (full_snapshot, "/", 200),
        (full_snapshot, "/healthz", 200),
        (full_snapshot, "/v1/snapshot", 200),
        (full_snapshot, "/static/page.css", 200),
        (full_snapshot, "/static/../app.py", 404),
        (full_snapshot, "/static/%2e%2e/app.py", 404),
        (full_snapshot, "/nope", 404),
        (full_snapshot, "/v1/view", 200),
        (full_snapshot, "/v1/findings", 200),
        (full_snapshot, "/v1/findings?lang=fr", 400),
        (full_snapshot, "/v1/why", 400),
        (full_snapshot, "/v1/fits?gpus=8", 200),
        (full_snapshot, "/v1/fits", 400),
        (full_snapshot, "/v1/fits?gpus=0", 400),
        (full_snapshot, "/v1/fits?gpus=10&per_node=4", 400),
        (full_snapshot, "/v1/fits?gpus=8&lang=fr", 400),
        (full_snapshot, "/v1/why?name=x&lang=fr", 400),
        (None, "/", 200),
        (None, "/v1/snapshot", 404),
        (None, "/healthz", 200),
        (broken, "/", 500),
    ],
)
def test_every_answer_has_the_headers_that_keep_a_browser_safe(
    read: Callable[[], NodeSnapshot] | None, path: str, status: int
) -> None:
    with serving(read) as url:
        answered, headers, body = get(url + path)
    assert answered == status
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("default-src 'self'; ")
    assert "server" not in headers
    assert "RuntimeError" not in body


def test_everything_shown_is_escaped() -> None:
    def evil() -> NodeSnapshot:
        disk = (DiskFact(mount=EVIL, device=EVIL, fstype=EVIL, error=EVIL),)
        return msgspec.structs.replace(full_snapshot(), node=EVIL, disk=disk)

    for read in (evil, None):
        with serving(read, FakeCluster(EVIL)) as url:
            body = get(f"{url}/")[2]
        assert "<script>" not in body
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in body


def test_the_cluster_is_shown_and_told(site: str) -> None:
    assert 'aria-label="GPU 0: zombie ' in get(f"{site}/")[2]
    assert msgspec.json.decode(get(f"{site}/v1/view")[2], type=ClusterView) == FakeCluster().view()


def test_what_is_found_is_shown_without_what_it_explains(site: str) -> None:
    body = get(f"{site}/")[2]
    assert "Node gpu-01 is down: its kubelet stopped reporting, and it has not been ready for 1 min 30 s." in body
    assert "gpu-01-2" not in body
    assert "节点 gpu-01 宕机" in get(f"{site}/?lang=zh")[2]


def test_findings_are_told_in_words(site: str) -> None:
    findings = msgspec.json.decode(get(f"{site}/v1/findings?lang=zh")[2], type=list[LocalizedFinding])
    assert [(each.labels, each.explained_by) for each in findings] == [
        ({"node": "gpu-01"}, None),
        ({"node": "gpu-01-2"}, "x"),
    ]
    assert findings[0].headline == "节点 gpu-01 宕机：它的 kubelet 停止上报，已有 1 分钟 30 秒未就绪。"


def test_findings_that_nobody_looked_for_are_not_none() -> None:
    class Blind(FakeCluster):
        def findings(self, lang: str) -> None:
            return None

    with serving(None, Blind()) as url:
        assert get(f"{url}/v1/findings")[0] == 503
        assert "Not evaluated yet" in get(f"{url}/")[2]


def test_why_is_asked_for_a_name_in_a_namespace_and_a_language(site: str) -> None:
    answer = msgspec.json.decode(get(f"{site}/v1/why?name=bert&namespace=team&lang=zh")[2])
    assert (answer["name"], answer["cause"], answer["lines"]) == ("bert", "quota", ["team zh"])


def test_a_reader_that_takes_its_time_does_not_keep_others_waiting_nor_the_server_from_stopping() -> None:
    entered, release = threading.Event(), threading.Event()

    def slow() -> NodeSnapshot:
        entered.set()
        release.wait(120)
        return full_snapshot()

    with socket.socket() as client, serving(slow) as url:  # still connected when the server stops
        parts = urlsplit(url)
        client.connect((parts.hostname, parts.port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(entered.is_set, 30, "the slow request is in progress")
        assert get(f"{url}/healthz")[0] == 200
    release.set()


UNKNOWN_PATHS = [
    ("/nonsense", {"Accept": "text/html,*/*"}, "text/html; charset=utf-8", "This address leads to no page."),
    ("/nonsense?lang=zh", {"Accept": "text/html,*/*"}, "text/html; charset=utf-8", "这个地址没有对应的页面"),
    ("/nonsense", {"Accept": "*/*"}, "text/plain; charset=utf-8", "Not Found"),
    ("/static/nonsense.js", {"Accept": "text/html,*/*"}, "text/plain; charset=utf-8", "Not Found"),
    ("/v1/nonsense", {"Accept": "text/html,*/*"}, "application/json", '{"error":"Not Found"}'),
]


@pytest.mark.parametrize(("path", "headers", "kind", "says"), UNKNOWN_PATHS)
def test_an_unknown_path_is_a_page_for_people_only(
    site: str, path: str, headers: dict[str, str], kind: str, says: str
) -> None:
    status, answered, body = get(site + path, headers)
    assert (status, answered["content-type"]) == (404, kind)
    assert says in body
