"""The NVML implementation, through the vendor's binding, against a fake driver library."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from monitor.agent.gpu import GpuProcess, normalize_pci_address
from monitor.agent.gpu.nvml import NvmlSession
from monitor.agent.gpu.nvml.counters import read_counters
from monitor.agent.gpu.nvml.gauges import read_gauges
from monitor.facts import EccFact, GpuFact, MigFact, NvlinkFact, RetiredPagesFact, RowRemapFact
from tests.nvml import NO_PERMISSION, NOT_AVAILABLE, UNKNOWN, InProcessNvml

pytest_plugins = ["tests.nvml.fixtures"]
GIB = 1 << 30
ECC_NAMES = [name for name in EccFact.__struct_fields__ if name != "enabled"]
ECC_EVERYWHERE = EccFact(enabled=True, **{name: count for count, name in enumerate(ECC_NAMES, start=1)})


def read(session: NvmlSession, index: int = 0) -> GpuFact:
    with session.reading():
        gpu = session.gpus[index]
        return read_gauges(gpu, read_counters(gpu))


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000:3b:00", "0000:3b:00.0"),
        ("3b:00", "0000:3b:00.0"),
        ("3b:00.0", "0000:3b:00.0"),
        ("00000019:01:00.0", "0019:01:00.0"),
        ("00010001:C3:1F.7", "10001:c3:1f.7"),
    ],
)
def test_a_pci_address_has_one_form(text: str, expect: str) -> None:
    assert normalize_pci_address(text) == expect


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GPU",
        "10de:2204",
        "0000:00:3b:00",
        "3b",
        "0000:3b:zz",
        "0000:3b:00.x",
        "0" * 300 + "1ffffffff:3b:00",
        "0000:3b:00.8",
        "0000:3b:00." + "1" * 300,
    ],
)
def test_what_is_no_pci_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a PCI address"):
        normalize_pci_address(text)


def test_a_card_comes_through_whole(nvml: InProcessNvml) -> None:
    nvml.gpu(0, uuid="GPU-1", name="NVIDIA H100 80GB HBM3", pci="00000000:3B:00.0", serial="165032")
    nvml.gpu(0, util=55, memory_util=20, memory_total=80 * GIB, memory_used=3 * GIB, temperature=61, power_mw=350500)
    nvml.gpu(0, power_limit_mw=700000, sm_clock_mhz=1980, memory_clock_mhz=2619, pstate=2, persistence=0)
    nvml.gpu(0, throttle=0x4 | 0x40, compute_mode=3, pcie_replays=7, recovery_action=1)
    assert read(NvmlSession()) == GpuFact(
        index=0,
        uuid="GPU-1",
        pci_bus_id="0000:3b:00.0",
        model="NVIDIA H100 80GB HBM3",
        serial="165032",
        utilization_ratio=0.55,
        utilization_peak_ratio=0.55,
        memory_activity_ratio=0.2,
        memory_total_bytes=80 * GIB,
        memory_used_bytes=3 * GIB,
        temperature_celsius=61.0,
        power_watts=350.5,
        power_limit_watts=700.0,
        sm_clock_hertz=1_980_000_000,
        memory_clock_hertz=2_619_000_000,
        throttle_reasons=("sw_power_cap", "hw_thermal_slowdown"),
        performance_state=2,
        persistence_mode=False,
        compute_mode="exclusive_process",
        ecc=EccFact(enabled=True, **dict.fromkeys(ECC_NAMES, 0)),
        row_remaps=RowRemapFact(corrected=0, uncorrected=0, pending=False, failed=False),
        pcie_replays=7,
        recovery_action="gpu_reset",
        mig_enabled=False,
    )


def ecc_everywhere(nvml: InProcessNvml) -> None:
    for count, name in enumerate(ECC_NAMES, start=1):
        nvml.gpu(0, **{name: count})


def ecc_before_ampere(nvml: InProcessNvml) -> None:
    ecc_everywhere(nvml)
    nvml.gpu(0, ecc_sram_known=0)


COUNTERS: list[tuple[str, Callable[[InProcessNvml], object], str, object]] = [
    ("ECC by place", ecc_everywhere, "ecc", ECC_EVERYWHERE),
    ("ECC before Ampere", ecc_before_ampere, "ecc", ECC_EVERYWHERE),
    ("ECC off", lambda n: n.gpu(0, ecc_enabled=0), "ecc", EccFact(enabled=False)),
    ("no ECC", lambda n: n.unsupported("nvmlDeviceGetEccMode"), "ecc", None),
    (
        "row remaps",
        lambda n: n.gpu(0, remap_corrected=1, remap_uncorrected=2, remap_pending=1, remap_failed=1),
        "row_remaps",
        RowRemapFact(corrected=1, uncorrected=2, pending=True, failed=True),
    ),
    ("no row remaps before Ampere", lambda n: n.gpu(0, remaps_known=0), "row_remaps", None),
    (
        "retired pages",
        lambda n: n.gpu(0, retired_known=1, retired_single=3, retired_double=1, retired_pending=1),
        "retired_pages",
        RetiredPagesFact(single_bit=3, double_bit=1, pending=True),
    ),
    ("no retired pages since Ampere", lambda _: None, "retired_pages", None),
    ("no NVLink", lambda _: None, "nvlink", None),
    ("an action newer than we are", lambda n: n.gpu(0, recovery_action=42), "recovery_action", "42"),
    ("no idle among the reasons", lambda n: n.gpu(0, throttle=1), "throttle_reasons", ()),
    ("unknown P-state", lambda n: n.gpu(0, pstate=32), "performance_state", None),
]


@pytest.mark.parametrize(("given", "field", "expect"), [row[1:] for row in COUNTERS], ids=[row[0] for row in COUNTERS])
def test_counters(nvml: InProcessNvml, given: Callable[[InProcessNvml], object], field: str, expect: object) -> None:
    given(nvml)
    assert getattr(read(NvmlSession()), field) == expect


@pytest.mark.parametrize(
    ("generation", "given", "expect"),
    [
        ("Ampere, with totals", {}, (7, 20, 33, 46)),
        ("Hopper, per link", {"link_totals_known": 0}, (7, None, 33, 46)),
        ("Blackwell, recoveries only", {"link_totals_known": 0, "link_crc_known": 0}, (None, None, None, 46)),
    ],
)
def test_nvlink_errors_are_summed_over_links(
    nvml: InProcessNvml, generation: str, given: dict[str, int], expect: tuple[int | None, ...]
) -> None:
    nvml.gpu(0, links=18, **given)
    nvml.link(0, 3, flit=3, data=10, replay=11, recovery=12)
    nvml.link(0, 17, active=False, flit=4, data=10, replay=22, recovery=34)
    flit, data, replay, recovery = expect
    assert read(NvmlSession()).nvlink == NvlinkFact(
        links=18,
        active=17,
        crc_flit_errors=flit,
        crc_data_errors=data,
        replay_errors=replay,
        recovery_errors=recovery,
    )


UNSUPPORTED = [
    ("nvmlDeviceGetUtilizationRates", ["utilization_ratio", "memory_activity_ratio"]),
    ("nvmlDeviceGetSamples", ["utilization_peak_ratio"]),
    ("nvmlDeviceGetPowerUsage", ["power_watts"]),
    ("nvmlDeviceGetEnforcedPowerLimit", ["power_limit_watts"]),
    ("nvmlDeviceGetClockInfo", ["sm_clock_hertz", "memory_clock_hertz"]),
    ("nvmlDeviceGetPerformanceState", ["performance_state"]),
    ("nvmlDeviceGetPersistenceMode", ["persistence_mode"]),
    ("nvmlDeviceGetComputeMode", ["compute_mode"]),
    ("nvmlDeviceGetPcieReplayCounter", ["pcie_replays"]),
    ("nvmlDeviceGetRemappedRows", ["row_remaps"]),
    ("nvmlDeviceGetFieldValues", ["recovery_action", "retired_pages", "nvlink"]),
    ("nvmlDeviceGetMigMode", ["mig_enabled"]),
    ("nvmlDeviceGetSerial", ["serial"]),
]


@pytest.mark.parametrize("how", ["unsupported", "missing_function", "not permitted"])
@pytest.mark.parametrize(("call", "fields"), UNSUPPORTED, ids=[call for call, _ in UNSUPPORTED])
def test_what_a_card_cannot_tell_is_none_and_nothing_else_suffers(
    nvml: InProcessNvml, call: str, fields: list[str], how: str
) -> None:
    nvml.gpu(0, links=4, retired_known=1)
    whole = read(NvmlSession())
    nvml.answer(call, {"unsupported": 3, "missing_function": 13, "not permitted": NO_PERMISSION}[how])
    fact = read(NvmlSession())
    assert {name for name in whole.__struct_fields__ if getattr(fact, name) != getattr(whole, name)} == set(fields)
    assert {getattr(fact, name) for name in fields} == {None}


FALLBACKS = [
    ("nvmlDeviceGetMemoryInfo_v2", "memory_used_bytes", 3 * GIB + 512),  # older drivers count their reserve too
    ("nvmlDeviceGetTemperatureV", "temperature_celsius", 61.0),
    ("nvmlDeviceGetCurrentClocksEventReasons", "throttle_reasons", ("sw_power_cap",)),
]


@pytest.mark.parametrize(("call", "field", "expect"), FALLBACKS, ids=[row[0] for row in FALLBACKS])
def test_an_older_driver_is_asked_in_the_older_way(nvml: InProcessNvml, call: str, field: str, expect: object) -> None:
    nvml.gpu(0, memory_used=3 * GIB, memory_reserved=512, temperature=61, throttle=4)
    nvml.missing_function(call)
    assert getattr(read(NvmlSession()), field) == expect


def test_a_refused_call_is_made_once_a_session(nvml: InProcessNvml) -> None:
    nvml.gpus(1)
    nvml.unsupported("nvmlDeviceGetPowerUsage")
    nvml.unsupported("nvmlDeviceGetSamples")
    session = NvmlSession()
    for _ in range(3):
        assert read(session).power_watts is None
    assert [nvml.calls("nvmlDeviceGetPowerUsage"), nvml.calls("nvmlDeviceGetSamples")] == [1, 1]
    nvml.release()
    session.close()
    assert read(session).power_watts == 62.0


def test_an_error_that_says_nothing_costs_one_value_and_is_told(nvml: InProcessNvml) -> None:
    nvml.gpu(0, util=10)
    nvml.answer("nvmlDeviceGetPowerUsage", UNKNOWN)
    fact = read(NvmlSession())
    assert (fact.power_watts, fact.utilization_ratio, fact.lost) == (None, 0.1, False)
    assert fact.error == "nvmlDeviceGetPowerUsage: Unknown Error"


def test_a_broken_name_costs_the_name(nvml: InProcessNvml) -> None:
    nvml.gpu(0, name="NVIDIA \udcff\udcfe", util=10)
    fact = read(NvmlSession())
    assert (fact.model, fact.utilization_ratio, fact.uuid is not None) == (None, 0.1, True)


def test_the_peak_is_the_highest_sample_since_the_last_pass(nvml: InProcessNvml) -> None:
    session = NvmlSession()
    nvml.gpu(0, util=1)
    steps: list[tuple[list[tuple[int, int]], float | None]] = [
        ([(100, 5), (200, 90), (300, 7)], 0.9),
        ([(400, 3), (500, 4)], 0.04),
        ([], None),  # without a sample there is no peak, not a peak of 0
        ([(600, 0)], 0.0),
        ([(700, 65535), (800, 30)], 0.3),  # no GPU exceeds 100 %
    ]
    for samples, expect in steps:
        nvml.samples(0, samples)
        assert read(session).utilization_peak_ratio == expect


def test_mig_instances(nvml: InProcessNvml) -> None:
    first = nvml.mig(0, 7, 0, "1g.10gb", total=10 * GIB, used=GIB)
    second = nvml.mig(0, 1, 0, "3g.40gb", total=40 * GIB)
    session = NvmlSession()
    fact = read(session)
    assert (fact.mig_enabled, fact.utilization_ratio, fact.utilization_peak_ratio) == (True, None, None)
    small = MigFact(
        uuid=first,
        gpu_instance=7,
        compute_instance=0,
        profile="1g.10gb",
        memory_total_bytes=10 * GIB,
        memory_used_bytes=GIB,
    )
    assert [small.uuid, second] == [instance.uuid for instance in fact.mig]
    assert fact.mig[0] == small
    with session.reading():  # an instance destroyed between two reads of the counters is noticed at once
        nvml.destroy_mig(0, 1, 0)
        assert read_gauges(session.gpus[0], GpuFact(index=0)).mig == (small,)


PROCESSES: list[tuple[str, list[tuple[int, int, str]], list[GpuProcess]]] = [
    ("none", [], []),
    ("compute", [(11, GIB, "compute")], [GpuProcess(11, "compute", GIB, None)]),
    ("unknown memory is not 0", [(11, NOT_AVAILABLE, "compute")], [GpuProcess(11, "compute", None, None)]),
    (
        "compute wins over graphics",
        [(11, 5, "graphics"), (11, 7, "compute"), (12, 1, "graphics")],
        [GpuProcess(11, "compute", 7, None), GpuProcess(12, "graphics", 1, None)],
    ),
    ("MPS wins over compute", [(11, 5, "compute"), (11, 5, "mps")], [GpuProcess(11, "mps", 5, None)]),
]


@pytest.mark.parametrize("driver", ["new", "before 510"])
@pytest.mark.parametrize(("given", "expect"), [row[1:] for row in PROCESSES], ids=[row[0] for row in PROCESSES])
def test_processes(
    nvml: InProcessNvml, given: list[tuple[int, int, str]], expect: list[GpuProcess], driver: str
) -> None:
    for pid, memory, kind in given:
        nvml.process(0, pid, memory, kind)
    if driver == "before 510":
        for kind in ("Compute", "Graphics", "MPSCompute"):
            nvml.missing_function(f"nvmlDeviceGet{kind}RunningProcesses_v3")
    session = NvmlSession()
    with session.reading():
        assert list(session.gpus[0].processes() or ()) == expect


def test_processes_that_are_not_told_are_not_an_empty_list(nvml: InProcessNvml) -> None:
    nvml.process(1, 11)
    for kind in ("Compute", "Graphics", "MPSCompute"):
        for version in ("_v2", "_v3"):
            nvml.unsupported(f"nvmlDeviceGet{kind}RunningProcesses{version}", gpu=0)
    session = NvmlSession()
    with session.reading():
        assert session.gpus[0].processes() is None
        assert session.gpus[1].processes() == (GpuProcess(11, "compute", GIB, None),)


def test_processes_of_mig_instances_also_of_new_ones(nvml: InProcessNvml) -> None:
    uuid = nvml.mig(0, 1, 0, "3g.40gb", total=40 * GIB)
    nvml.process(0, 11, 5, gpu_instance=1, compute_instance=0)
    session = NvmlSession()
    with session.reading():
        assert session.gpus[0].processes() == (GpuProcess(11, "compute", 5, uuid),)
        later = nvml.mig(0, 2, 0, "3g.40gb", total=40 * GIB)
        nvml.process(0, 12, 6, gpu_instance=2, compute_instance=0)
        assert session.gpus[0].processes() == (
            GpuProcess(11, "compute", 5, uuid),
            GpuProcess(12, "compute", 6, later),
        )


def test_64_cards(nvml: InProcessNvml) -> None:
    nvml.gpus(64)
    nvml.gpu(63, util=99)
    session = NvmlSession()
    assert read(session, 63).utilization_ratio == 0.99
    with session.reading():
        assert len({gpu.identity.uuid for gpu in session.gpus}) == 64
