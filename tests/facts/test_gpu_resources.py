"""The table of GPU resources."""

from __future__ import annotations

import pytest

from monitor.facts.gpu_resources import RESOURCES, Family, Part, Unit, resource_kind, slice_share


@pytest.mark.parametrize(
    ("name", "family", "unit", "part", "share"),
    [
        ("nvidia.com/gpu", Family.NVIDIA, Unit.GPU, Part.COUNT, 1.0),
        ("nvidia.com/gpu.shared", Family.NVIDIA, Unit.SLOT, Part.COUNT, None),
        ("nvidia.com/mig-1g.5gb", Family.NVIDIA, Unit.SLICE, Part.COUNT, 1 / 7),
        ("nvidia.com/mig-3g.40gb", Family.NVIDIA, Unit.SLICE, Part.COUNT, 3 / 7),
        ("nvidia.com/mig-7g.141gb", Family.NVIDIA, Unit.SLICE, Part.COUNT, 1.0),
        ("nvidia.com/mig-2g.12gb", Family.NVIDIA, Unit.SLICE, Part.COUNT, 0.5),  # A30
        ("nvidia.com/mig-1g.10gb.me", Family.NVIDIA, Unit.SLICE, Part.COUNT, 1 / 7),
        ("nvidia.com/mig-1g.10gb.shared", Family.NVIDIA, Unit.SLICE, Part.COUNT, 1 / 7),
        ("nvidia.com/gpumem", Family.HAMI, Unit.MIB, Part.MEMORY, None),
        ("nvidia.com/gpucores", Family.HAMI, Unit.PERCENT, Part.CORES, 0.01),
        ("volcano.sh/vgpu-number", Family.VOLCANO, Unit.SLOT, Part.COUNT, None),
        ("aliyun.com/gpu-mem", Family.ALIYUN, Unit.GIB, Part.MEMORY, None),
        ("koordinator.sh/gpu", Family.KOORDINATOR, Unit.PERCENT, Part.CARD, 0.01),
        ("kai.scheduler/gpu-fraction", Family.KAI, Unit.PERCENT, Part.CARD, 0.01),
        ("kai.scheduler/gpu-memory", Family.KAI, Unit.MIB, Part.MEMORY, None),
        ("tencent.com/vcuda-core", Family.TENCENT, Unit.HUNDREDTH, Part.CORES, 0.01),
        ("tencent.com/vcuda-memory", Family.TENCENT, Unit.MIB_256, Part.MEMORY, None),
        ("huawei.com/Ascend910", Family.OTHER, Unit.DEVICE, Part.COUNT, 1.0),
        ("huawei.com/Ascend910B-memory", Family.OTHER, Unit.UNKNOWN, Part.MEMORY, None),
        ("amd.com/gpu", Family.OTHER, Unit.DEVICE, Part.COUNT, 1.0),
        ("cambricon.com/mlu", Family.OTHER, Unit.DEVICE, Part.COUNT, 1.0),
        ("hygon.com/dcunum", Family.OTHER, Unit.DEVICE, Part.COUNT, 1.0),
        ("google.com/tpu", Family.OTHER, Unit.DEVICE, Part.COUNT, 1.0),
        ("aws.amazon.com/neuroncore", Family.OTHER, Unit.UNKNOWN, Part.CORES, None),
        ("example.com/a100-gpu", Family.OTHER, Unit.DEVICE, Part.COUNT, 1.0),
        ("example.com/gpu-memory", Family.OTHER, Unit.UNKNOWN, Part.MEMORY, None),
    ],
)  # fmt: skip
def test_what_an_amount_means(name: str, family: Family, unit: Unit, part: Part, share: float | None) -> None:
    known = resource_kind(name)
    assert known is not None
    assert (known.family, known.unit, known.part) == (family, unit, part)
    assert known.share == pytest.approx(share) if share is not None else known.share is None


@pytest.mark.parametrize(
    "name",
    [
        "cpu", "memory", "pods", "ephemeral-storage", "rdma/hca", "rdma/hca_shared_devices_a", "hugepages-2Mi",
        "example.com/fpga", "nvidia.com/priority", "gpu.intel.com/i915_monitoring", "x/" + "gpu" * 1000,
    ],
)  # fmt: skip
def test_other_resources_are_none_of_its_business(name: str) -> None:
    assert resource_kind(name) is None


def test_only_devices_count_as_whole_gpus() -> None:
    assert {name for name, known in RESOURCES.items() if known.whole} == {
        "nvidia.com/gpu", "volcano.sh/gpu-number", "aliyun.com/gpu-count",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("profile", "share"),
    [
        ("1g.10gb", 1 / 7),
        ("3g.40gb", 3 / 7),
        ("1g.10gb+me", 1 / 7),
        ("2g.12gb", 0.5),
        ("odd", None),
        ("", None),
        (None, None),
    ],
)
def test_the_part_of_a_gpu_that_a_slice_is(profile: str | None, share: float | None) -> None:
    assert slice_share(profile) == share
