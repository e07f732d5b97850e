"""Calls to a CRI runtime by method name: gRPC over a unix socket, without generated service stubs.

Importing this costs 13 MiB of memory (grpc, protobuf), so it is imported where a CRI socket exists and nowhere else.
"""

from __future__ import annotations

import time
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from monitor.agent.runtime.api import EngineError, GoneError, NoAnswerError, NotServedError
from monitor.agent.runtime.dial import dial
from monitor.agent.runtime.proto import cri_pb2 as pb

# containerd before 1.6 and CRI-O before 1.23 serve only the second. What is read of both is the same.
_PACKAGES = ("runtime.v1", "runtime.v1alpha2")
_OPTIONS = (
    ("grpc.max_receive_message_length", 16 << 20),  # as the kubelet: a list may be longer than the usual 4 MiB
    ("grpc.max_reconnect_backoff_ms", 2000),  # a runtime that was restarted is found at the next question
)

Reply = TypeVar("Reply", bound=Message)


class CriChannel:
    """The connection to one runtime. Shared by threads, as gRPC's channels are made to be; it reconnects by itself.

    `look_up_after` is how long a call without a time limit waits before it is looked whether anybody still listens.
    """

    def __init__(self, socket: str, look_up_after: float = 20.0) -> None:
        self._socket = socket
        self._look_up_after = look_up_after
        self._channel = grpc.insecure_channel(f"unix://{socket}", options=_OPTIONS)
        self._package = _PACKAGES[0]

    def check(self) -> None:
        """Raise NotServedError if the socket is gone, EngineError if it is closed to us or has nobody behind it."""
        dial(self._socket).close()

    def meet(self) -> pb.VersionResponse:
        """Return who answers, and find out in which version to ask. Raise NotServedError if nobody speaks CRI here."""
        for package in _PACKAGES:
            try:
                version = self._wait(f"/{package}.RuntimeService/Version", pb.VersionRequest(), pb.VersionResponse)
            except _UnknownMethodError:
                continue
            self._package = package
            return version
        raise NotServedError(f"{self._socket}: does not serve CRI")

    def call(self, method: str, request: Message, reply: type[Reply], timeout: float | None = None) -> Reply:
        """Given a request, return its reply. Raise EngineError if it fails.

        Without a time limit, wait for as long as somebody listens at the socket.
        """
        path = f"/{self._package}.{method}"
        return self._wait(path, request, reply) if timeout is None else self._once(path, request, reply, timeout)

    def _wait(self, path: str, request: Message, reply: type[Reply]) -> Reply:
        while True:
            try:
                return self._once(path, request, reply, self._look_up_after)
            except NoAnswerError:
                self.check()

    def _once(self, path: str, request: Message, reply: type[Reply], timeout: float) -> Reply:
        call = self._channel.unary_unary(
            path, request_serializer=type(request).SerializeToString, response_deserializer=reply.FromString
        )
        began = time.monotonic()
        try:
            # Ready is waited for, because a wedged runtime does not even finish connecting, and that is no failure yet.
            return call(request, timeout=timeout, wait_for_ready=True)
        except grpc.RpcError as error:
            silent = time.monotonic() - began >= timeout  # else it is the runtime that says so, of something inside it
            raise self._explained(path, error, silent) from error

    def _explained(self, path: str, error: grpc.RpcError, silent: bool) -> EngineError:
        code = error.code()
        text = f"{self._socket}: {path}: {code.name}: {error.details()}"
        match code:
            case grpc.StatusCode.UNIMPLEMENTED:
                return _UnknownMethodError(text)
            case grpc.StatusCode.NOT_FOUND:
                return GoneError(text)
            case grpc.StatusCode.DEADLINE_EXCEEDED if silent:
                return NoAnswerError(text)
        return EngineError(text)


class _UnknownMethodError(EngineError):
    """The other end speaks gRPC and does not know this method, or its whole service."""
