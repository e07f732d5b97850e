"""Calls to a scripted gRPC server, for versions and failures that a real CRI runtime does not show."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from monitor.agent.runtime.api import EngineError, GoneError, NoAnswerError, NotServedError
from monitor.agent.runtime.cri_channel import CriChannel
from monitor.agent.runtime.proto import cri_pb2 as pb

VERSION = pb.VersionResponse(runtime_name="containerd", runtime_version="1.5.9")
LISTED = pb.ListContainersResponse(containers=[pb.Container(id="c1")])

Method = Callable[[bytes, grpc.ServicerContext], bytes]


class _Methods(grpc.GenericRpcHandler):
    def __init__(self, methods: dict[str, Method]) -> None:
        self._methods = methods

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        method = self._methods.get(details.method)
        return grpc.unary_unary_rpc_method_handler(method) if method else None


@contextlib.contextmanager
def serving(directory: Path, methods: dict[str, Method]) -> Iterator[str]:
    """Serve methods by path on a socket in `directory`. Without a handler, gRPC itself answers UNIMPLEMENTED."""
    path = str(directory / "cri.sock")
    server = grpc.server(ThreadPoolExecutor(2), handlers=[_Methods(methods)])
    server.add_insecure_port(f"unix://{path}")
    server.start()
    try:
        yield path
    finally:
        server.stop(0).wait()


def returns(message: pb.VersionResponse | pb.ListContainersResponse) -> Method:
    return lambda _request, _context: message.SerializeToString()


def fails(code: grpc.StatusCode) -> Method:
    return lambda _request, context: context.abort(code, "as scripted")


@pytest.mark.parametrize("package", ["runtime.v1", "runtime.v1alpha2"])
def test_either_version_of_the_interface_is_spoken(package: str, tmp_path: Path) -> None:
    methods = {
        f"/{package}.RuntimeService/Version": returns(VERSION),
        f"/{package}.RuntimeService/ListContainers": returns(LISTED),
    }
    with serving(tmp_path, methods) as path:
        channel = CriChannel(path)
        assert channel.negotiate() == VERSION
        answer = channel.call("RuntimeService/ListContainers", pb.ListContainersRequest(), pb.ListContainersResponse)
    assert answer == LISTED


def test_a_socket_that_speaks_grpc_and_not_cri(tmp_path: Path) -> None:
    with serving(tmp_path, {}) as path, pytest.raises(NotServedError, match=f"{path}: does not serve CRI"):
        CriChannel(path).negotiate()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (grpc.StatusCode.NOT_FOUND, GoneError),
        (grpc.StatusCode.UNAVAILABLE, EngineError),  # containerd while it starts
        (grpc.StatusCode.UNIMPLEMENTED, EngineError),  # one method is missing: still a CRI runtime
        (grpc.StatusCode.DEADLINE_EXCEEDED, EngineError),  # a timeout inside the runtime
        (grpc.StatusCode.UNKNOWN, EngineError),
    ],
)
def test_a_failure_names_socket_method_and_reason(
    code: grpc.StatusCode, error: type[Exception], tmp_path: Path
) -> None:
    with serving(tmp_path, {"/runtime.v1.RuntimeService/ListContainers": fails(code)}) as path:
        with pytest.raises(error) as caught:
            CriChannel(path).call(
                "RuntimeService/ListContainers", pb.ListContainersRequest(), pb.ListContainersResponse
            )
        assert str(caught.value).startswith(f"{path}: /runtime.v1.RuntimeService/ListContainers: {code.name}: ")
        assert not isinstance(caught.value, NoAnswerError)


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Releases a wedged method, at the latest at teardown."""
    event = threading.Event()
    yield event
    event.set()


def wedged(released: threading.Event) -> Method:
    def wait(_request: bytes, _context: grpc.ServicerContext) -> bytes:
        released.wait(60)
        return LISTED.SerializeToString()

    return wait


def test_a_call_with_a_time_limit(tmp_path: Path, released: threading.Event) -> None:
    with serving(tmp_path, {"/runtime.v1.RuntimeService/ContainerStatus": wedged(released)}) as path:
        channel = CriChannel(path)
        request = pb.ContainerStatusRequest()
        with pytest.raises(NoAnswerError, match="DEADLINE_EXCEEDED"):
            channel.call("RuntimeService/ContainerStatus", request, pb.ContainerStatusResponse, timeout=0.1)
        released.set()


def test_a_call_without_a_time_limit_waits_for_as_long_as_somebody_listens(
    tmp_path: Path, released: threading.Event
) -> None:
    with serving(tmp_path, {"/runtime.v1.RuntimeService/ListContainers": wedged(released)}) as path:
        channel = CriChannel(path, check_interval=0.05)
        threading.Timer(0.5, released.set).start()
        answer = channel.call("RuntimeService/ListContainers", pb.ListContainersRequest(), pb.ListContainersResponse)
    assert answer == LISTED


def test_a_call_ends_when_nobody_listens_any_more(tmp_path: Path) -> None:
    """The server accepts but never answers, like a runtime wedged from the start, and then disappears."""
    path = str(tmp_path / "mute.sock")
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(path)
        mute.listen(64)
        threading.Timer(0.5, lambda: mute.shutdown(socket.SHUT_RDWR)).start()
        with pytest.raises(EngineError, match="connection refused"):
            CriChannel(path, check_interval=0.1).negotiate()


def test_nobody_listens(tmp_path: Path) -> None:
    path = str(tmp_path / "left.sock")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    with pytest.raises(EngineError, match="connection refused"):
        CriChannel(path).check()
