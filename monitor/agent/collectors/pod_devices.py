"""Devices that the kubelet has allocated to containers."""

from __future__ import annotations

import os
from collections.abc import Iterable

from monitor.agent.collectors import AbsentError
from monitor.agent.kubelet import Allocation
from monitor.agent.kubelet.checkpoint import CheckpointError, CheckpointFile
from monitor.agent.kubelet.pod_resources import PodResourcesClient
from monitor.agent.settings import Paths
from monitor.facts import PodDeviceFact
from monitor.facts.gpu_drivers import is_gpu_driver

_SOCKET = "pod-resources/kubelet.sock"
_CHECKPOINT = "device-plugins/kubelet_internal_checkpoint"
_UUID_CHARS = len("GPU-") + 36


class PodDevicesCollector:
    """Reads allocations from the kubelet's socket or, without one, from its checkpoint file."""

    name = "pod_devices"

    def __init__(self, paths: Paths, resources: tuple[str, ...], timeout: float = 5.0) -> None:
        """Report resources with one of the prefixes `resources`; wait `timeout` seconds for the kubelet."""
        self._resources = resources
        self._timeout = timeout
        self._socket = os.path.join(paths.kubelet, _SOCKET)
        self._client = PodResourcesClient(self._socket)
        self._checkpoint = CheckpointFile(os.path.join(paths.kubelet, _CHECKPOINT))

    def collect(self) -> tuple[PodDeviceFact, ...]:
        """Every allocated device. Raise AbsentError without a kubelet, PodResourcesError if it does not answer."""
        if _exists(self._socket):
            listed = self._wanted(self._client.allocations(self._timeout))
            return _facts(with_pod_uids(listed, self._checkpoint_if_any()), "pod-resources")
        try:
            return _facts(self._wanted(self._checkpoint.read()), "checkpoint")
        except FileNotFoundError:
            raise AbsentError(f"no kubelet on this node: neither {self._socket} nor {self._checkpoint.path}") from None

    def _wanted(self, allocations: Iterable[Allocation]) -> list[Allocation]:
        return [
            allocation
            for allocation in allocations
            if allocation.resource.startswith(self._resources)
            or (allocation.claim is not None and is_gpu_driver(allocation.resource))
        ]

    def _checkpoint_if_any(self) -> tuple[Allocation, ...]:
        """Allocations from the checkpoint, which only adds pod UIDs to those from the socket; none if unreadable."""
        try:
            return self._checkpoint.read()
        except (OSError, CheckpointError):
            return ()


def with_pod_uids(listed: Iterable[Allocation], checkpoint: Iterable[Allocation]) -> list[Allocation]:
    """Add pod UIDs from the checkpoint to the allocations from the socket.

    They are matched by device and container. A pod that has ended may still be in the checkpoint along with the pod
    that has its device now: then the UID stays unknown.
    """
    uids: dict[tuple[str, str, str], set[str | None]] = {}
    for known in checkpoint:
        uids.setdefault((known.resource, known.device_id, known.container), set()).add(known.pod_uid)
    completed = []
    for allocation in listed:
        candidates = uids.get((allocation.resource, allocation.device_id, allocation.container), set())
        completed.append(allocation._replace(pod_uid=next(iter(candidates))) if len(candidates) == 1 else allocation)
    return completed


def parse_device_id(device_id: str) -> tuple[str | None, int | None]:
    """UUID of the GPU or MIG instance and replica number in a device id; None where it has none.

    Replicas are written `<uuid>::<n>` by NVIDIA's plugin, `<uuid>-<n>` by the vGPU plugins of Volcano and HAMi,
    `<uuid>-_-<n>` by those that share memory.
    """
    uuid, separator, replica = device_id.partition("::")
    if not separator and uuid.startswith(("GPU-", "MIG-")) and uuid[_UUID_CHARS : _UUID_CHARS + 1] == "-":
        uuid, replica = device_id[:_UUID_CHARS], device_id[_UUID_CHARS:].removeprefix("-_").removeprefix("-")
    return (
        uuid if uuid.startswith(("GPU-", "MIG-")) else None,
        int(replica) if replica.isascii() and replica.isdecimal() else None,
    )


def _exists(path: str) -> bool:
    """Whether the path exists. Raise OSError if that cannot be determined."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _facts(allocations: Iterable[Allocation], source: str) -> tuple[PodDeviceFact, ...]:
    return tuple(_fact(allocation, source) for allocation in allocations)


def _fact(allocation: Allocation, source: str) -> PodDeviceFact:
    gpu_uuid, replica = parse_device_id(allocation.device_id)
    return PodDeviceFact(
        resource=allocation.resource,
        device_id=allocation.device_id,
        source=source,
        pod_uid=allocation.pod_uid,
        pod_name=allocation.pod_name,
        namespace=allocation.namespace,
        container=allocation.container,
        gpu_uuid=gpu_uuid,
        replica=replica,
        claim=allocation.claim,
        pool=allocation.pool,
    )
