"""Calls to a CRI runtime by method name: gRPC over a unix socket, without generated service stubs.

Importing this costs 4 MiB of memory (h2, protobuf), so it is imported only if a CRI socket exists.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import Message

from monitor.agent.grpc_client.channel import GrpcChannel
from monitor.agent.grpc_client.status import GrpcConnectError, GrpcError, GrpcStatus, GrpcTimeoutError
from monitor.agent.runtime.api import EngineError, GoneError, NoAnswerError, NotServedError
from monitor.agent.runtime.dial import dial, explain_socket_error
from monitor.agent.runtime.proto import cri_pb2 as pb

# containerd before 1.6 and CRI-O before 1.23 serve only the second. The fields used here are the same in both.
_PACKAGES = ("runtime.v1", "runtime.v1alpha2")

Reply = TypeVar("Reply", bound=Message)


class CriChannel:
    """The connection to one runtime, shared by threads. It reconnects by itself.

    A call without a timeout checks every `check_interval` seconds whether the runtime still listens.
    """

    def __init__(self, socket: str, check_interval: float = 20.0) -> None:
        self._socket = socket
        self._check_interval = check_interval
        self._channel = GrpcChannel(socket)
        self._package = _PACKAGES[0]

    def check(self) -> None:
        """Raise NotServedError if the socket is gone, EngineError if it denies access or nothing listens."""
        dial(self._socket).close()

    def negotiate(self) -> pb.VersionResponse:
        """Version of the runtime; selects the API version to use. Raise NotServedError if it does not serve CRI."""
        for package in _PACKAGES:
            try:
                version = self._wait(f"/{package}.RuntimeService/Version", pb.VersionRequest(), pb.VersionResponse)
            except _UnknownMethodError:
                continue
            self._package = package
            return version
        raise NotServedError(f"{self._socket}: does not serve CRI")

    def call(self, method: str, request: Message, reply: type[Reply], timeout: float | None = None) -> Reply:
        """Reply to a request. Raise EngineError if it fails.

        Without a timeout, wait as long as the runtime listens on the socket.
        """
        path = f"/{self._package}.{method}"
        return self._wait(path, request, reply) if timeout is None else self._once(path, request, reply, timeout)

    def _wait(self, path: str, request: Message, reply: type[Reply]) -> Reply:
        while True:
            try:
                return self._once(path, request, reply, self._check_interval)
            except NoAnswerError:
                self.check()

    def _once(self, path: str, request: Message, reply: type[Reply], timeout: float) -> Reply:
        try:
            # CRI requires that its methods, including the removal of an image, can be repeated.
            return self._channel.call(path, request, reply, timeout)
        except GrpcConnectError as error:
            raise explain_socket_error(self._socket, error.error) from error.error
        except GrpcError as error:
            raise self._translated(path, error) from error

    def _translated(self, path: str, error: GrpcError) -> EngineError:
        text = f"{self._socket}: {path}: {error}"
        if isinstance(error, GrpcTimeoutError):  # not a timeout inside the runtime, which that reports
            return NoAnswerError(text)
        match error.code:
            case GrpcStatus.UNIMPLEMENTED:
                return _UnknownMethodError(text)
            case GrpcStatus.NOT_FOUND:
                return GoneError(text)
        return EngineError(text)


class _UnknownMethodError(EngineError):
    """The server speaks gRPC but does not know this method or its service."""
