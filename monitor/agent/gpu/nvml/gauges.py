"""Gauges of a GPU: read on every pass, so each call here is paid for every few seconds."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pynvml

from monitor.agent.gpu.nvml.device import GpuDevice, MigInstance, NvmlDevice
from monitor.facts import GpuFact, MigFact

_HERTZ_PER_MEGAHERTZ = 1_000_000
_UNKNOWN_STATE = pynvml.NVML_PSTATE_UNKNOWN
_SAMPLE = struct.Struct("=QI4x")  # timestamp in microseconds, percent; far cheaper than the binding's attributes
# Without "GPU idle": that lowers the clocks too, but does not throttle anything.
_THROTTLE_REASONS = (
    (pynvml.nvmlClocksEventReasonApplicationsClocksSetting, "applications_clocks_setting"),
    (pynvml.nvmlClocksEventReasonSwPowerCap, "sw_power_cap"),
    (pynvml.nvmlClocksEventReasonHwSlowdown, "hw_slowdown"),
    (pynvml.nvmlClocksEventReasonSyncBoost, "sync_boost"),
    (pynvml.nvmlClocksEventReasonSwThermalSlowdown, "sw_thermal_slowdown"),
    (pynvml.nvmlClocksEventReasonHwThermalSlowdown, "hw_thermal_slowdown"),
    (pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown, "hw_power_brake_slowdown"),
    (pynvml.nvmlClocksEventReasonDisplayClockSetting, "display_clock_setting"),
)


def read_gauges(gpu: GpuDevice, counters: GpuFact) -> GpuFact:
    """Complete the last read counters with current gauges. Raise GpuLostError, StaleSessionError."""
    utilization = gpu.query(pynvml.nvmlDeviceGetUtilizationRates)
    memory = _memory(gpu)
    power = gpu.query(pynvml.nvmlDeviceGetPowerUsage)
    state = gpu.query(pynvml.nvmlDeviceGetPerformanceState)
    instances = _instances(gpu)
    return msgspec.structs.replace(
        counters,
        utilization_ratio=utilization.gpu / 100 if utilization is not None else None,
        utilization_peak_ratio=_peak(gpu),
        memory_activity_ratio=utilization.memory / 100 if utilization is not None else None,
        memory_total_bytes=memory.total if memory is not None else None,
        memory_used_bytes=memory.used if memory is not None else None,
        temperature_celsius=_temperature(gpu),
        power_watts=power / 1000 if power is not None else None,
        sm_clock_hertz=_clock(gpu, pynvml.NVML_CLOCK_SM),
        memory_clock_hertz=_clock(gpu, pynvml.NVML_CLOCK_MEM),
        throttle_reasons=_throttle_reasons(gpu),
        performance_state=state if state != _UNKNOWN_STATE else None,
        mig=instances,
        error=gpu.error or counters.error,
    )


def _memory(device: NvmlDevice) -> Any:
    """Memory as nvidia-smi shows it; drivers before 510 count their own reserve as used."""
    memory = device.query(pynvml.nvmlDeviceGetMemoryInfo, pynvml.nvmlMemory_v2)
    return memory if memory is not None else device.query(pynvml.nvmlDeviceGetMemoryInfo)


def _temperature(gpu: GpuDevice) -> float | None:
    celsius = gpu.query(pynvml.nvmlDeviceGetTemperatureV, pynvml.NVML_TEMPERATURE_GPU)
    if celsius is None:  # drivers before 570
        celsius = gpu.query(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU)
    return float(celsius) if celsius is not None else None


def _clock(gpu: GpuDevice, which: int) -> int | None:
    megahertz = gpu.query(pynvml.nvmlDeviceGetClockInfo, which)
    return megahertz * _HERTZ_PER_MEGAHERTZ if megahertz is not None else None


def _throttle_reasons(gpu: GpuDevice) -> tuple[str, ...] | None:
    reasons = gpu.query(pynvml.nvmlDeviceGetCurrentClocksEventReasons)
    if reasons is None:  # drivers before 535
        reasons = gpu.query(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    if reasons is None:
        return None
    return tuple(name for bit, name in _THROTTLE_REASONS if reasons & bit)


def _peak(gpu: GpuDevice) -> float | None:
    """Highest utilization sample since the last one read; on the first pass, of all that the driver has."""
    answer = gpu.query(_samples, gpu)
    if answer is None:
        return None
    peak = None
    for timestamp, percent in map(_SAMPLE.unpack, answer[1]):
        gpu.sampled_until = max(gpu.sampled_until, timestamp)
        if percent <= 100 and (peak is None or percent > peak):
            peak = percent
    return peak / 100 if peak is not None else None


def _samples(handle: Any, gpu: GpuDevice) -> Any:
    """A separate call, so that a GPU without samples is remembered as refusing it, whatever the timestamp."""
    return pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, gpu.sampled_until)


def _instances(gpu: GpuDevice) -> tuple[MigFact, ...]:
    facts = [_instance(instance) for instance in gpu.instances]
    if any(instance.error for instance in gpu.instances):  # one was destroyed, others may be new
        gpu.find_instances()
        facts = [_instance(instance) for instance in gpu.instances]
    return tuple(fact for fact in facts if fact is not None)


def _instance(instance: MigInstance) -> MigFact | None:
    if instance.uuid is None or instance.gpu_instance is None or instance.compute_instance is None:
        return None
    memory = _memory(instance)
    return MigFact(
        uuid=instance.uuid,
        gpu_instance=instance.gpu_instance,
        compute_instance=instance.compute_instance,
        profile=instance.profile,
        memory_total_bytes=memory.total if memory is not None else None,
        memory_used_bytes=memory.used if memory is not None else None,
    )
