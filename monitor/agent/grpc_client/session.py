"""HTTP/2 of one connection, without I/O: one call at a time."""

from __future__ import annotations

from collections.abc import Sequence

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings

from monitor.agent.grpc_client.response import UnaryResponse, with_prefix
from monitor.agent.grpc_client.status import ConnectionLostError, GrpcError, GrpcStatus

MAX_HEADER_BYTES = 64 * 1024
_WINDOW_BYTES = 1024 * 1024  # a list of images is several MB
_DEFAULT_WINDOW_BYTES = 65535  # of a connection, by the specification
# Status of a call whose stream the server reset; any other code is INTERNAL.
_BY_RESET: dict[int, GrpcStatus] = {
    ErrorCodes.CANCEL: GrpcStatus.CANCELLED,
    ErrorCodes.ENHANCE_YOUR_CALM: GrpcStatus.RESOURCE_EXHAUSTED,
    ErrorCodes.INADEQUATE_SECURITY: GrpcStatus.PERMISSION_DENIED,
}


class _LeanConnection(H2Connection):
    """Remembers few closed streams: with the default, a connection of some days holds 10 MiB of them."""

    MAX_CLOSED_STREAMS = 16


class Http2Session:
    """Client side of a connection.

    The methods raise ConnectionLostError when the connection has ended, and GrpcError on a response that is not
    accepted; after both the connection must be closed. After GrpcStatusError it may be used for the next call.
    """

    def __init__(self) -> None:
        self._h2 = _LeanConnection(H2Configuration(client_side=True, header_encoding=None))
        self._h2.local_settings = Settings(
            client=True,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW_BYTES,
                SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_BYTES,
            },
        )
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW_BYTES - _DEFAULT_WINDOW_BYTES)
        self._stream_id = 0
        self._unsent = b""
        self._response = UnaryResponse(0)
        self._unacknowledged_bytes = 0
        self.complete = False
        self.ended = False  # after a complete response: there can be no further call

    def begin(self, headers: Sequence[tuple[str, str]], message: bytes, max_message_bytes: int) -> None:
        """Send a request. The response is complete when `complete` is true."""
        self._response = UnaryResponse(max_message_bytes)
        self._unsent = with_prefix(message)
        self.complete = False
        try:
            self._stream_id = self._h2.get_next_available_stream_id()
            self._h2.send_headers(self._stream_id, headers)
            self._send_body()
        except H2Error as error:
            raise ConnectionLostError(f"HTTP/2: {error}", unprocessed=True) from error

    def outgoing(self) -> bytes:
        """What has to be sent now."""
        return self._h2.data_to_send()

    def receive(self, data: bytes) -> None:
        """Process received data, or the end of the connection if there is none."""
        if not data:
            raise ConnectionLostError("connection closed")
        try:
            for event in self._h2.receive_data(data):
                self._process(event)
            self._continue()
        except H2Error as error:
            raise ConnectionLostError(f"HTTP/2: {error}") from error

    def message(self) -> bytes:
        """Message of the complete response. Raise GrpcStatusError if the server reports an error."""
        return self._response.message()

    def _continue(self) -> None:
        """Let the server send more, and send more of the request."""
        if self.complete and self._unsent:  # the server responded without reading the request: its rest is not sent
            self.ended = True
        if self.ended:
            return
        if self._unacknowledged_bytes:
            self._h2.acknowledge_received_data(self._unacknowledged_bytes, self._stream_id)
            self._unacknowledged_bytes = 0
        if not self.complete:
            self._send_body()

    def _send_body(self) -> None:
        """Send as much of the request as the server accepts now."""
        while self._unsent:
            window = self._h2.local_flow_control_window(self._stream_id)
            size = min(len(self._unsent), window, self._h2.max_outbound_frame_size)
            if size <= 0:
                return
            part, self._unsent = self._unsent[:size], self._unsent[size:]
            self._h2.send_data(self._stream_id, part, end_stream=not self._unsent)

    def _process(self, event: Event) -> None:
        match event:
            case ConnectionTerminated(last_stream_id=last) if not self.complete:
                # h2 accepts no further frames, so that of a graceful shutdown a response in progress is lost.
                raise ConnectionLostError("the server is shutting down", unprocessed=(last or 0) < self._stream_id)
            case ConnectionTerminated():
                self.ended = True
            case ResponseReceived() | TrailersReceived() | DataReceived() | StreamEnded() | StreamReset():
                if event.stream_id == self._stream_id and not self.complete:
                    self._process_response(event)

    def _process_response(
        self, event: ResponseReceived | TrailersReceived | DataReceived | StreamEnded | StreamReset
    ) -> None:
        match event:
            case ResponseReceived(headers=headers) | TrailersReceived(headers=headers):
                self._response.add_headers((bytes(name), bytes(value)) for name, value in headers or ())
            case DataReceived(data=data, flow_controlled_length=length):
                self._unacknowledged_bytes += length
                self._response.add_body(data)
            case StreamEnded():
                self.complete = True
            case StreamReset(error_code=ErrorCodes.REFUSED_STREAM):
                raise ConnectionLostError("the server refused the stream", unprocessed=True)
            case StreamReset(error_code=code):
                raise GrpcError(_BY_RESET.get(code, GrpcStatus.INTERNAL), f"the server reset the stream: {code}")
