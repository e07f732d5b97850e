"""A connection to a gRPC server on a unix socket."""

from __future__ import annotations

import contextlib
import math
import socket
import struct
import time
import weakref
from collections.abc import Sequence
from typing import NamedTuple

import monitor
from monitor.agent.grpc_client.session import Http2Session
from monitor.agent.grpc_client.status import (
    ConnectionLostError,
    GrpcConnectError,
    GrpcError,
    GrpcStatus,
    GrpcStatusError,
    GrpcTimeoutError,
)

_READ_BYTES = 64 * 1024
_MAX_IDLE_READS = 16  # an idle connection receives a few small frames at most
_USER_AGENT = f"gpuwarden/{monitor.__version__}"


class GrpcCall(NamedTuple):
    """A call: path of the method, encoded request, and limits. `end` is the deadline on the monotonic clock."""

    path: str
    message: bytes
    metadata: Sequence[tuple[str, str]]
    max_message_bytes: int
    timeout: float
    end: float

    def seconds_left(self) -> float:
        """Time until the deadline. Raise GrpcTimeoutError if there is none."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise GrpcTimeoutError(self.timeout)
        return left

    def headers(self) -> list[tuple[str, str]]:
        """Headers of the request."""
        return [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", self.path),
            (":authority", "localhost"),  # Go servers refuse the path of a socket
            ("te", "trailers"),
            ("grpc-timeout", f"{math.ceil(1000 * self.seconds_left())}m"),
            ("content-type", "application/grpc"),
            ("user-agent", _USER_AGENT),
            *self.metadata,
        ]


class GrpcConnection:
    """One socket, used by one thread at a time. After an error other than GrpcStatusError it must be closed."""

    def __init__(self, path: str, call: GrpcCall) -> None:
        """Connect within the deadline of the first call. Raise GrpcConnectError or GrpcTimeoutError."""
        self._sock = _connect(path, call)
        self.close = weakref.finalize(self, self._sock.close)  # also if the owner is dropped without being closed
        self._session = Http2Session()

    def is_usable(self) -> bool:
        """Whether an idle connection can be used for another call; also processes what the server sent meanwhile."""
        self._sock.settimeout(0)
        try:
            for _ in range(_MAX_IDLE_READS):
                if self._session.ended:
                    return False
                self._session.receive(self._sock.recv(_READ_BYTES))
        except BlockingIOError:
            return True
        except (OSError, GrpcError):
            return False
        return False

    def unary(self, call: GrpcCall) -> bytes:
        """Message of the response. Raise GrpcError."""
        try:
            return self._exchange(call)
        except TimeoutError as error:
            raise GrpcTimeoutError(call.timeout) from error
        except OSError as error:
            raise ConnectionLostError(str(error)) from error
        except GrpcStatusError as error:
            if error.code is GrpcStatus.DEADLINE_EXCEEDED and time.monotonic() >= call.end:
                raise GrpcTimeoutError(call.timeout) from error  # the server knows the deadline and gave up as well
            raise

    def _exchange(self, call: GrpcCall) -> bytes:
        self._session.begin(call.headers(), call.message, call.max_message_bytes)
        while not self._session.complete:
            self._sock.settimeout(call.seconds_left())
            with contextlib.suppress(BrokenPipeError):  # the server may have responded before it disconnected
                self._sock.sendall(self._session.outgoing())
            self._sock.settimeout(call.seconds_left())
            self._session.receive(self._sock.recv(_READ_BYTES))
        with contextlib.suppress(OSError):  # acknowledgements, which the response does not depend on
            self._sock.sendall(self._session.outgoing())
        return self._session.message()


def _connect(path: str, call: GrpcCall) -> socket.socket:
    seconds, microseconds = divmod(math.ceil(1e6 * call.seconds_left()), 1_000_000)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # A socket with a timeout does not wait for a server whose queue of connections is full: this option does.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, microseconds))
        sock.connect(path)
    except BlockingIOError as error:
        sock.close()
        raise GrpcTimeoutError(call.timeout) from error
    except OSError as error:
        sock.close()
        raise GrpcConnectError(error) from error
    return sock
