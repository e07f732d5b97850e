"""Unary calls to the server of a unix socket, from several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from monitor.agent.grpc_client.connection import GrpcCall, GrpcConnection
from monitor.agent.grpc_client.status import ConnectionLostError, GrpcError, GrpcStatus, GrpcStatusError

MAX_MESSAGE_BYTES = 16 * 1024 * 1024  # the kubelet's own limit: a list may exceed the usual 4 MiB

Reply = TypeVar("Reply", bound=Message)


class GrpcChannel:
    """Calls to one server. It connects when needed and keeps the connection.

    A connection serves one call at a time. Calls of several threads use a connection each, so that one which is never
    answered does not delay another; of idle connections one is kept.
    """

    def __init__(self, socket: str, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._socket = socket
        self._max_message_bytes = max_message_bytes
        self._lock = threading.Lock()
        self._idle: GrpcConnection | None = None

    def call(
        self,
        path: str,
        request: Message,
        reply: type[Reply],
        timeout: float,
        *,
        metadata: Sequence[tuple[str, str]] = (),
        repeatable: bool = True,
    ) -> Reply:
        """Reply of the server within `timeout` seconds. Raise GrpcError.

        A call whose connection is lost is repeated once; unless it is `repeatable`, only if the server has not seen it.
        """
        call = GrpcCall(
            path, request.SerializeToString(), metadata, self._max_message_bytes, timeout, time.monotonic() + timeout
        )
        try:
            message = self._exchange(call, self._take_idle())
        except ConnectionLostError as error:
            if not (repeatable or error.unprocessed):
                raise
            message = self._exchange(call, None)
        try:
            return reply.FromString(message)
        except DecodeError as error:
            raise GrpcError(GrpcStatus.INTERNAL, f"the response cannot be decoded: {error}") from error

    def close(self) -> None:
        """Close the idle connection. The channel remains usable."""
        connection = self._take_idle()
        if connection is not None:
            connection.close()

    def _exchange(self, call: GrpcCall, idle: GrpcConnection | None) -> bytes:
        """Message of the response, on an idle connection or a new one."""
        connection = idle or GrpcConnection(self._socket, call)
        try:
            message = connection.unary(call)
        except GrpcStatusError:
            self._keep(connection)
            raise
        except BaseException:  # the connection may still deliver the response to this call
            connection.close()
            raise
        self._keep(connection)
        return message

    def _take_idle(self) -> GrpcConnection | None:
        with self._lock:
            connection, self._idle = self._idle, None
        if connection is None or connection.is_usable():
            return connection
        connection.close()
        return None

    def _keep(self, connection: GrpcConnection) -> None:
        with self._lock:
            surplus, self._idle = self._idle, connection
        if surplus is not None:
            surplus.close()
