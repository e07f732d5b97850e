"""HTTP over a unix socket: as much as it takes to ask a container engine, in a hundredth of an SDK's memory."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException
from types import TracebackType
from typing import Self

import msgspec

from monitor.agent.runtime.api import ConflictError, EngineError, GoneError
from monitor.agent.runtime.dial import dial, explained
from monitor.base.msgspec_types import warm_up_msgspec

_FAILURES: dict[int, type[EngineError]] = {404: GoneError, 409: ConflictError}


class _UnixConnection(HTTPConnection):
    """An HTTP connection whose other end is a path."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = dial(self._path, self.timeout)


class _Complaint(msgspec.Struct):
    """How the engine words an error."""

    message: str = ""


class UnixHttp:
    """Requests, one after the other, over one connection that is opened when it is needed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: _UnixConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hang_up()

    def get(self, target: str, timeout: float | None = None) -> bytes:
        """Given a path with its query, return the body. Raise as `send` does."""
        return self.send("GET", target, timeout)

    def send(self, method: str, target: str, timeout: float | None = None) -> bytes:
        """Given a request without a body, return the body of its answer.

        Raise GoneError on 404, ConflictError on 409, EngineError on any other failure.
        """
        try:
            status, body = self._exchange(method, target, timeout)
        except OSError as error:  # also a reset connection: the engine went away
            self._hang_up()
            raise explained(self._path, error) from error
        except HTTPException as error:
            self._hang_up()
            raise EngineError(f"{self._path}: {type(error).__name__}: {error}") from error
        if 200 <= status < 300:
            return body
        failure = _FAILURES.get(status, EngineError)
        raise failure(f"{self._path}: {target.partition('?')[0]}: HTTP {status}: {_message(body)}")

    def _exchange(self, method: str, target: str, timeout: float | None) -> tuple[int, bytes]:
        connection = self._connection
        if connection is None:
            connection = self._connection = _UnixConnection(self._path)
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        connection.request(method, target)
        response = connection.getresponse()
        return response.status, response.read()

    def _hang_up(self) -> None:
        """Close the connection: after a failure it may still hold the answer to a question nobody asks any more."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _message(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Complaint).message
    except msgspec.MsgspecError:
        return body[:200].decode("utf-8", "replace").strip()


warm_up_msgspec(__name__)
