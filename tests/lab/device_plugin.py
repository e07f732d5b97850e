"""A device plugin that advertises fake GPUs. It re-registers whenever the kubelet restarts."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from tests.lab.registration import identity, notice_of

LOOK_EVERY = 0.25
REGISTER_LIMIT = 5.0

messages, services = grpc.protos_and_services("tests/lab/device_plugin.proto")


class Plugin(services.DevicePluginServicer):  # type: ignore[misc, name-defined]  # made from the .proto at run time
    """Advertises a constant set of healthy devices."""

    def __init__(self, ids: Sequence[str], when_known: Callable[[], object]) -> None:
        self._ids = ids
        self._when_known = when_known

    def GetDevicePluginOptions(self, request: Any, context: grpc.ServicerContext) -> Any:
        return messages.DevicePluginOptions()

    def ListAndWatch(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        ended = threading.Event()
        context.add_callback(ended.set)
        yield messages.ListAndWatchResponse(devices=[messages.Device(ID=id_, health="Healthy") for id_ in self._ids])
        self._when_known()
        ended.wait()

    def Allocate(self, request: Any, context: grpc.ServicerContext) -> Any:
        answers = [
            messages.ContainerAllocateResponse(envs={"NVIDIA_VISIBLE_DEVICES": ",".join(container.devicesIDs)})
            for container in request.container_requests
        ]
        return messages.AllocateResponse(container_responses=answers)


def serve(socket: Path, plugin: Plugin) -> grpc.Server:
    """A gRPC server for the kubelet at `socket`."""
    socket.unlink(missing_ok=True)
    server = grpc.server(ThreadPoolExecutor(4))
    services.add_DevicePluginServicer_to_server(plugin, server)
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    return server


def register(kubelet: Path, socket: Path, resource: str) -> None:
    """Register the plugin's socket with the kubelet; grpc.RpcError if the kubelet refuses."""
    with grpc.insecure_channel(f"unix://{kubelet}") as channel:
        request = messages.RegisterRequest(version="v1beta1", endpoint=socket.name, resource_name=resource)
        services.RegistrationStub(channel).Register(request, timeout=REGISTER_LIMIT)


def run(kubelet: Path, socket: Path, resource: str, ids: Sequence[str], notice: Path) -> None:
    """Register with the kubelet, leave a marker once it knows the devices, and return when the kubelet is replaced."""
    while (registering_with := identity(kubelet)) is None:
        time.sleep(LOOK_EVERY)
    text = notice_of(os.getpid(), registering_with)
    _server = serve(socket, Plugin(ids, lambda: notice.write_text(text)))  # keep a reference
    registered = False
    while identity(kubelet) == registering_with:
        registered = registered or _try_to_register(kubelet, socket, resource)
        time.sleep(LOOK_EVERY)


def _try_to_register(kubelet: Path, socket: Path, resource: str) -> bool:
    try:
        register(kubelet, socket, resource)
    except grpc.RpcError as error:
        print(f"not registered yet: {error}", flush=True)
        return False
    print(f"registered {resource}", flush=True)
    return True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubelet-socket", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--resource", required=True)
    parser.add_argument("--notice", type=Path, required=True)
    parser.add_argument("ids", nargs="+")
    given = parser.parse_args()
    run(given.kubelet_socket, given.socket, given.resource, given.ids, given.notice)
    # A restarted kubelet has removed our socket and registration: start over by re-executing this process. A second
    # server
    # in this process would lose its socket, because the first one removes the same file when it is finally closed.
    os.execv(sys.executable, sys.orig_argv)


if __name__ == "__main__":
    main()
