"""What changes all the time about a card: read in every pass, so each call here is paid for every few seconds."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pynvml

from monitor.agent.gpu.nvml.session import Card, Device, Instance
from monitor.facts import GpuFact, MigFact

_MEGAHERTZ = 1_000_000
_UNKNOWN_STATE = pynvml.NVML_PSTATE_UNKNOWN
_SAMPLE = struct.Struct("=QI4x")  # timestamp in microseconds, percent; far cheaper than the binding's attributes
# That a card is idle also lowers its clocks, but nothing holds them down.
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


def read_gauges(card: Card, counters: GpuFact) -> GpuFact:
    """Given a card and what was last read of its counters, return the whole fact. Raise CardLostError, StaleError."""
    utilization = card.ask(pynvml.nvmlDeviceGetUtilizationRates)
    memory = _memory(card)
    power = card.ask(pynvml.nvmlDeviceGetPowerUsage)
    state = card.ask(pynvml.nvmlDeviceGetPerformanceState)
    instances = _instances(card)
    return msgspec.structs.replace(
        counters,
        utilization_ratio=utilization.gpu / 100 if utilization is not None else None,
        utilization_peak_ratio=_peak(card),
        memory_activity_ratio=utilization.memory / 100 if utilization is not None else None,
        memory_total_bytes=memory.total if memory is not None else None,
        memory_used_bytes=memory.used if memory is not None else None,
        temperature_celsius=_temperature(card),
        power_watts=power / 1000 if power is not None else None,
        sm_clock_hertz=_clock(card, pynvml.NVML_CLOCK_SM),
        memory_clock_hertz=_clock(card, pynvml.NVML_CLOCK_MEM),
        throttle_reasons=_throttle_reasons(card),
        performance_state=state if state != _UNKNOWN_STATE else None,
        mig=instances,
        error=card.error or counters.error,
    )


def _memory(device: Device) -> Any:
    """Return the memory as nvidia-smi shows it; drivers before 510 count what they keep for themselves as used."""
    memory = device.ask(pynvml.nvmlDeviceGetMemoryInfo, pynvml.nvmlMemory_v2)
    return memory if memory is not None else device.ask(pynvml.nvmlDeviceGetMemoryInfo)


def _temperature(card: Card) -> float | None:
    celsius = card.ask(pynvml.nvmlDeviceGetTemperatureV, pynvml.NVML_TEMPERATURE_GPU)
    if celsius is None:  # drivers before 570
        celsius = card.ask(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU)
    return float(celsius) if celsius is not None else None


def _clock(card: Card, which: int) -> int | None:
    megahertz = card.ask(pynvml.nvmlDeviceGetClockInfo, which)
    return megahertz * _MEGAHERTZ if megahertz is not None else None


def _throttle_reasons(card: Card) -> tuple[str, ...] | None:
    reasons = card.ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons)
    if reasons is None:  # drivers before 535
        reasons = card.ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    if reasons is None:
        return None
    return tuple(name for bit, name in _THROTTLE_REASONS if reasons & bit)


def _peak(card: Card) -> float | None:
    """Return the highest of the driver's samples since the last one seen; the first time, of all that it has kept."""
    answer = card.ask(_samples, card)
    if answer is None:
        return None
    peak = None
    for timestamp, percent in map(_SAMPLE.unpack, answer[1]):
        card.sampled_until = max(card.sampled_until, timestamp)
        if percent <= 100 and (peak is None or percent > peak):
            peak = percent
    return peak / 100 if peak is not None else None


def _samples(handle: Any, card: Card) -> Any:
    """A call of its own, so that a card that keeps no samples is asked once and not once per timestamp."""
    return pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, card.sampled_until)


def _instances(card: Card) -> tuple[MigFact, ...]:
    facts = [_instance(instance) for instance in card.instances]
    if any(instance.error for instance in card.instances):  # one was destroyed, perhaps others made
        card.find_instances()
        facts = [_instance(instance) for instance in card.instances]
    return tuple(fact for fact in facts if fact is not None)


def _instance(instance: Instance) -> MigFact | None:
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
