"""The web server, on its own thread so that the main thread can wait for signals."""

from __future__ import annotations

import socket
import threading

import uvicorn
from starlette.types import ASGIApp

from monitor.base.threads import spawn

GRACE_SECONDS = 1


class WebServer:
    """Serves an application on a listening socket."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,  # use the logging of the process
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # the authenticator decides which proxies to trust
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._socket = listening
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The host and port of the socket."""
        host, port = self._socket.getsockname()[:2]
        return host, port

    @property
    def running(self) -> bool:
        """Whether the server thread is alive; it ends on begin_stop() or a fatal error."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        self._thread = spawn("web", lambda: self._server.run(sockets=[self._socket]))

    def begin_stop(self) -> None:
        """Stop accepting requests; those in progress have GRACE_SECONDS to finish."""
        self._server.should_exit = True

    def wait_stopped(self) -> None:
        if self._thread is not None:
            self._thread.join(GRACE_SECONDS + 0.5)
