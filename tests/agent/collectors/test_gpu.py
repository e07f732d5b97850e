"""The GPU collector: lost GPUs, replaced drivers, hanging drivers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import msgspec
import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.gpu import GpuCollector, add_missing
from monitor.agent.collectors.gpu_processes import GpuProcessesCollector
from monitor.agent.gpu import DriverMissingError, GpuDriverError, GpuLostError, GpuProcess, UnreadableGpu
from monitor.agent.gpu.nvml.session import COUNTERS_MAX_AGE_SECONDS
from monitor.agent.runner import CollectorWorker
from monitor.agent.settings import CollectorSchedule
from monitor.facts import GpuFact, GpuInventory
from tests.nvml import InProcessNvml
from tests.support import wait_until
from tests.support.clock import FakeClock

pytest_plugins = ["tests.nvml.fixtures"]


def identity(fact: GpuFact) -> tuple[object, ...]:
    return fact.index, fact.uuid, fact.pci_bus_id, fact.model, fact.serial


def test_all_cards_in_order(nvml: InProcessNvml) -> None:
    nvml.gpus(64)
    for index in range(64):
        nvml.gpu(index, util=index)
    inventory = GpuCollector().collect()
    assert [gpu.utilization_ratio for gpu in inventory.gpus] == [index / 100 for index in range(64)]
    assert (inventory.driver_version, inventory.cuda_version) == ("535.104.05", "12.2")


def test_a_card_that_is_lost_stays_and_the_others_are_read(nvml: InProcessNvml) -> None:
    collector = GpuCollector()
    before = collector.collect()
    nvml.lose(3)
    nvml.gpu(4, util=44)
    after = collector.collect()
    assert [gpu.lost for gpu in after.gpus] == [index == 3 for index in range(8)]
    assert [identity(gpu) for gpu in after.gpus] == [identity(gpu) for gpu in before.gpus]
    assert (after.gpus[3].error, after.gpus[3].memory_used_bytes) == ("GPU is lost", None)
    assert after.gpus[4].utilization_ratio == 0.44
    nvml.find(3)
    assert not any(gpu.lost for gpu in collector.collect().gpus)


def test_a_card_lost_before_the_agent_was_started(nvml: InProcessNvml) -> None:
    nvml.lose(3)
    gpus = GpuCollector().collect().gpus
    assert gpus[3] == GpuFact(index=3, lost=True, error="GPU is lost")
    assert [gpu.index for gpu in gpus] == list(range(8))


@pytest.mark.parametrize("how", ["lost", "removed"])
def test_a_lost_card_is_still_known_after_the_driver_was_replaced(nvml: InProcessNvml, how: str) -> None:
    collector = GpuCollector()
    before = collector.collect().gpus[3]
    if how == "lost":
        nvml.lose(3)
    else:
        nvml.remove(3)
    nvml.reload_driver()
    with pytest.raises(GpuDriverError):
        collector.collect()
    gpus = collector.collect().gpus
    lost = [gpu for gpu in gpus if gpu.lost]
    assert [identity(gpu) for gpu in lost] == [identity(before)]
    assert lost[0].error == {"lost": "GPU is lost", "removed": "the driver no longer lists this GPU"}[how]
    assert len(gpus) == 8


A = GpuFact(index=0, uuid="A", lost=True)
B = GpuFact(index=1, uuid="B", lost=True)
LOST_B = GpuFact(index=1, uuid="B", lost=True, error="gone")
UNLISTED_B = GpuFact(index=1, uuid="B", lost=True, error="the driver no longer lists this GPU")
HERE_A = GpuFact(index=0, uuid="A")
MISSING: list[tuple[str, list[GpuFact], dict[int, UnreadableGpu], list[GpuFact], list[GpuFact]]] = [
    ("all here", [HERE_A], {}, [A], [HERE_A]),
    ("counted, seen before", [HERE_A], {1: UnreadableGpu("gone", lost=True)}, [A, B], [HERE_A, LOST_B]),
    (
        "counted, never seen",
        [HERE_A],
        {1: UnreadableGpu("gone", lost=True)},
        [A],
        [HERE_A, GpuFact(index=1, lost=True, error="gone")],
    ),
    ("not even counted", [HERE_A], {}, [A, B], [HERE_A, UNLISTED_B]),
    (
        "index taken by another GPU",
        [HERE_A, GpuFact(index=1, uuid="C")],
        {},
        [A, B],
        [HERE_A, UNLISTED_B, GpuFact(index=1, uuid="C")],
    ),
    (
        "not permitted is not lost",
        [],
        {0: UnreadableGpu("no", lost=False)},
        [],
        [GpuFact(index=0, error="no")],
    ),
]


@pytest.mark.parametrize(
    ("read", "unreadable", "known", "expect"), [row[1:] for row in MISSING], ids=[row[0] for row in MISSING]
)
def test_cards_that_are_missing(
    read: list[GpuFact], unreadable: dict[int, UnreadableGpu], known: list[GpuFact], expect: list[GpuFact]
) -> None:
    assert add_missing(read, unreadable, known) == tuple(expect)


def test_counters_are_read_once_a_minute_and_gauges_every_time(nvml: InProcessNvml) -> None:
    clock = FakeClock()
    collector = GpuCollector(clock)
    collector.collect()
    nvml.gpu(0, volatile_corrected_dram=5, util=70)
    asked = nvml.calls("nvmlDeviceGetMemoryErrorCounter")
    clock.advance(COUNTERS_MAX_AGE_SECONDS - 1)
    gpu = collector.collect().gpus[0]
    assert gpu.ecc is not None
    assert (gpu.utilization_ratio, gpu.ecc.volatile_corrected_dram) == (0.7, 0)
    assert nvml.calls("nvmlDeviceGetMemoryErrorCounter") == asked
    clock.advance(1)
    gpu = collector.collect().gpus[0]
    assert gpu.ecc is not None
    assert gpu.ecc.volatile_corrected_dram == 5


def test_a_node_without_driver_is_no_fault_and_one_whose_driver_went_is(nvml: InProcessNvml) -> None:
    nvml.unload_driver()
    collector = GpuCollector()
    with pytest.raises(AbsentError, match="no NVIDIA driver on this node"):
        collector.collect()
    nvml.load_driver()
    assert len(collector.collect().gpus) == 8
    nvml.unload_driver()
    for _ in range(2):
        with pytest.raises(GpuDriverError):
            collector.collect()
    nvml.load_driver()
    assert len(collector.collect().gpus) == 8


@contextmanager
def running(*workers: CollectorWorker) -> Iterator[None]:
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.stop(timeout=60)  # or the next test would see its last pass


def test_a_hang_in_the_driver_holds_up_only_who_is_in_it(nvml: InProcessNvml) -> None:
    schedule = CollectorSchedule(enabled=True, interval=0.02, limit=0.2)
    gpu = CollectorWorker(GpuCollector(), schedule)
    processes = CollectorWorker(GpuProcessesCollector("/proc"), schedule)
    with running(gpu, processes):
        wait_until(lambda: gpu.fresh() is not None and processes.fresh() is not None, 30, "both collectors read")
        nvml.hang("nvmlDeviceGetUtilizationRates")
        try:
            wait_until(lambda: gpu.fact().hung_since is not None, 30, "the hang is noticed")
            runs = processes.fact().runs
            wait_until(lambda: processes.fact().runs > runs + 3, 30, "the other collector carries on")
            wait_until(lambda: gpu.fresh() is None, 30, "the reading from before the hang expires")
        finally:
            nvml.release()
        wait_until(lambda: gpu.fact().hung_since is None and gpu.fresh() is not None, 30, "it recovers by itself")


def test_an_inventory_survives_the_wire(nvml: InProcessNvml) -> None:
    nvml.gpu(0, links=18, retired_known=1)
    nvml.mig(1, 1, 0, "3g.40gb", total=1 << 30)
    inventory = GpuCollector().collect()
    assert msgspec.json.decode(msgspec.json.encode(inventory), type=GpuInventory) == inventory


class OtherGpu:
    """A GPU of a driver other than NVML."""

    def __init__(self, identity: GpuFact, *, lost: bool = False) -> None:
        self.identity = identity
        self.lost = lost

    def read(self) -> GpuFact:
        if self.lost:
            raise GpuLostError("off the bus")
        return msgspec.structs.replace(self.identity, utilization_ratio=0.5)

    def processes(self) -> tuple[GpuProcess, ...] | None:
        return None if self.lost else (GpuProcess(7, "compute", 1, None),)


class OtherSession:
    """A session of a driver other than NVML."""

    driver_version, cuda_version = "6.2", None
    unreadable: ClassVar[dict[int, UnreadableGpu]] = {}

    def __init__(self, *gpus: OtherGpu, missing: bool = False) -> None:
        self.gpus = gpus
        self._missing = missing

    @contextmanager
    def reading(self) -> Iterator[None]:
        if self._missing:
            raise DriverMissingError("no driver")
        yield


def test_collectors_need_only_the_protocol() -> None:
    first, second = GpuFact(index=0, uuid="GPU-a"), GpuFact(index=1, uuid="GPU-b")
    session = OtherSession(OtherGpu(first), OtherGpu(second, lost=True))
    assert GpuCollector(session=session).collect() == GpuInventory(
        gpus=(
            msgspec.structs.replace(first, utilization_ratio=0.5),
            msgspec.structs.replace(second, lost=True, error="off the bus"),
        ),
        driver_version="6.2",
    )
    processes = GpuProcessesCollector("/proc", session=session).collect()
    assert [(process.gpu_uuid, process.pid) for process in processes] == [("GPU-a", 7)]
    with pytest.raises(AbsentError, match="no driver"):
        GpuCollector(session=OtherSession(missing=True)).collect()
