"""Status codes of gRPC, and the errors of a call."""

from __future__ import annotations

from enum import IntEnum

# In the order of their numbers on the wire.
GrpcStatus = IntEnum(
    "GrpcStatus",
    (
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ),
    start=0,
)


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
