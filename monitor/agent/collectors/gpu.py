"""GPUs: what the driver reports about each, and which ones it no longer reports."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import msgspec

from monitor.agent.collectors import AbsentError
from monitor.agent.gpu import DriverMissingError, Gpu, GpuLostError, GpuSession, UnreadableGpu, new_session
from monitor.base.clock import Clock
from monitor.facts import GpuFact, GpuInventory


class GpuCollector:
    """Reads all GPUs. One that stops responding or disappears stays in the inventory as lost."""

    name = "gpu"

    def __init__(self, clock: Clock = time, session: GpuSession | None = None) -> None:
        self._session = session or new_session(clock)
        self._known: dict[str, GpuFact] = {}

    def collect(self) -> GpuInventory:
        """Inventory of GPUs. Raise AbsentError without a driver, GpuDriverError if the driver fails."""
        session = self._session
        try:
            with session.reading():
                facts = [_read(gpu) for gpu in session.gpus]
                known = {uuid: gpu.identity for gpu in session.gpus if (uuid := gpu.identity.uuid) is not None}
                gpus = add_missing(facts, session.unreadable, self._known.values())
        except DriverMissingError as missing:
            raise AbsentError(str(missing)) from missing
        self._known |= known
        return GpuInventory(gpus=gpus, driver_version=session.driver_version, cuda_version=session.cuda_version)


def _read(gpu: Gpu) -> GpuFact:
    try:
        return gpu.read()
    except GpuLostError as lost:
        return msgspec.structs.replace(gpu.identity, lost=True, error=str(lost))


def add_missing(
    read: Iterable[GpuFact], unreadable: Mapping[int, UnreadableGpu], known: Iterable[GpuFact]
) -> tuple[GpuFact, ...]:
    """All GPUs by index: those read, those only counted by the driver, and those known from earlier passes.

    A GPU that is counted but unreadable is taken to be the missing one that had its index.
    """
    facts = list(read)
    present = {fact.uuid for fact in facts}
    missing = [fact for fact in known if fact.uuid not in present]
    for index, gpu in unreadable.items():
        before = next((fact for fact in missing if fact.index == index), None)
        if before is not None:
            missing.remove(before)
        fact = before or GpuFact(index=index)
        facts.append(msgspec.structs.replace(fact, lost=gpu.lost, error=gpu.error))
    facts += [msgspec.structs.replace(fact, lost=True, error="the driver no longer lists this GPU") for fact in missing]
    return tuple(sorted(facts, key=lambda fact: (fact.index, fact.uuid or "")))
