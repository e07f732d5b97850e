"""Who holds a card, as far as the driver knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pynvml

from monitor.agent.gpu.nvml.session import Card

_NO_INSTANCE = 0xFFFFFFFF
# Newest first: _v3 came with driver 510. A process that is on several lists is what the first of them says.
_LISTS: tuple[tuple[str, tuple[Callable[..., Any], ...]], ...] = (
    ("mps", (pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2)),
    ("compute", (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2)),
    ("graphics", (pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3, pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2)),
)


class CardProcess(NamedTuple):
    """A process on a card. `mig_uuid` is None on a card that is not split."""

    pid: int
    kind: str
    memory_bytes: int | None
    mig_uuid: str | None


def read_processes(card: Card) -> tuple[CardProcess, ...] | None:
    """Given a card, return its processes, or None when the driver does not tell. Raise CardLostError, StaleError."""
    lists = {kind: _first_answer(card, calls) for kind, calls in _LISTS}
    if lists["compute"] is None:  # the others are empty on most cards, which says nothing
        return None
    found: dict[tuple[int, int, int], tuple[str, int | None]] = {}
    for kind, listed in lists.items():
        for process in listed or ():
            place = (process.pid, process.gpuInstanceId, process.computeInstanceId)
            found.setdefault(place, (kind, process.usedGpuMemory))
    uuids = _instance_uuids(card, {place[1:] for place in found if place[1] != _NO_INSTANCE})
    return tuple(
        CardProcess(pid, kind, memory, uuids.get((gpu_instance, compute_instance)))
        for (pid, gpu_instance, compute_instance), (kind, memory) in found.items()
    )


def _first_answer(card: Card, calls: tuple[Callable[..., Any], ...]) -> Any:
    for call in calls:
        if (answer := card.ask(call)) is not None:
            return answer
    return None


def _instance_uuids(card: Card, wanted: set[tuple[int, int]]) -> dict[tuple[int | None, int | None], str | None]:
    """Return the uuids of these instances, looking for instances anew if one of them was made since."""
    known = {(i.gpu_instance, i.compute_instance): i.uuid for i in card.instances}
    if wanted - known.keys():
        card.find_instances()
        known = {(i.gpu_instance, i.compute_instance): i.uuid for i in card.instances}
    return known
