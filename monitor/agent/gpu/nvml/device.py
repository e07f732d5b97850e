"""NVML handles: GPUs and MIG instances, with what is remembered about each between passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml

from monitor.agent.gpu import GpuLostError, StaleSessionError, normalize_pci_address
from monitor.agent.gpu.nvml import error_codes
from monitor.facts import GpuFact


class NvmlDevice:
    """Anything with a handle: a GPU or a MIG instance."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.error: str | None = None
        self._refused: set[tuple[Any, ...]] = set()

    def query(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Result of a call of the binding; None without one. Raise GpuLostError or StaleSessionError.

        A refused call is not repeated in this session. An unspecific error is stored in `error`.
        """
        key = (call, arguments)
        if key in self._refused:
            return None
        try:
            return call(self.handle, *arguments)
        except pynvml.NVMLError as error:
            self._handle_error(key, error)
        except UnicodeDecodeError:  # the name or serial number of a broken GPU
            self.error = f"{call.__name__}: not valid text"
        return None

    def _handle_error(self, key: tuple[Any, ...], error: Any) -> None:
        if error.value in error_codes.REFUSED:
            self._refused.add(key)
        elif error.value in error_codes.LOST:
            raise GpuLostError(str(error)) from None
        elif error.value in error_codes.STALE:
            raise StaleSessionError(f"the NVIDIA driver was unloaded or replaced: {error}") from None
        elif error.value not in error_codes.EMPTY:
            self.error = f"{key[0].__name__}: {error}"


class MigInstance(NvmlDevice):
    """A MIG instance."""

    def __init__(self, handle: Any) -> None:
        super().__init__(handle)
        self.uuid: str | None = self.query(pynvml.nvmlDeviceGetUUID)
        self.gpu_instance: int | None = self.query(pynvml.nvmlDeviceGetGpuInstanceId)
        self.compute_instance: int | None = self.query(pynvml.nvmlDeviceGetComputeInstanceId)
        name = self.query(pynvml.nvmlDeviceGetName) or ""  # "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
        self.profile: str | None = name.rpartition(" MIG ")[2] if " MIG " in name else None


class GpuDevice(NvmlDevice):
    """A GPU, with its constant properties and what is remembered between passes."""

    def __init__(self, index: int, handle: Any) -> None:
        super().__init__(handle)
        pci = self.query(pynvml.nvmlDeviceGetPciInfo)
        self.identity = GpuFact(
            index=index,
            uuid=self.query(pynvml.nvmlDeviceGetUUID),
            model=self.query(pynvml.nvmlDeviceGetName),
            serial=self.query(pynvml.nvmlDeviceGetSerial),
            pci_bus_id=normalize_pci_address(pci.busId) if pci is not None else None,
        )
        self.lost = False
        self.sampled_until = 0  # driver timestamp of the newest utilization sample read
        self.instances: tuple[MigInstance, ...] = ()

    def query(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return super().query(call, *arguments)
        except GpuLostError:
            self.lost = True
            raise

    def find_instances(self) -> None:
        """Update the list of MIG instances."""
        indices = range(self.query(pynvml.nvmlDeviceGetMaxMigDeviceCount) or 0)
        handles = [self.query(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, index) for index in indices]
        instances = [MigInstance(handle) for handle in handles if handle is not None]
        self.instances = tuple(instance for instance in instances if instance.uuid is not None)
