"""The response to a unary call: headers, one message, and a status."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from urllib.parse import unquote

from monitor.agent.grpc_client.status import GrpcError, GrpcStatus, GrpcStatusError

_PREFIX = struct.Struct(">BI")  # of a message: whether it is compressed, and its length
_CONTENT_TYPE = "application/grpc"
# Status of a response that is not gRPC, by HTTP status; any other is UNKNOWN.
_BY_HTTP_STATUS = {
    "400": GrpcStatus.INTERNAL,
    "401": GrpcStatus.UNAUTHENTICATED,
    "403": GrpcStatus.PERMISSION_DENIED,
    "404": GrpcStatus.UNIMPLEMENTED,
    "429": GrpcStatus.UNAVAILABLE,
    "502": GrpcStatus.UNAVAILABLE,
    "503": GrpcStatus.UNAVAILABLE,
    "504": GrpcStatus.UNAVAILABLE,
}


def with_prefix(message: bytes) -> bytes:
    """An uncompressed message as sent in the body of a request."""
    return _PREFIX.pack(0, len(message)) + message


class UnaryResponse:
    """A response as it arrives. Its message is limited to `max_message_bytes`."""

    def __init__(self, max_message_bytes: int) -> None:
        self._max_message_bytes = max_message_bytes
        self._headers: dict[str, str] = {}
        self._body = bytearray()

    def add_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Add headers or trailers. Raise GrpcError if the response is not gRPC."""
        self._headers.update((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
        status = self._headers.get(":status", "")
        if status != "200":
            raise GrpcError(_BY_HTTP_STATUS.get(status, GrpcStatus.UNKNOWN), f"HTTP status {status}")
        content_type = self._headers.get("content-type", "")
        if not content_type.startswith(_CONTENT_TYPE):
            raise GrpcError(GrpcStatus.UNKNOWN, f"unexpected content type {content_type!r}")

    def add_body(self, data: bytes) -> None:
        """Add a part of the body. Raise GrpcError as soon as it cannot be a message that is accepted."""
        self._body += data
        if len(self._body) < _PREFIX.size:
            return
        compressed, length = _PREFIX.unpack_from(self._body)
        if compressed:
            raise GrpcError(GrpcStatus.INTERNAL, "the response is compressed, which was not offered")
        if length > self._max_message_bytes:
            text = f"the response has {length} bytes, more than {self._max_message_bytes}"
            raise GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, text)
        if len(self._body) > _PREFIX.size + length:
            raise GrpcError(GrpcStatus.INTERNAL, "the response has more than one message")

    def message(self) -> bytes:
        """Message of a complete response. Raise GrpcStatusError if the server reports an error."""
        code = self._code()
        if code is not GrpcStatus.OK:
            details = unquote(self._headers.get("grpc-message", ""), errors="replace")
            raise GrpcStatusError(code, details)
        if len(self._body) < _PREFIX.size or len(self._body) < _PREFIX.size + _PREFIX.unpack_from(self._body)[1]:
            raise GrpcError(GrpcStatus.INTERNAL, "the response ends before its message does")
        return bytes(memoryview(self._body)[_PREFIX.size :])

    def _code(self) -> GrpcStatus:
        text = self._headers.get("grpc-status")
        if text is None:
            raise GrpcError(GrpcStatus.INTERNAL, "the response has no status")
        try:
            return GrpcStatus(int(text[:3]))
        except ValueError:
            return GrpcStatus.UNKNOWN
