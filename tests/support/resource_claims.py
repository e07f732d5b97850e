"""Objects of Dynamic Resource Allocation as the API server of Kubernetes 1.35 sends them, and as facts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from monitor.facts.devices import DeviceFacts
from monitor.facts.kube import PodFact
from monitor.kube.decode import stream

DRIVER = "gpu.nvidia.com"
CREATED = "2025-11-16T02:00:00Z"
SELECTOR = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"


def meta(name: str, namespace: str | None = None, **more: Any) -> dict[str, Any]:
    known: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "resourceVersion": "812", "creationTimestamp": CREATED}
    return known | ({"namespace": namespace} if namespace is not None else {}) | more


def gpu_json(index: int, node: str = "n1", **more: Any) -> dict[str, Any]:
    """A GPU of a slice, as NVIDIA's driver describes it."""
    attributes = {
        "type": {"string": "gpu"},
        "uuid": {"string": f"GPU-{node}-{index:04d}"},
        "productName": {"string": "NVIDIA A100-SXM4-80GB"},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": "Ampere"},
        "cudaComputeCapability": {"version": "8.0.0"},
        "driverVersion": {"version": "580.82.7"},
        "index": {"int": index},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    }
    return {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": "81559Mi"}}, **more}


def mig_json(index: int, parent: int, node: str = "n1") -> dict[str, Any]:
    attributes = {
        "type": {"string": "mig"},
        "uuid": {"string": f"MIG-{node}-{index:04d}"},
        "parentUUID": {"string": f"GPU-{node}-{parent:04d}"},
        "profile": {"string": "1g.10gb"},
    }
    return {
        "name": f"gpu-{parent}-mig-19-{index}-1",
        "attributes": attributes,
        "capacity": {"memory": {"value": "9728Mi"}},
    }


def slice_json(*devices: dict[str, Any], node: str = "n1", driver: str = DRIVER, generation: int = 1) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "controller": True, "kind": "Node", "name": node, "uid": f"uid-{node}"}
    return {
        "metadata": meta(
            f"{node}-{driver}-{generation}", generateName=f"{node}-{driver}-", generation=1, ownerReferences=[owner]
        ),
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"generation": generation, "name": node, "resourceSliceCount": 1},
            "devices": list(devices),
        },
    }


def request_json(
    count: int = 1, device_class: str = DRIVER, selectors: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    exactly |= {"selectors": [{"cel": {"expression": each}} for each in selectors]} if selectors else {}
    return {"name": "gpu", "exactly": exactly | more}


def claim_json(
    name: str,
    *devices: str,
    pods: Sequence[str] = (),
    node: str = "n1",
    requests: Sequence[dict[str, Any]] | None = None,
    driver: str = DRIVER,
    admin: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """A claim; with devices it is allocated on the node, and reserved for the pods."""
    given = list(requests) if requests is not None else [request_json(max(1, len(devices)))]
    claim = {"metadata": meta(name, "team", **more), "spec": {"devices": {"requests": given}}, "status": {}}
    if devices:
        results = [
            {"device": each, "driver": driver, "pool": node, "request": "gpu"}
            | ({"adminAccess": True} if admin else {})
            for each in devices
        ]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        claim["status"]["allocation"] = {
            "allocationTimestamp": CREATED,
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
        claim["status"]["reservedFor"] = [{"name": pod, "resource": "pods", "uid": f"uid-{pod}"} for pod in pods]
    return claim


def class_json(name: str = DRIVER, expression: str = SELECTOR, extended: str | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": expression}}]}
    return {"metadata": meta(name), "spec": spec | ({"extendedResourceName": extended} if extended else {})}


def pod_json(
    name: str, claim: str | None, node: str | None = "n1", template: str | None = "single-gpu"
) -> dict[str, Any]:
    """A pod with one claim from a template, `claim` once it was created; without a template it names the claim."""
    asked = {"name": "gpu"} | ({"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim})
    created = [{"name": "gpu", "resourceClaimName": claim}] if template and claim else []
    running = {"startedAt": CREATED}
    container = {"name": "train", "image": "torch", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [asked], "schedulerName": "default-scheduler"}
    status: dict[str, Any] = {"phase": "Running" if node else "Pending", "startTime": CREATED}
    status |= {"resourceClaimStatuses": created} if created else {}
    if node:
        status["containerStatuses"] = [
            {"name": "train", "ready": True, "restartCount": 0, "state": {"running": running}}
        ]
    return {"metadata": meta(name, "team"), "spec": spec | ({"nodeName": node} if node else {}), "status": status}


def _listed(items: Sequence[dict[str, Any]]) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "900"}, "items": list(items)}).encode()


def device_facts(
    claims: Sequence[dict[str, Any]] = (),
    slices: Sequence[dict[str, Any]] = (),
    classes: Sequence[dict[str, Any]] | None = None,
    *,
    known: bool = True,
) -> DeviceFacts:
    return DeviceFacts(
        claims=stream.RESOURCE_CLAIMS.page(_listed(claims)).items,
        slices=stream.RESOURCE_SLICES.page(_listed(slices)).items,
        classes=stream.DEVICE_CLASSES.page(_listed([class_json()] if classes is None else classes)).items,
        known=known,
    )


def pod_fact(item: dict[str, Any]) -> PodFact:
    (pod,) = stream.decode_pod_list(_listed([item])).items
    return pod
