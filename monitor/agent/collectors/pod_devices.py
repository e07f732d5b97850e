"""Which devices the kubelet gave to which container."""

from __future__ import annotations

import os
from collections.abc import Iterable

from monitor.agent.collectors import AbsentError
from monitor.agent.kubelet import Allocation
from monitor.agent.kubelet.checkpoint import CheckpointError, CheckpointFile
from monitor.agent.kubelet.pod_resources import list_allocations
from monitor.agent.settings import Paths
from monitor.facts import PodDeviceFact

_SOCKET = "pod-resources/kubelet.sock"
_CHECKPOINT = "device-plugins/kubelet_internal_checkpoint"
_UUID_LENGTH = len("GPU-") + 36


class PodDevicesCollector:
    """Asks the kubelet's socket and, where there is none, its checkpoint file."""

    name = "pod_devices"

    def __init__(self, paths: Paths, resources: tuple[str, ...], timeout: float = 5.0) -> None:
        """Report devices of resources that start with one of `resources`; wait `timeout` seconds for the kubelet."""
        self._resources = resources
        self._timeout = timeout
        self._socket = os.path.join(paths.kubelet, _SOCKET)
        self._checkpoint = CheckpointFile(os.path.join(paths.kubelet, _CHECKPOINT))

    def collect(self) -> tuple[PodDeviceFact, ...]:
        """Return every device in use. Raise AbsentError if there is no kubelet, PodResourcesError if it is stuck."""
        if _exists(self._socket):
            listed = self._wanted(list_allocations(self._socket, self._timeout))
            return _facts(with_pod_uids(listed, self._checkpoint_if_any()), "pod-resources")
        try:
            return _facts(self._wanted(self._checkpoint.read()), "checkpoint")
        except FileNotFoundError:
            raise AbsentError(f"no kubelet here: neither {self._socket} nor {self._checkpoint.path}") from None

    def _wanted(self, allocations: Iterable[Allocation]) -> list[Allocation]:
        return [allocation for allocation in allocations if allocation.resource.startswith(self._resources)]

    def _checkpoint_if_any(self) -> tuple[Allocation, ...]:
        """The file only adds the uids to what the socket says: to be without it is no reason to know nothing."""
        try:
            return self._checkpoint.read()
        except (OSError, CheckpointError):
            return ()


def with_pod_uids(listed: Iterable[Allocation], checkpoint: Iterable[Allocation]) -> list[Allocation]:
    """Given what the socket lists and what the file holds, return the former with the uids that the latter knows.

    The two have device and container in common. A pod that has ended may still be in the file beside the one that got
    its device: then the uid stays unknown.
    """
    uids: dict[tuple[str, str, str], set[str | None]] = {}
    for known in checkpoint:
        uids.setdefault((known.resource, known.device_id, known.container), set()).add(known.pod_uid)
    filled = []
    for allocation in listed:
        found = uids.get((allocation.resource, allocation.device_id, allocation.container), set())
        filled.append(allocation._replace(pod_uid=next(iter(found))) if len(found) == 1 else allocation)
    return filled


def parse_device_id(device_id: str) -> tuple[str | None, int | None]:
    """Given a device id, return the uuid of the card or MIG instance, and which of its replicas this is.

    Either is None when the id does not tell. Replicas are written `<uuid>::<n>` by NVIDIA's plugin, `<uuid>-<n>` by the
    vGPU plugins of Volcano and HAMi, `<uuid>-_-<n>` by those that share memory.
    """
    uuid, separator, replica = device_id.partition("::")
    if not separator and uuid.startswith(("GPU-", "MIG-")) and uuid[_UUID_LENGTH : _UUID_LENGTH + 1] == "-":
        uuid, replica = device_id[:_UUID_LENGTH], device_id[_UUID_LENGTH:].removeprefix("-_").removeprefix("-")
    return (
        uuid if uuid.startswith(("GPU-", "MIG-")) else None,
        int(replica) if replica.isascii() and replica.isdecimal() else None,
    )


def _exists(path: str) -> bool:
    """Tell whether there is such a path. Raise OSError when that may not be seen, which is not the same as "no"."""
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
    )
