"""The tools for assistants over the Model Context Protocol (MCP): read-only, with the tokens and roles of the API.

It needs the extra `mcp`, which is loaded by the first request: a daemon without assistants does not carry it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import monitor
from monitor.web.responses import error_response
from monitor.web.tools import QueryTool

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

MCP_PATH = "/v1/mcp"
MAX_BODY_BYTES = 64 * 1024
MISSING = "the Model Context Protocol needs an extra: pip install 'gpuwarden[mcp]'"


def mcp_routes(tools: tuple[QueryTool, ...]) -> list[Route]:
    """Route of the protocol: one request and one response, without sessions or streams."""
    return [Route(MCP_PATH, McpEndpoint(tools), methods=["POST"])]


class McpEndpoint:
    """An ASGI application. `AuthMiddleware` lets only those reach it who may read."""

    def __init__(self, tools: tuple[QueryTool, ...]) -> None:
        self._tools = tools
        self._server: Server[Any] | None = None
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            server = await run_in_threadpool(self._load)
        except ImportError:
            await error_response(MISSING, HTTPStatus.NOT_IMPLEMENTED)(scope, receive, send)
            return
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        async with manager.run():  # a manager serves no second run, and its tasks end with the request
            await manager.handle_request(scope, receive, send)

    def _load(self) -> Server[Any]:
        """The server of the library. Raise ImportError if it is not installed."""
        with self._lock:
            if self._server is None:
                self._server = _make_server({tool.name: tool for tool in self._tools})
            return self._server


def _make_server(tools: Mapping[str, QueryTool]) -> Server[Any]:
    import mcp.types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    logging.getLogger("mcp").setLevel(logging.WARNING)  # it reports each request

    async def list_tools(
        _context: ServerRequestContext[Any], _parameters: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=tool.schema(),
                    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
                )
                for tool in tools.values()
            ]
        )

    async def call_tool(
        _context: ServerRequestContext[Any], parameters: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = tools.get(parameters.name)
        try:
            if tool is None:
                raise ValueError(f"there is no tool {parameters.name[:100]!r}; there are {', '.join(tools)}")
            text, failed = await run_in_threadpool(tool.answer, parameters.arguments or {}), False
        except ValueError as error:
            text, failed = str(error), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    return Server(
        "gpuwarden",
        version=monitor.__version__,
        instructions="Read-only questions about a GPU cluster on Kubernetes, its alerts and its usage.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
