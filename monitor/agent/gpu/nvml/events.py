"""XID events from the driver, from the moment of subscription."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

import pynvml

from monitor.agent.gpu import GpuXid, StaleSessionError
from monitor.agent.gpu.nvml import error_codes
from monitor.agent.gpu.nvml.session import NvmlGpu, NvmlSession

_MAX_EVENTS_PER_DRAIN = 1000  # a GPU that reports without end must not hold up the kernel log


class NvmlEvents:
    """XID events of every GPU of a session, which nothing else may use."""

    def __init__(self, session: NvmlSession) -> None:
        self._session = session
        self._event_set: Any = None
        self._generation = 0
        self._by_handle: dict[int | None, NvmlGpu] = {}

    @property
    def gpus(self) -> tuple[NvmlGpu, ...]:
        return self._session.gpus

    def drain(self) -> list[GpuXid]:
        """Events since the last call, without waiting. Raise as NvmlSession.reading does."""
        with self._session.reading():
            if self._event_set is None or self._generation != self._session.generation:
                self._subscribe()
            events: list[GpuXid] = []
            while len(events) < _MAX_EVENTS_PER_DRAIN and (event := self._next()) is not None:
                gpu = self._by_handle.get(_address(event.device))
                if gpu is not None:
                    events.append(GpuXid(gpu, event.eventData))
            # A GPU that refuses the subscription may recover.
            self._session.suspect = len(self._by_handle) < len(self._session.gpus)
        return events

    def _subscribe(self) -> None:
        self._unsubscribe()
        try:
            self._event_set = pynvml.nvmlEventSetCreate()
        except pynvml.NVMLError as error:
            raise StaleSessionError(f"the NVIDIA driver reports no events: {error}") from None
        self._generation = self._session.generation
        for gpu in self._session.gpus:
            try:
                pynvml.nvmlDeviceRegisterEvents(gpu.handle, pynvml.nvmlEventTypeXidCriticalError, self._event_set)
            except pynvml.NVMLError as error:
                if error.value in error_codes.STALE:
                    raise StaleSessionError(f"the NVIDIA driver was unloaded or replaced: {error}") from None
            else:
                self._by_handle[_address(gpu.handle)] = gpu

    def _next(self) -> Any:
        try:
            return pynvml.nvmlEventSetWait(self._event_set, 0)
        except pynvml.NVMLError as error:
            if error.value in error_codes.STALE:
                raise StaleSessionError(f"the NVIDIA driver was unloaded or replaced: {error}") from None
            if error.value != pynvml.NVML_ERROR_TIMEOUT:
                # One lost GPU makes the whole set fail: the next drain subscribes to the remaining ones.
                self._unsubscribe()
            return None

    def _unsubscribe(self) -> None:
        if self._event_set is not None and self._generation == self._session.generation:
            with suppress(pynvml.NVMLError):  # its driver may be gone, and the set with it
                pynvml.nvmlEventSetFree(self._event_set)
        self._event_set = None
        self._by_handle = {}


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
