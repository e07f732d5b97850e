"""NVML sessions: initialisation, GPU discovery, and both again after the driver was replaced.

Each collector has its own session, and no lock is shared between them, so a collector that hangs in the driver blocks
no other. The driver counts initialisations and forgets old GPUs only when the last session is closed. A session that
finds its driver stale therefore stays closed until its next pass instead of reopening at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pynvml

from monitor.agent.gpu import (
    DriverMissingError,
    GpuDriverError,
    GpuLostError,
    GpuProcess,
    StaleSessionError,
    UnreadableGpu,
)
from monitor.agent.gpu.nvml import error_codes
from monitor.agent.gpu.nvml.counters import read_counters
from monitor.agent.gpu.nvml.device import GpuDevice
from monitor.agent.gpu.nvml.gauges import read_gauges
from monitor.agent.gpu.nvml.processes import read_processes
from monitor.base.clock import Clock
from monitor.facts import GpuFact

# A session with a failing GPU is reopened when the wall clock passes a multiple of this, to find out whether the GPU is
# back. All sessions are thus closed at the same moment, which makes the driver rescan.
REOPEN_SECONDS = 60
# Error counters, modes and limits are expensive to read and change rarely.
COUNTERS_MAX_AGE_SECONDS = 60.0


class NvmlGpu(GpuDevice):
    """A GPU of an open session."""

    def __init__(self, index: int, handle: Any, clock: Clock) -> None:
        super().__init__(index, handle)
        self._clock = clock
        self._counters: tuple[float, GpuFact] | None = None  # when they were read (monotonic), and their values

    def read(self) -> GpuFact:
        now = self._clock.monotonic()
        if self._counters is None or now - self._counters[0] >= COUNTERS_MAX_AGE_SECONDS:
            self._counters = (now, read_counters(self))
        return read_gauges(self, self._counters[1])

    def processes(self) -> tuple[GpuProcess, ...] | None:
        return read_processes(self)


class NvmlSession:
    """The driver as one collector sees it. `suspect` requests a reopening in case the driver has recovered."""

    def __init__(self, clock: Clock = time) -> None:
        self.gpus: tuple[NvmlGpu, ...] = ()
        self.unreadable: dict[int, UnreadableGpu] = {}
        self.driver_version: str | None = None
        self.cuda_version: str | None = None
        self.generation = 0  # number of times it was opened: anything created in another generation is invalid
        self.suspect = False
        self._clock = clock
        self._is_open = False
        self._opened_at = 0.0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Open the session for one pass, and close it if the next pass has to start afresh.

        Raise DriverMissingError if the node has no driver, GpuDriverError if the driver does not work.
        """
        self._open()
        self.suspect = False
        for gpu in self.gpus:
            gpu.error, gpu.lost = None, False
        try:
            yield
        except StaleSessionError:
            self.close()
            raise
        finally:
            if self._has_failures() and self._clock.time() // REOPEN_SECONDS != self._opened_at // REOPEN_SECONDS:
                self.close()

    def close(self) -> None:
        """Release the driver. The next pass reopens the session."""
        if self._is_open:
            self._is_open = False
            self.gpus, self.unreadable = (), {}
            _call_or_none(pynvml.nvmlShutdown)

    def _open(self) -> None:
        if self._is_open:
            return
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            # A driver that has disappeared is a fault, not a node without GPUs.
            if error.value in error_codes.MISSING and not self.generation:
                raise DriverMissingError(f"no NVIDIA driver on this node ({error})") from None
            raise GpuDriverError(f"the NVIDIA driver does not start: {error}") from None
        self._is_open = True
        self._opened_at = self._clock.time()
        try:
            self._find_gpus()
        except (pynvml.NVMLError, StaleSessionError) as error:
            self.close()
            raise GpuDriverError(f"the NVIDIA driver does not list its GPUs: {error}") from None
        self.generation += 1

    def _find_gpus(self) -> None:
        gpus = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                gpus.append(NvmlGpu(index, pynvml.nvmlDeviceGetHandleByIndex(index), self._clock))
            except GpuLostError as error:
                self.unreadable[index] = UnreadableGpu(str(error), lost=True)
            except pynvml.NVMLError as error:
                if error.value in error_codes.STALE:
                    raise
                self.unreadable[index] = UnreadableGpu(str(error), error.value != pynvml.NVML_ERROR_NO_PERMISSION)
        self.gpus = tuple(gpus)
        self.driver_version = _call_or_none(pynvml.nvmlSystemGetDriverVersion)
        cuda = _call_or_none(pynvml.nvmlSystemGetCudaDriverVersion)
        self.cuda_version = f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None

    def _has_failures(self) -> bool:
        lost = any(gpu.lost for gpu in self.unreadable.values())
        return lost or self.suspect or any(gpu.lost or gpu.error for gpu in self.gpus)


def _call_or_none(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except pynvml.NVMLError:
        return None
