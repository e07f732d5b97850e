"""Status codes of gRPC, and the errors of a call."""

from __future__ import annotations

from enum import IntEnum


class GrpcStatus(IntEnum):
    """Status of a call, numbered as on the wire."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class GrpcError(Exception):
    """A call failed. `details` is the server's text, or says what is wrong with its response."""

    def __init__(self, code: GrpcStatus, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code
        self.details = details


class GrpcStatusError(GrpcError):
    """The server responded with this status; the connection remains usable."""


class GrpcTimeoutError(GrpcError):
    """The server did not respond within the timeout of the call."""

    def __init__(self, timeout: float) -> None:
        super().__init__(GrpcStatus.DEADLINE_EXCEEDED, f"no response within {timeout:g} s")


class GrpcConnectError(GrpcError):
    """The socket cannot be connected to."""

    def __init__(self, error: OSError) -> None:
        super().__init__(GrpcStatus.UNAVAILABLE, f"cannot connect: {error}")
        self.error = error


class ConnectionLostError(GrpcError):
    """The connection ended before the response was complete. `unprocessed`: the server has not seen the request."""

    def __init__(self, details: str, *, unprocessed: bool = False) -> None:
        super().__init__(GrpcStatus.UNAVAILABLE, details)
        self.unprocessed = unprocessed
