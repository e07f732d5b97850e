"""Processes on a GPU, as the driver lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml

from monitor.agent.gpu import GpuProcess
from monitor.agent.gpu.nvml.device import GpuDevice

_NO_INSTANCE_CODE = 0xFFFFFFFF
# Newest call first: _v3 came with driver 510. A process on several lists has the kind of the first of them.
_LISTS: tuple[tuple[str, tuple[Callable[..., Any], ...]], ...] = (
    ("mps", (pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2)),
    ("compute", (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2)),
    ("graphics", (pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3, pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2)),
)


def read_processes(gpu: GpuDevice) -> tuple[GpuProcess, ...] | None:
    """Processes on a GPU; None if the driver does not list them. Raise GpuLostError, StaleSessionError."""
    lists = {kind: _first_result(gpu, calls) for kind, calls in _LISTS}
    if lists["compute"] is None:  # the other lists are empty on most GPUs, which says nothing
        return None
    processes: dict[tuple[int, int, int], tuple[str, int | None]] = {}
    for kind, listed in lists.items():
        for process in listed or ():
            key = (process.pid, process.gpuInstanceId, process.computeInstanceId)
            processes.setdefault(key, (kind, process.usedGpuMemory))
    uuids = _instance_uuids(gpu, {key[1:] for key in processes if key[1] != _NO_INSTANCE_CODE})
    return tuple(
        GpuProcess(pid, kind, memory, uuids.get((gpu_instance, compute_instance)))
        for (pid, gpu_instance, compute_instance), (kind, memory) in processes.items()
    )


def _first_result(gpu: GpuDevice, calls: tuple[Callable[..., Any], ...]) -> Any:
    for call in calls:
        if (result := gpu.query(call)) is not None:
            return result
    return None


def _instance_uuids(gpu: GpuDevice, wanted: set[tuple[int, int]]) -> dict[tuple[int | None, int | None], str | None]:
    """UUIDs of the MIG instances, which are listed again if a wanted one is unknown."""
    known = {(i.gpu_instance, i.compute_instance): i.uuid for i in gpu.instances}
    if wanted - known.keys():
        gpu.find_instances()
        known = {(i.gpu_instance, i.compute_instance): i.uuid for i in gpu.instances}
    return known
