"""Objects of dynamic resource allocation: what the lab's driver publishes and what pods claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DRIVER = "gpu.nvidia.com"
DEVICE_CLASS = DRIVER
API = "resource.k8s.io/v1"


def device_class() -> dict[str, Any]:
    """The class of all devices of the driver."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": DEVICE_CLASS},
        "spec": {"selectors": [selector]},
    }


def slice_name(node: str) -> str:
    return f"{node}-{DRIVER}"


def resource_slice(node: str, uuids: Sequence[str]) -> dict[str, Any]:
    """The devices of a node: `gpu-0` and so on, each with its uuid."""
    devices = [{"name": device_name(index), "attributes": attributes(uuid)} for index, uuid in enumerate(uuids)]
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": slice_name(node)},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def device_name(index: int) -> str:
    return f"gpu-{index}"


def attributes(uuid: str) -> dict[str, Any]:
    return {"uuid": {"string": uuid}, "type": {"string": "gpu"}, "productName": {"string": "Lab GPU"}}


def resource_claim(name: str, gpus: int, namespace: str = "default") -> dict[str, Any]:
    """A claim of some GPUs."""
    exactly = {"deviceClassName": DEVICE_CLASS, "count": gpus}
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}},
    }


def claiming(claim: str) -> dict[str, Any]:
    """Fields of `pod_manifest` for a pod whose container uses a claim."""
    return {
        "container": {"resources": {"claims": [{"name": "gpus"}]}},
        "spec": {"resourceClaims": [{"name": "gpus", "resourceClaimName": claim}]},
    }
