"""A gRPC server that follows a script, for what real servers do rarely or never."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded
from h2.exceptions import ProtocolError

HEADERS = ((":status", "200"), ("content-type", "application/grpc"))
OK = (("grpc-status", "0"),)


def framed(message: bytes, *, compressed: bool = False) -> bytes:
    return struct.pack(">BI", compressed, len(message)) + message


@dataclass
class Received:
    """A request, and the number of its connection."""

    connection: int
    headers: dict[str, str]
    body: bytearray = field(default_factory=bytearray)


@dataclass
class Stream:
    """The stream of a request, on which a script responds."""

    sock: socket.socket
    h2: H2Connection
    number: int
    stopped: threading.Event

    def headers(self, headers: Sequence[tuple[str, str]] = HEADERS, *, end: bool = False) -> None:
        self.h2.send_headers(self.number, list(headers), end_stream=end)
        self.flush()

    def data(self, data: bytes, *, end: bool = False) -> None:
        self.h2.send_data(self.number, data, end_stream=end)
        self.flush()

    def reset(self, code: ErrorCodes) -> None:
        self.h2.reset_stream(self.number, code)
        self.flush()

    def goaway(self, last_stream_id: int) -> None:
        self.h2.close_connection(last_stream_id=last_stream_id)
        self.flush()

    def hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def respond(self, message: bytes = b"") -> None:
        self.headers()
        self.data(framed(message))
        self.headers(OK, end=True)

    def flush(self) -> None:
        with contextlib.suppress(OSError):  # the client has given up
            self.sock.sendall(self.h2.data_to_send())


Script = Callable[[Stream], None]


@dataclass
class ScriptedServer:
    """Answers each request with the next script, and all further ones with the last."""

    scripts: list[Script]
    early: bool = False
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)
    _open: list[socket.socket] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        threads = []
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                break
            self.connections += 1
            self._open.append(sock)
            threads.append(threading.Thread(target=self._converse, args=(sock, self.connections)))
            threads[-1].start()
        for thread in threads:
            thread.join(10)

    def stop(self) -> None:
        self.stopped.set()
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _converse(self, sock: socket.socket, number: int) -> None:
        with sock:
            h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
            h2.initiate_connection()
            requests: dict[int, Received] = {}
            with contextlib.suppress(OSError, ProtocolError):  # also a request after the script ended the connection
                sock.sendall(h2.data_to_send())
                while data := sock.recv(65536):
                    self._process(sock, h2, number, requests, data)

    def _respond(self, stream: Stream, request: Received) -> None:
        self.received.append(request)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        script(stream)

    def _process(
        self, sock: socket.socket, h2: H2Connection, number: int, requests: dict[int, Received], data: bytes
    ) -> None:
        for event in h2.receive_data(data):
            match event:
                case RequestReceived(stream_id=stream_id, headers=headers):
                    requests[stream_id] = Received(number, {str(name): str(value) for name, value in headers})
                    if self.early:
                        self._respond(Stream(sock, h2, stream_id, self.stopped), requests[stream_id])
                case DataReceived() if self.early:
                    pass
                case DataReceived(stream_id=stream_id, data=part, flow_controlled_length=length):
                    requests[stream_id].body += part
                    h2.acknowledge_received_data(length, stream_id)
                case StreamEnded(stream_id=stream_id):
                    self._respond(Stream(sock, h2, stream_id, self.stopped), requests[stream_id])
        if pending := h2.data_to_send():
            sock.sendall(pending)


def scripted(path: str, *scripts: Script) -> contextlib.AbstractContextManager[ScriptedServer]:
    """Serve scripts on a socket until the context exits."""
    return _serving(path, ScriptedServer(list(scripts)))


def scripted_early(path: str, *scripts: Script) -> contextlib.AbstractContextManager[ScriptedServer]:
    """The same, but respond to the headers of a request and do not read its body."""
    return _serving(path, ScriptedServer(list(scripts), early=True))


@contextlib.contextmanager
def _serving(path: str, server: ScriptedServer) -> Iterator[ScriptedServer]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        thread = threading.Thread(target=server.serve, args=(listener,))
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.stop()
            thread.join(20)
