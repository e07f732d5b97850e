"""What changes rarely about a card and costs much to read: error counters, modes, limits, MIG instances."""

from __future__ import annotations

import struct
from typing import Any

import pynvml

from monitor.agent.gpu.nvml.session import Card
from monitor.facts import EccFact, GpuFact, NvlinkFact, RetiredPagesFact, RowRemapFact

_FIELD = struct.Struct("=IIqqIIQ")  # id, scope, timestamp, latency, type of the value, return code, value
_INTEGERS = {
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: 0xFFFFFFFF,
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: 0xFFFFFFFFFFFFFFFF,
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: 0xFFFFFFFFFFFFFFFF,
}
_CARD_FIELDS = (
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
# Cards that keep no totals: CRC, replay and recovery per link; since Blackwell only a count of recoveries.
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


def read_counters(card: Card) -> GpuFact:
    """Given a card, return a fact with everything but the gauges. Raise CardLostError, StaleError."""
    action, single_bit, double_bit, pending, links = _fields(card, _CARD_FIELDS)
    limit = card.ask(pynvml.nvmlDeviceGetEnforcedPowerLimit)
    persistence = card.ask(pynvml.nvmlDeviceGetPersistenceMode)
    return GpuFact(
        index=card.index,
        uuid=card.uuid,
        pci_bus_id=card.pci_bus_id,
        model=card.model,
        serial=card.serial,
        power_limit_watts=limit / 1000 if limit is not None else None,
        persistence_mode=bool(persistence) if persistence is not None else None,
        compute_mode=_named(_COMPUTE_MODES, card.ask(pynvml.nvmlDeviceGetComputeMode)),
        ecc=_ecc(card),
        row_remaps=_row_remaps(card),
        retired_pages=_retired_pages(single_bit, double_bit, pending),
        nvlink=_nvlink(card, links or 0),
        pcie_replays=card.ask(pynvml.nvmlDeviceGetPcieReplayCounter),
        recovery_action=_named(_RECOVERY_ACTIONS, action),
        mig_enabled=_mig_enabled(card),
        error=card.error,
    )


def _named(names: dict[int, str], value: int | None) -> str | None:
    """A value newer than this table is still told, as its number."""
    return names.get(value, str(value)) if value is not None else None


def _fields(card: Card, wanted: tuple[Any, ...]) -> list[int | None]:
    """Given fields, or pairs of field and link, return the value of each, all got in one call.

    Asking for one ordinary field more at the end keeps the driver, which looks at the entry behind one that is about
    NVLink, inside what the binding has allocated.
    """
    answer = card.ask(pynvml.nvmlDeviceGetFieldValues, (*wanted, pynvml.NVML_FI_DEV_ECC_CURRENT))
    if answer is None:
        return [None] * len(wanted)
    values: list[int | None] = []
    for _, _, _, _, kind, code, value in _FIELD.iter_unpack(answer):
        mask = _INTEGERS.get(kind) if code == pynvml.NVML_SUCCESS else None
        values.append(value & mask if mask is not None else None)
    return values[:-1]


def _ecc(card: Card) -> EccFact | None:
    mode = card.ask(pynvml.nvmlDeviceGetEccMode)
    if mode is None:
        return None
    if not mode[0]:
        return EccFact(enabled=False)
    corrected, uncorrected = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
    volatile_corrected = _ecc_counts(card, corrected, pynvml.NVML_VOLATILE_ECC)
    volatile_uncorrected = _ecc_counts(card, uncorrected, pynvml.NVML_VOLATILE_ECC)
    aggregate_corrected = _ecc_counts(card, corrected, pynvml.NVML_AGGREGATE_ECC)
    aggregate_uncorrected = _ecc_counts(card, uncorrected, pynvml.NVML_AGGREGATE_ECC)
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


def _ecc_counts(card: Card, kind: int, life: int) -> tuple[int | None, int | None]:
    """Return the errors in SRAM and in DRAM. Before Ampere SRAM is many places: it is the total without the DRAM."""
    dram = card.ask(pynvml.nvmlDeviceGetMemoryErrorCounter, kind, life, pynvml.NVML_MEMORY_LOCATION_DRAM)
    sram = card.ask(pynvml.nvmlDeviceGetMemoryErrorCounter, kind, life, pynvml.NVML_MEMORY_LOCATION_SRAM)
    if sram is None and dram is not None:
        total = card.ask(pynvml.nvmlDeviceGetTotalEccErrors, kind, life)
        sram = max(total - dram, 0) if total is not None else None
    return sram, dram


def _row_remaps(card: Card) -> RowRemapFact | None:
    rows = card.ask(pynvml.nvmlDeviceGetRemappedRows)
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


def _nvlink(card: Card, links: int) -> NvlinkFact | None:
    states = [card.ask(pynvml.nvmlDeviceGetNvLinkState, link) for link in range(links)]
    if all(state is None for state in states):
        return None
    flit, data, replay, recovery = _fields(card, _LINK_TOTALS)
    if flit is None and replay is None:
        flit, replay, recovery, events = (_sum_over_links(card, field, links) for field in _PER_LINK)
        recovery = recovery if recovery is not None else events
    return NvlinkFact(
        links=links,
        active=sum(1 for state in states if state),
        crc_flit_errors=flit,
        crc_data_errors=data,
        replay_errors=replay,
        recovery_errors=recovery,
    )


def _sum_over_links(card: Card, field: int, links: int) -> int | None:
    """Return the sum, of the links that can tell: one that is down may not."""
    known = [value for value in _fields(card, tuple((field, link) for link in range(links))) if value is not None]
    return sum(known) if known else None


def _mig_enabled(card: Card) -> bool | None:
    """Tell whether the card is split, and find its instances."""
    mode = card.ask(pynvml.nvmlDeviceGetMigMode)
    if mode is not None and mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE:
        card.find_instances()
        return True
    card.instances = ()
    return False if mode is not None else None
