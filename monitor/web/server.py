"""The web server on a thread of its own, so that the main thread is free to wait for the signal to stop."""

from __future__ import annotations

import socket
import threading

import uvicorn
from starlette.types import ASGIApp

GRACE_SECONDS = 1


class WebServer:
    """Serves an application on a socket that is listening already."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,  # its messages go where all others go
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # who asks is who connects: what a header says is for the gate to believe or not
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._socket = listening
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name="web", daemon=True
        )

    @property
    def address(self) -> tuple[str, int]:
        """Return the host and port that it really listens on."""
        host, port = self._socket.getsockname()[:2]
        return host, port

    @property
    def running(self) -> bool:
        """Return whether it has not ended: it does so only when told, or when something is very wrong."""
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def begin_stop(self) -> None:
        """Take no more requests. Those under way have a second to end."""
        self._server.should_exit = True

    def wait_stopped(self) -> None:
        self._thread.join(GRACE_SECONDS + 0.5)
