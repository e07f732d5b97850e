"""JSON to facts: ResourceClaims, ResourceSlices and DeviceClasses, as Kubernetes 1.32 to 1.35 sends them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from monitor.facts.devices import (
    AllocatedDeviceFact,
    ClaimConsumerFact,
    DeviceFact,
    DeviceRequestFact,
)
from monitor.facts.gpu_drivers import is_gpu_driver
from monitor.facts.kube import PodClaimFact
from monitor.kube.decode import stream
from monitor.kube.decode.devices import MAX_COUNT
from monitor.kube.resources import RESOURCE_CLAIMS, served_version
from tests.support.resource_claims import (
    claim_json,
    class_json,
    gpu_json,
    mig_json,
    pod_fact,
    pod_json,
    request_json,
    slice_json,
)


def listed(*items: object) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "9"}, "items": items}).encode()


def test_an_allocated_claim() -> None:
    (claim,) = stream.RESOURCE_CLAIMS.page(listed(claim_json("c", "gpu-0", "gpu-1", pods=["p"]))).items
    assert claim.key == ("team", "c")
    assert claim.requests == (DeviceRequestFact(name="gpu", device_class="gpu.nvidia.com", count=2),)
    assert claim.devices == tuple(
        AllocatedDeviceFact(driver="gpu.nvidia.com", pool="n1", device=name, request="gpu")
        for name in ("gpu-0", "gpu-1")
    )
    assert (claim.allocated, claim.node) == (True, "n1")
    assert claim.reserved_for == (ClaimConsumerFact(name="p", uid="uid-p"),)


REQUESTS: list[tuple[str, dict[str, Any], DeviceRequestFact]] = [
    (
        "v1",
        request_json(2, selectors=["true"]),
        DeviceRequestFact(name="gpu", device_class="gpu.nvidia.com", count=2, selectors=("true",)),
    ),
    (
        "all devices",
        request_json(allocationMode="All"),
        DeviceRequestFact(name="gpu", device_class="gpu.nvidia.com", count=None),
    ),
    (
        "for monitoring",
        request_json(adminAccess=True),
        DeviceRequestFact(name="gpu", device_class="gpu.nvidia.com", admin=True),
    ),
    (
        "v1beta1",
        {"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 3},
        DeviceRequestFact(name="gpu", device_class="gpu.nvidia.com", count=3),
    ),
    (
        "the first of alternatives",
        {
            "name": "gpu",
            "firstAvailable": [
                {"name": "big", "deviceClassName": "h100", "count": 1},
                {"name": "small", "deviceClassName": "t4", "count": 4},
            ],
        },
        DeviceRequestFact(name="gpu", device_class="h100"),
    ),
    (
        "an absurd count",
        request_json(10**30),
        DeviceRequestFact(name="gpu", device_class="gpu.nvidia.com", count=MAX_COUNT),
    ),
    ("nothing", {}, DeviceRequestFact(name="")),
]


@pytest.mark.parametrize(("name", "request_of_claim", "expect"), REQUESTS, ids=[case[0] for case in REQUESTS])
def test_requests(name: str, request_of_claim: dict[str, Any], expect: DeviceRequestFact) -> None:
    (claim,) = stream.RESOURCE_CLAIMS.page(listed(claim_json("c", requests=[request_of_claim]))).items
    assert claim.requests == (expect,), name
    assert not claim.allocated


def test_a_claim_without_status_or_devices() -> None:
    (claim,) = stream.RESOURCE_CLAIMS.page(listed({"metadata": {"name": "c", "uid": "u"}})).items
    assert (claim.requests, claim.devices, claim.allocated, claim.reserved_for) == ((), (), False, ())


def test_a_claim_that_several_nodes_can_use_names_none() -> None:
    item = claim_json("c", "gpu-0")
    item["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] = ["n1", "n2"]
    (claim,) = stream.RESOURCE_CLAIMS.page(listed(item)).items
    assert claim.node is None


def test_a_slice() -> None:
    (known,) = stream.RESOURCE_SLICES.page(listed(slice_json(gpu_json(0), mig_json(3, 1), generation=7))).items
    assert (known.driver, known.pool, known.generation, known.node) == ("gpu.nvidia.com", "n1", 7, "n1")
    assert known.devices == (
        DeviceFact(
            name="gpu-0", uuid="GPU-n1-0000", type="gpu", model="NVIDIA A100-SXM4-80GB", memory_bytes=81559 * 1024.0**2
        ),
        DeviceFact(
            name="gpu-1-mig-19-3-1",
            uuid="MIG-n1-0003",
            parent_uuid="GPU-n1-0001",
            type="mig",
            memory_bytes=9728 * 1024.0**2,
        ),
    )


def test_a_slice_of_v1beta1_and_qualified_attributes() -> None:
    gpu = gpu_json(0)
    old = {"name": "gpu-0", "basic": {"attributes": gpu["attributes"], "capacity": gpu["capacity"]}}
    qualified = {f"gpu.nvidia.com/{name}": value for name, value in gpu["attributes"].items() if "/" not in name}
    new = {"name": "gpu-0", "attributes": qualified, "capacity": {"gpu.nvidia.com/memory": {"value": "81559Mi"}}}
    devices = [stream.RESOURCE_SLICES.page(listed(slice_json(item))).items[0].devices for item in (gpu, old, new)]
    assert devices[0] == devices[1] == devices[2]


def test_a_device_class() -> None:
    (known,) = stream.DEVICE_CLASSES.page(listed(class_json(extended="nvidia.com/gpu"))).items
    assert (known.name, known.drivers, known.types) == ("gpu.nvidia.com", ("gpu.nvidia.com",), ("gpu",))
    assert known.extended_resource == "nvidia.com/gpu"


def test_claims_of_a_pod() -> None:
    created, waits = pod_fact(pod_json("p", "p-gpu-x7k2p")), pod_fact(pod_json("p", None))
    assert created.device_claims == (PodClaimFact(name="gpu", claim="p-gpu-x7k2p", template="single-gpu"),)
    assert waits.device_claims == (PodClaimFact(name="gpu", template="single-gpu"),)
    named = pod_fact(pod_json("p", "shared", template=None))
    assert named.device_claims == (PodClaimFact(name="gpu", claim="shared"),)


@pytest.mark.parametrize(("served", "chosen"), [(["v1", "v1beta2"], "v1"), (["v1beta1"], "v1beta1")])
def test_the_best_version_that_is_served(served: list[str], chosen: str) -> None:
    group = {"name": "resource.k8s.io", "versions": [{"version": each} for each in served]}
    assert served_version(RESOURCE_CLAIMS, json.dumps(group).encode()) == chosen


@pytest.mark.parametrize(
    ("driver", "expect"),
    [
        ("gpu.nvidia.com", True), ("gpu.amd.com", True), ("gpu.example.com", True),
        ("hami-core-gpu.project-hami.io", True), ("compute-domain.nvidia.com", False), ("dra.net", False),
    ],
)  # fmt: skip
def test_drivers_of_gpus(driver: str, expect: bool) -> None:
    assert is_gpu_driver(driver) is expect
