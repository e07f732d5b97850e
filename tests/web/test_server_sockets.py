"""Connections of the web server send small answers at once."""

from __future__ import annotations

import http.client
import socket

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from monitor.web.server import LimitedProtocol, WebServer


def test_a_connection_does_not_wait_for_acknowledgements() -> None:
    seen: list[int] = []
    made = LimitedProtocol.connection_made

    def connection_made(self: LimitedProtocol, transport: object) -> None:
        own: socket.socket = transport.get_extra_info("socket")  # type: ignore[attr-defined]
        seen.append(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        made(self, transport)  # type: ignore[arg-type]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(Request(scope).url.path)(scope, receive, send)

    LimitedProtocol.connection_made = connection_made  # type: ignore[method-assign]
    web = WebServer(app, socket.create_server(("127.0.0.1", 0)))
    web.start()
    try:
        connection = http.client.HTTPConnection(*web.address, timeout=60)
        connection.request("GET", "/here")
        assert connection.getresponse().read() == b"/here"
        connection.close()
    finally:
        LimitedProtocol.connection_made = made  # type: ignore[method-assign]
        web.begin_stop()
        web.wait_stopped()
    assert [bool(option) for option in seen] == [True]
