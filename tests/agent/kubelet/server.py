"""A server in place of the kubelet. Its responses are encoded by hand, to verify the generated code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc


def field(number: int, value: bytes | str) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    assert len(content) < 128 * 128
    length = bytes([len(content)]) if len(content) < 128 else bytes([len(content) % 128 + 128, len(content) // 128])
    return bytes([number << 3 | 2]) + length + content


def devices(resource: str, *ids: str) -> bytes:
    topology = field(3, field(1, b"\x08\x01"))  # since 1.21
    return field(2, field(1, resource) + b"".join(field(2, device_id) for device_id in ids) + topology)


def claim(namespace: str, name: str, *devices: tuple[str, str, str]) -> bytes:
    """A claim of a container with devices: driver, pool and name (since 1.34)."""
    cdi = field(1, field(1, "k8s.gpu.nvidia.com/claim=7c1e5d5a-gpu-0"))
    given = [cdi + field(2, driver) + field(3, pool) + field(4, device) for driver, pool, device in devices]
    return field(5, field(2, name) + field(3, namespace) + b"".join(field(4, each) for each in given))


def container(name: str, *given: bytes) -> bytes:
    cpu_ids = field(3, b"\x00\x01")  # since 1.21
    return field(3, field(1, name) + b"".join(given) + cpu_ids)


def pod(namespace: str, name: str, *containers: bytes) -> bytes:
    return field(1, field(1, name) + field(2, namespace) + b"".join(containers))


@contextmanager
def kubelet(kubelet_dir: Path, answer: bytes | Callable[[], bytes], *, version: str = "v1") -> Iterator[None]:
    """Serve the PodResources API on the kubelet's socket."""

    def respond(_request: bytes, _context: object) -> bytes:
        return answer if isinstance(answer, bytes) else answer()

    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {"List": grpc.unary_unary_rpc_method_handler(respond)}
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(f"{version}.PodResourcesLister", handlers),)
        )
        server.add_insecure_port(f"unix:{kubelet_dir}/pod-resources/kubelet.sock")
        server.start()
        try:
            yield
        finally:
            server.stop(None).wait(60)
