"""The checkpoint file of the kubelet's device manager.

It has three formats: bare data (before Kubernetes 1.11), data with a checksum and lists of devices (to 1.19), and lists
of devices per NUMA node (1.20 and later). Go writes null for an empty list or map.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from monitor.agent.kubelet import Allocation


class _DeviceEntry(
    msgspec.Struct,
    rename={"pod_uid": "PodUID", "container": "ContainerName", "resource": "ResourceName", "device_ids": "DeviceIDs"},
):
    pod_uid: str
    container: str
    resource: str
    device_ids: list[str] | dict[str, list[str] | None] | None = None


class _CheckpointData(msgspec.Struct, rename={"entries": "PodDeviceEntries"}):
    entries: list[_DeviceEntry] | None = None


class _Checkpoint(_CheckpointData, rename={"entries": "PodDeviceEntries", "data": "Data"}):
    data: _CheckpointData | None = None


class CheckpointError(Exception):
    """The file is not a device manager checkpoint."""


class CheckpointFile:
    """The file at `path`, decoded only when it has changed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._decoder = msgspec.json.Decoder(_Checkpoint)
        self._version: tuple[int, int, int] | None = None
        self._allocations: tuple[Allocation, ...] = ()

    def read(self) -> tuple[Allocation, ...]:
        """All allocated devices. Raise CheckpointError, or OSError, for example if the file does not exist."""
        with open(self.path, "rb") as file:
            stat = os.fstat(file.fileno())
            version = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if version != self._version:
                self._allocations = self._decode(file.read())
                self._version = version
        return self._allocations

    def _decode(self, content: bytes) -> tuple[Allocation, ...]:
        try:
            checkpoint = self._decoder.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CheckpointError(f"{self.path}: {error}") from error
        return tuple(_allocations((checkpoint.data or checkpoint).entries or []))


def _allocations(entries: list[_DeviceEntry]) -> Iterator[Allocation]:
    for entry in entries:
        ids = entry.device_ids or []
        per_node = ids.values() if isinstance(ids, dict) else [ids]
        for device_ids in per_node:
            for device_id in device_ids or []:
                yield Allocation(entry.resource, device_id, entry.container, pod_uid=entry.pod_uid)
