"""HTTP over a unix socket: as much as a container engine needs, in a hundredth of an SDK's memory."""

from __future__ import annotations

import time
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from types import TracebackType
from typing import Self

import msgspec

from monitor.agent.runtime.api import ConflictError, EngineError, GoneError
from monitor.agent.runtime.dial import dial, explain_socket_error
from monitor.base.deadline_socket import DeadlineSocket
from monitor.base.msgspec_types import warm_up_msgspec

MAX_REQUEST_SECONDS = 600.0  # an engine with a slow disk takes minutes to measure its images
_MAX_ERROR_BYTES = 200
_FAILURES: dict[int, type[EngineError]] = {404: GoneError, 409: ConflictError}


class _UnixConnection(HTTPConnection):
    """An HTTP connection to a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path
        self._deadline = 0.0

    def connect(self) -> None:
        self.sock = dial(self._path, self._deadline - time.monotonic())

    def limit(self, seconds: float) -> None:
        """Limit the next request as a whole, however slowly its response arrives."""
        self._deadline = time.monotonic() + seconds
        if isinstance(self.sock, DeadlineSocket):
            self.sock.deadline = self._deadline


class _EngineErrorBody(msgspec.Struct):
    """Body of an error response."""

    message: str = ""


class UnixHttp:
    """Sequential requests over one connection, which is opened when needed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: _UnixConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._disconnect()

    def get(self, target: str, timeout: float | None = None) -> bytes:
        """Response body. Raise as `send` does."""
        return self.send("GET", target, timeout)

    def send(self, method: str, target: str, timeout: float | None = None) -> bytes:
        """Response body of a request without one.

        Raise GoneError on 404, ConflictError on 409, EngineError on any other failure.
        """
        try:
            status, body = self._exchange(method, target, timeout)
        except OSError as error:  # including a reset connection: the engine stopped
            self._disconnect()
            raise explain_socket_error(self._path, error) from error
        except HTTPException as error:
            self._disconnect()
            raise EngineError(f"{self._path}: {type(error).__name__}: {error}") from error
        if 200 <= status < 300:
            return body
        failure = _FAILURES.get(status, EngineError)
        raise failure(f"{self._path}: {target.partition('?')[0]}: HTTP {status}: {_message(body)}")

    def _exchange(self, method: str, target: str, timeout: float | None) -> tuple[int, bytes]:
        connection = self._connection
        if connection is None:
            connection = self._connection = _UnixConnection(self._path)
        connection.limit(MAX_REQUEST_SECONDS if timeout is None else timeout)
        connection.request(method, target)
        with closing(connection.getresponse()) as response:  # which may have taken over the socket
            return response.status, response.read()

    def _disconnect(self) -> None:
        """Close the connection: after a failure it may still deliver the response to an abandoned request."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _message(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_EngineErrorBody).message
    except msgspec.MsgspecError:
        return body[:_MAX_ERROR_BYTES].decode("utf-8", "replace").strip()


warm_up_msgspec(__name__)
