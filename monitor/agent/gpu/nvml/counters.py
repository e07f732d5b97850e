"""What rarely changes and is expensive to read: error counters, modes, limits, MIG instances."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pynvml

from monitor.agent.gpu.nvml.device import GpuDevice
from monitor.facts import EccFact, GpuFact, NvlinkFact, RetiredPagesFact, RowRemapFact

_FIELD = struct.Struct("=IIqqIIQ")  # id, scope, timestamp, latency, value type, return code, value
_INTEGERS = {
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: 0xFFFFFFFF,
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: 0xFFFFFFFFFFFFFFFF,
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: 0xFFFFFFFFFFFFFFFF,
}
_GPU_FIELDS = (
    pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION,
    pynvml.NVML_FI_DEV_RETIRED_SBE,
    pynvml.NVML_FI_DEV_RETIRED_DBE,
    pynvml.NVML_FI_DEV_RETIRED_PENDING,
    pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT,
)
_LINK_TOTALS = (
    pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
    pynvml.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
    pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
    pynvml.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
)
# For GPUs without totals: CRC, replay and recovery per link; since Blackwell only a count of recoveries.
_PER_LINK = (
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC,
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY,
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
    pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS,
)
_RECOVERY_ACTIONS = {
    pynvml.NVML_GPU_RECOVERY_ACTION_NONE: "none",
    pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET: "gpu_reset",
    pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT: "node_reboot",
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P: "drain_p2p",
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET: "drain_and_reset",
}
_COMPUTE_MODES = {
    pynvml.NVML_COMPUTEMODE_DEFAULT: "default",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD: "exclusive_thread",
    pynvml.NVML_COMPUTEMODE_PROHIBITED: "prohibited",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive_process",
}


def read_counters(gpu: GpuDevice) -> GpuFact:
    """Identity and everything but the gauges. Raise GpuLostError, StaleSessionError."""
    action, single_bit, double_bit, pending, links = _fields(gpu, _GPU_FIELDS)
    limit = gpu.query(pynvml.nvmlDeviceGetEnforcedPowerLimit)
    persistence = gpu.query(pynvml.nvmlDeviceGetPersistenceMode)
    return msgspec.structs.replace(
        gpu.identity,
        power_limit_watts=limit / 1000 if limit is not None else None,
        persistence_mode=bool(persistence) if persistence is not None else None,
        compute_mode=_named(_COMPUTE_MODES, gpu.query(pynvml.nvmlDeviceGetComputeMode)),
        ecc=_ecc(gpu),
        row_remaps=_row_remaps(gpu),
        retired_pages=_retired_pages(single_bit, double_bit, pending),
        nvlink=_nvlink(gpu, links or 0),
        pcie_replays=gpu.query(pynvml.nvmlDeviceGetPcieReplayCounter),
        recovery_action=_named(_RECOVERY_ACTIONS, action),
        mig_enabled=_mig_enabled(gpu),
        error=gpu.error,
    )


def _named(names: dict[int, str], value: int | None) -> str | None:
    """Name of a value; its number if it is newer than this table."""
    return names.get(value, str(value)) if value is not None else None


def _fields(gpu: GpuDevice, wanted: tuple[Any, ...]) -> list[int | None]:
    """Values of fields, or of pairs of field and link, in one call.

    The driver reads the entry after an NVLink field. An additional ordinary field at the end keeps it within what the
    binding has allocated.
    """
    result = gpu.query(pynvml.nvmlDeviceGetFieldValues, (*wanted, pynvml.NVML_FI_DEV_ECC_CURRENT))
    if result is None:
        return [None] * len(wanted)
    values: list[int | None] = []
    for _, _, _, _, kind, code, value in _FIELD.iter_unpack(result):
        mask = _INTEGERS.get(kind) if code == pynvml.NVML_SUCCESS else None
        values.append(value & mask if mask is not None else None)
    return values[:-1]


def _ecc(gpu: GpuDevice) -> EccFact | None:
    mode = gpu.query(pynvml.nvmlDeviceGetEccMode)
    if mode is None:
        return None
    if not mode[0]:
        return EccFact(enabled=False)
    corrected, uncorrected = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
    volatile_corrected = _ecc_counts(gpu, corrected, pynvml.NVML_VOLATILE_ECC)
    volatile_uncorrected = _ecc_counts(gpu, uncorrected, pynvml.NVML_VOLATILE_ECC)
    aggregate_corrected = _ecc_counts(gpu, corrected, pynvml.NVML_AGGREGATE_ECC)
    aggregate_uncorrected = _ecc_counts(gpu, uncorrected, pynvml.NVML_AGGREGATE_ECC)
    return EccFact(
        enabled=True,
        volatile_corrected_sram=volatile_corrected[0],
        volatile_corrected_dram=volatile_corrected[1],
        volatile_uncorrected_sram=volatile_uncorrected[0],
        volatile_uncorrected_dram=volatile_uncorrected[1],
        aggregate_corrected_sram=aggregate_corrected[0],
        aggregate_corrected_dram=aggregate_corrected[1],
        aggregate_uncorrected_sram=aggregate_uncorrected[0],
        aggregate_uncorrected_dram=aggregate_uncorrected[1],
    )


def _ecc_counts(gpu: GpuDevice, kind: int, lifetime: int) -> tuple[int | None, int | None]:
    """Errors in SRAM and in DRAM. Before Ampere, SRAM is several locations: it is the total minus DRAM."""
    dram = gpu.query(pynvml.nvmlDeviceGetMemoryErrorCounter, kind, lifetime, pynvml.NVML_MEMORY_LOCATION_DRAM)
    sram = gpu.query(pynvml.nvmlDeviceGetMemoryErrorCounter, kind, lifetime, pynvml.NVML_MEMORY_LOCATION_SRAM)
    if sram is None and dram is not None:
        total = gpu.query(pynvml.nvmlDeviceGetTotalEccErrors, kind, lifetime)
        sram = max(total - dram, 0) if total is not None else None
    return sram, dram


def _row_remaps(gpu: GpuDevice) -> RowRemapFact | None:
    rows = gpu.query(pynvml.nvmlDeviceGetRemappedRows)
    if rows is None:
        return None
    corrected, uncorrected, pending, failed = rows
    return RowRemapFact(corrected=corrected, uncorrected=uncorrected, pending=bool(pending), failed=bool(failed))


def _retired_pages(single_bit: int | None, double_bit: int | None, pending: int | None) -> RetiredPagesFact | None:
    if single_bit is None and double_bit is None and pending is None:
        return None
    return RetiredPagesFact(
        single_bit=single_bit, double_bit=double_bit, pending=bool(pending) if pending is not None else None
    )


def _nvlink(gpu: GpuDevice, links: int) -> NvlinkFact | None:
    states = [gpu.query(pynvml.nvmlDeviceGetNvLinkState, link) for link in range(links)]
    if all(state is None for state in states):
        return None
    flit, data, replay, recovery = _fields(gpu, _LINK_TOTALS)
    if flit is None and replay is None:
        flit, replay, recovery, events = (_sum_over_links(gpu, field, links) for field in _PER_LINK)
        recovery = recovery if recovery is not None else events
    return NvlinkFact(
        links=links,
        active=sum(1 for state in states if state),
        crc_flit_errors=flit,
        crc_data_errors=data,
        replay_errors=replay,
        recovery_errors=recovery,
    )


def _sum_over_links(gpu: GpuDevice, field: int, links: int) -> int | None:
    """Sum over the links that report a value: one that is down may not."""
    known = [value for value in _fields(gpu, tuple((field, link) for link in range(links))) if value is not None]
    return sum(known) if known else None


def _mig_enabled(gpu: GpuDevice) -> bool | None:
    """Whether the GPU is in MIG mode; updates its instances."""
    mode = gpu.query(pynvml.nvmlDeviceGetMigMode)
    if mode is not None and mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE:
        gpu.find_instances()
        return True
    gpu.instances = ()
    return False if mode is not None else None
