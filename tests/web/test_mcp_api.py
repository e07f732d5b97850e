"""The Model Context Protocol, spoken by a real client."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import anyio
import httpx2
import pytest
from mcp.client import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from monitor.report.model import Report, ReportRow
from monitor.web.mcp_api import MAX_BODY_BYTES, MCP_PATH, MISSING
from monitor.web.tools import MAX_ARGUMENT_CHARS
from tests.web.cluster import ACCESS, TOKENS, Client, site
from tests.web.test_alerts_api import FakeAlerts

T = TypeVar("T")
CLOSED = ACCESS | {"anonymous": "none"}


class Reports:
    """Reports of one user."""

    def report(self, seconds: float, by: str) -> Report:
        row = ReportRow(name="zhang", allocated_hours=8.0)
        return Report(
            since=0, until=seconds, by=by, watched_seconds=seconds, rows=(row,), total=row, incidents_since=0,  # type: ignore[arg-type]
            cleaned_since=0,
        )  # fmt: skip


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with site(CLOSED, alerts=FakeAlerts(), reports=Reports()) as address:
        yield address


def connected(
    url: str, talk: Callable[[McpClient], Awaitable[T]], token: str = TOKENS["viewer"], mode: str = "auto"
) -> T:
    """Talk to the server as an assistant does, with a token."""

    async def run() -> T:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            McpClient(streamable_http_client(url + MCP_PATH, http_client=http), mode=mode) as client,
        ):
            return await talk(client)

    return anyio.run(run)


def ask(url: str, tool: str, **arguments: object) -> tuple[bool, str]:
    """Whether a tool failed, and its text."""
    result: CallToolResult = connected(url, lambda client: client.call_tool(tool, arguments))
    (content,) = result.content
    assert isinstance(content, TextContent)
    return bool(result.is_error), content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_are_listed_as_read_only(url: str, mode: str) -> None:
    listed = connected(url, lambda client: client.list_tools(), mode=mode).tools
    assert sorted(tool.name for tool in listed) == ["alerts", "fits", "report", "status", "why"]
    assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in listed)


def test_each_tool_answers(url: str) -> None:
    failed, text = ask(url, "status")
    assert not failed
    assert "1 node, 1 GPU: 1 zombie" in text
    assert "| gpu-01/0 | zombie |" in text
    assert "| 节点 |" in ask(url, "status", lang="zh")[1]
    assert ask(url, "why", name="bert", namespace="nlp", lang="zh") == (False, "nlp zh")
    assert "disk-full" in ask(url, "alerts")[1]
    assert ask(url, "fits", gpus="16", model="A100") == (False, "16 A100 () en")
    assert "| zhang | 8.0 |" in ask(url, "report", since="24h", by="user")[1]


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("why", {}, "why needs name"),
        ("why", {"name": "x" * (MAX_ARGUMENT_CHARS + 1)}, f"name is text of at most {MAX_ARGUMENT_CHARS} characters"),
        ("why", {"name": 5}, f"name is text of at most {MAX_ARGUMENT_CHARS} characters"),
        ("status", {"verbose": "yes"}, "status has no argument 'verbose'"),
        ("status", {"lang": "fr"}, "lang is one of en, zh"),
        ("report", {"since": "9999d"}, "since is a duration of at most"),
        ("fits", {"gpus": "many"}, "gpus is a number from 1 to 10000"),
        ("delete", {}, "there is no tool 'delete'; there are status, why, fits, alerts, report"),
    ],
)
def test_wrong_questions_say_what_is_wrong(url: str, tool: str, arguments: dict[str, object], error: str) -> None:
    failed, text = ask(url, tool, **arguments)
    assert failed
    assert error in text


def test_only_those_who_may_read_are_answered(url: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert Client(url).post(MCP_PATH, body).status == 401
    assert Client(url, {"Authorization": "Bearer wrong"}).post(MCP_PATH, body).status == 401
    signed_in = Client(url)
    signed_in.sign_in("guest")
    assert signed_in.post(MCP_PATH, body).status == 403  # a page of another site cannot ask with the cookie


def test_requests_are_bounded_and_there_are_no_streams(url: str) -> None:
    viewer = Client(url, {"Authorization": f"Bearer {TOKENS['viewer']}"})
    assert viewer.post(MCP_PATH, {"x": "y" * MAX_BODY_BYTES}).status == 413
    assert viewer.get(MCP_PATH, Accept="text/event-stream").status == 405


def test_without_the_extra_the_answer_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.types", None)
    with site(CLOSED) as address:
        viewer: Any = Client(address, {"Authorization": f"Bearer {TOKENS['viewer']}"})
        answer = viewer.post(MCP_PATH, {"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert (answer.status, answer.json) == (501, {"error": MISSING})
