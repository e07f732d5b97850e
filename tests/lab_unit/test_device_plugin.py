"""The device plugin as a separate process, with a fake kubelet registration service."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.lab.lab import REPOSITORY
from tests.lab.process import Process, spawn, stop
from tests.lab.registration import identity, is_registered, notice_of
from tests.support import wait_until

IDS = ("GPU-a", "GPU-b")
LIMIT = 120


class Place:
    """A directory like the kubelet's, with a path short enough for sockets."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kubelet, self.plugin, self.notice = root / "kubelet.sock", root / "plugin.sock", root / "notice"
        self.registrations: list[bytes] = []

    @contextmanager
    def kubelet_running(self) -> Iterator[None]:
        """Serve registrations; like the real kubelet, it removes existing sockets at start."""
        for path in self.root.glob("*.sock"):
            path.unlink()
        server = grpc.server(ThreadPoolExecutor(2))
        handler: Any = grpc.unary_unary_rpc_method_handler(self._register)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": handler}),)
        )
        server.add_insecure_port(f"unix://{self.kubelet}")
        server.start()
        try:
            yield
        finally:
            server.stop(None).wait()

    def has_registrations(self, count: int) -> bool:
        return len(self.registrations) == count

    def _register(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self.registrations.append(request)
        return b""

    @contextmanager
    def asking(self, method: str, request: bytes) -> Iterator[bytes]:
        """The plugin's first response, on a stream that stays open."""
        with grpc.insecure_channel(f"unix://{self.plugin}") as channel:
            call: Any = channel.unary_stream(f"/v1beta1.DevicePlugin/{method}")
            answers = call(request, timeout=LIMIT)
            yield next(answers)
            answers.cancel()


@pytest.fixture
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="gpuwarden-") as name:
        yield Place(Path(name))


@pytest.fixture
def plugin(place: Place) -> Iterator[Process]:
    options = [f"--kubelet-socket={place.kubelet}", f"--socket={place.plugin}", f"--notice={place.notice}"]
    command = [sys.executable, "-m", "tests.lab.device_plugin", *options, "--resource=nvidia.com/gpu", *IDS]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
    process = spawn("device-plugin", command, environment, place.root / "log")
    yield process
    assert stop([process], 5) == []


def test_it_registers_lists_its_devices_and_allocates_them(place: Place, plugin: Process) -> None:
    with place.kubelet_running():
        wait_until(lambda: place.registrations, LIMIT, "the registration")
        assert b"v1beta1" in place.registrations[0]
        assert b"plugin.sock" in place.registrations[0]
        assert b"nvidia.com/gpu" in place.registrations[0]
        with place.asking("ListAndWatch", b"") as listed:
            assert listed == b"".join(b"\n\x10\n\x05" + id_.encode() + b"\x12\x07Healthy" for id_ in IDS)
            wait_until(lambda: is_registered(place.notice, plugin.pid, place.kubelet), LIMIT, "the notice")
        one_container_with_both = b"\n\x0e" + b"".join(b"\n\x05" + id_.encode() for id_ in IDS)
        with place.asking("Allocate", one_container_with_both) as answer:
            assert b"NVIDIA_VISIBLE_DEVICES\x12\x0bGPU-a,GPU-b" in answer


def test_it_registers_again_with_every_new_kubelet(place: Place, plugin: Process) -> None:
    for count in (1, 2, 3):
        with place.kubelet_running():
            wait_until(partial(place.has_registrations, count), LIMIT, f"registration {count}")
            with place.asking("ListAndWatch", b"") as listed:
                assert b"GPU-a" in listed


def test_a_notice_is_of_one_plugin_and_one_kubelet(tmp_path: Path) -> None:
    notice, socket = tmp_path / "notice", tmp_path / "socket"
    assert not is_registered(notice, 7, socket)
    socket.touch()
    known = identity(socket)
    assert known is not None
    assert not is_registered(notice, 7, socket)
    notice.write_text(notice_of(7, known))
    assert is_registered(notice, 7, socket)
    assert not is_registered(notice, 8, socket)
    os.utime(socket, (1, 1))
    assert not is_registered(notice, 7, socket)
