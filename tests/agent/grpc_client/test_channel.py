"""Calls to a real gRPC server."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from monitor.agent.grpc_client.channel import GrpcChannel
from monitor.agent.grpc_client.status import GrpcError, GrpcStatus, GrpcStatusError, GrpcTimeoutError
from monitor.agent.runtime.proto import cri_pb2 as pb

Method = Callable[[bytes, grpc.ServicerContext], bytes]
THREADS = 8


@contextlib.contextmanager
def serving(path: str, **methods: Method) -> Iterator[None]:
    """Serve methods of a service `s` on a socket."""
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()
    }
    options = (("grpc.max_receive_message_length", 64 << 20),)
    with ThreadPoolExecutor(2 * THREADS) as pool:
        server = grpc.server(pool, options=options)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", handlers),))
        server.add_insecure_port(f"unix://{path}")
        server.start()
        try:
            yield
        finally:
            server.stop(0).wait(60)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s")


def image(name: str) -> pb.ImageSpec:
    return pb.ImageSpec(image=name)


def echo(request: bytes, _context: grpc.ServicerContext) -> bytes:
    return request


def ask(channel: GrpcChannel, method: str, request: pb.ImageSpec, timeout: float = 60.0) -> pb.ImageSpec:
    return channel.call(f"/s/{method}", request, pb.ImageSpec, timeout)


@pytest.mark.parametrize("size", [0, 1, 16_379, 16_380, 65_530, 200_000, 12_000_000])
def test_messages_of_any_size_both_ways(size: int, path: str) -> None:
    with serving(path, echo=echo):
        channel = GrpcChannel(path)
        for _ in range(2):  # the second on the windows that the first left
            assert ask(channel, "echo", image("x" * size)) == image("x" * size)


def test_a_message_beyond_the_limit(path: str) -> None:
    with serving(path, echo=echo):
        channel = GrpcChannel(path, max_message_bytes=1000)
        with pytest.raises(GrpcError, match=r"RESOURCE_EXHAUSTED: the response has .* bytes, more than 1000"):
            ask(channel, "echo", image("x" * 3_000_000))
        assert ask(channel, "echo", image("x")) == image("x")


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_every_status(code: grpc.StatusCode, path: str) -> None:
    def fails(_request: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(code, "50 % of 镜像\n")

    with serving(path, fails=fails), pytest.raises(GrpcStatusError) as caught:
        ask(GrpcChannel(path), "fails", image(""))
    assert caught.value.code.name == code.name
    assert caught.value.code == code.value[0]
    assert caught.value.details == "50 % of 镜像\n"


def test_an_unknown_method(path: str) -> None:
    with serving(path), pytest.raises(GrpcStatusError) as caught:
        ask(GrpcChannel(path), "missing", image(""))
    assert caught.value.code is GrpcStatus.UNIMPLEMENTED


def test_metadata(path: str) -> None:
    def namespace(_request: bytes, context: grpc.ServicerContext) -> bytes:
        return image(str(dict(context.invocation_metadata())["containerd-namespace"])).SerializeToString()

    with serving(path, namespace=namespace):
        metadata = (("containerd-namespace", "k8s.io"),)
        reply = GrpcChannel(path).call("/s/namespace", image(""), pb.ImageSpec, 60.0, metadata=metadata)
    assert reply == image("k8s.io")


def test_threads_share_a_channel_and_one_that_waits_delays_no_other(path: str) -> None:
    released, waiting = threading.Event(), threading.Event()

    def wedged(request: bytes, _context: grpc.ServicerContext) -> bytes:
        waiting.set()
        released.wait(60)
        return request

    with serving(path, echo=echo, wedged=wedged), ThreadPoolExecutor(THREADS) as pool:
        channel = GrpcChannel(path)
        slow = pool.submit(ask, channel, "wedged", image("slow"))
        assert waiting.wait(60)
        names = [f"image-{number}" * (1 + 1000 * (number % 7)) for number in range(200)]
        replies = list(pool.map(lambda name: ask(channel, "echo", image(name)).image, names))
        assert not slow.done()
        released.set()
        assert slow.result(60) == image("slow")
    assert replies == names


def test_a_call_that_is_not_answered_in_time_leaves_the_channel_usable(path: str) -> None:
    released = threading.Event()

    def wedged(request: bytes, _context: grpc.ServicerContext) -> bytes:
        released.wait(60)
        return request

    with serving(path, echo=echo, wedged=wedged):
        channel = GrpcChannel(path)
        with pytest.raises(GrpcTimeoutError):
            ask(channel, "wedged", image("late"), timeout=0.2)
        released.set()
        assert ask(channel, "echo", image("next")) == image("next")


def test_a_server_that_is_restarted(path: str) -> None:
    channel = GrpcChannel(path)
    for number in range(3):
        with serving(path, echo=echo):
            assert ask(channel, "echo", image(str(number))) == image(str(number))


def test_a_long_life_neither_grows_nor_leaks(path: str) -> None:
    with serving(path, echo=echo):
        channel = GrpcChannel(path)
        ask(channel, "echo", image("x"))
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(200):
            ask(channel, "echo", image("x"))
        assert len(os.listdir("/proc/self/fd")) <= before
        assert channel._idle is not None
        assert len(channel._idle._session._h2._closed_streams) <= 16
