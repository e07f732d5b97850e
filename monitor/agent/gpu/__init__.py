"""GPU drivers: inventory, processes and error events. `nvml` implements these protocols for NVIDIA.

A value that a GPU cannot report (unsupported, not permitted, driver too old) is None. Failures are GpuDriverErrors.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from monitor.base.clock import Clock
from monitor.facts import GpuFact


class GpuDriverError(Exception):
    """The driver returned an error."""


class DriverMissingError(GpuDriverError):
    """The node has no driver, and has had none since the session was created."""


class StaleSessionError(GpuDriverError):
    """The driver was unloaded or replaced: nothing can be read until the session is reopened."""


class GpuLostError(GpuDriverError):
    """The GPU no longer responds."""


class GpuProcess(NamedTuple):
    """A process on a GPU. `mig_uuid` is None on a GPU without MIG instances."""

    pid: int
    kind: str
    memory_bytes: int | None
    mig_uuid: str | None


@dataclass(frozen=True, slots=True)
class UnreadableGpu:
    """A GPU that the driver counts but does not open. One that is merely not permitted is not lost."""

    error: str
    lost: bool


class Gpu(Protocol):
    """One GPU. `identity` has its index, UUID, PCI address, model and serial number. Methods raise GpuLostError."""

    identity: GpuFact

    def read(self) -> GpuFact:
        """Everything the driver reports about the GPU."""
        ...

    def processes(self) -> tuple[GpuProcess, ...] | None:
        """Processes on the GPU; None if the driver does not list them."""
        ...


class GpuXid(NamedTuple):
    """One XID error event."""

    gpu: Gpu
    code: int


class GpuSession(Protocol):
    """A collector's own connection to the driver, used from one thread at a time."""

    @property
    def gpus(self) -> Sequence[Gpu]: ...

    @property
    def unreadable(self) -> Mapping[int, UnreadableGpu]:
        """The other GPUs, by index."""
        ...

    @property
    def driver_version(self) -> str | None: ...

    @property
    def cuda_version(self) -> str | None: ...

    def reading(self) -> AbstractContextManager[None]:
        """Open the session for one pass. Raise DriverMissingError without a driver, GpuDriverError if it fails."""
        ...


class GpuEvents(Protocol):
    """A subscription to error events, used from one thread at a time."""

    @property
    def gpus(self) -> Sequence[Gpu]: ...

    def drain(self) -> list[GpuXid]:
        """Events since the last call, without waiting. Raise as GpuSession.reading does."""
        ...


def new_session(clock: Clock = time) -> GpuSession:
    """Session with this node's driver, not opened yet."""
    from monitor.agent.gpu.nvml import NvmlSession

    return NvmlSession(clock)


def new_events(clock: Clock = time) -> GpuEvents:
    """Subscription to the events of this node's driver, on its own session."""
    from monitor.agent.gpu.nvml import NvmlEvents, NvmlSession

    return NvmlEvents(NvmlSession(clock))


def normalize_pci_address(text: str) -> str:
    """PCI address in the form sysfs uses. Raise ValueError if it is not one.

    NVML writes 00000000:3B:00.0, the kernel log 0000:3b:00, 3b:00 or 0000:3b:00.0: all are 0000:3b:00.0.
    """
    address, _, function = text.partition(".")
    try:
        numbers = [int(part, 16) for part in address.split(":")]
        domain, bus, slot = numbers if len(numbers) == 3 else (0, *numbers)
        unit = int(function or "0")
    except ValueError:
        raise ValueError(f"not a PCI address: {text!r}") from None
    if not (0 <= domain <= 0xFFFF_FFFF and 0 <= bus <= 0xFF and 0 <= slot <= 0x1F and 0 <= unit <= 7):
        raise ValueError(f"not a PCI address: {text!r}")
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{unit}"
