"""GPUs by dynamic resource allocation: the lab's driver, a claim, and what the kubelet reports."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from kubernetes import client

from tests.lab.lab import Lab
from tests.lab.modern.claims import DRIVER, claiming, resource_claim
from tests.support import wait_until
from tests.support.protos import messages

pytestmark = pytest.mark.lab("1.35")
PROTO = Path(__file__).with_name("pod_resources.proto")


@pytest.fixture(scope="module")
def resources(lab: Lab) -> Iterator[Any]:
    """The resource API, with the driver running."""
    lab.start_component("dra-driver")
    yield client.ResourceV1Api(lab.cluster.api)
    lab.stop_component("dra-driver")


@pytest.fixture
def claim(lab: Lab, resources: Any) -> Iterator[str]:
    """A claim of two GPUs."""
    name = f"two-{secrets.token_hex(3)}"  # a claim may outlive its test by a while
    resources.create_namespaced_resource_claim("default", resource_claim(name, gpus=2))
    yield name
    resources.delete_namespaced_resource_claim(name, "default")


def allocated(resources: Any, claim: str) -> set[str]:
    status = resources.read_namespaced_resource_claim(claim, "default").status
    return {each.device for each in status.allocation.devices.results}


def reported(lab: Lab) -> dict[str, dict[str, set[str]]]:
    """Devices by pod and claim, from the kubelet."""
    new = messages(PROTO)
    with grpc.insecure_channel(f"unix://{lab.kubelet_root / 'pod-resources' / 'kubelet.sock'}") as channel:
        ask = channel.unary_unary(
            "/v1.PodResourcesLister/List",
            request_serializer=new.ListRequest.SerializeToString,
            response_deserializer=new.ListResponse.FromString,
        )
        answer = ask(new.ListRequest(), timeout=60)
    found: dict[str, dict[str, set[str]]] = {}
    for pod in answer.pods:
        for container in pod.containers:
            for dynamic in container.dynamic_resources:
                names = {each.device_name for each in dynamic.claim_resources if each.driver_name == DRIVER}
                found.setdefault(pod.name, {})[dynamic.claim_name] = names
    return found


def test_the_driver_publishes_all_gpus_with_their_uuids(lab: Lab, resources: Any) -> None:
    (published,) = resources.list_resource_slice().items
    assert published.spec.driver == DRIVER
    assert [device.attributes["uuid"].string for device in published.spec.devices] == list(lab.gpu_ids)


def test_a_pod_gets_the_gpus_of_its_claim_and_the_kubelet_says_which(
    lab: Lab, resources: Any, claim: str, pods: list[Any]
) -> None:
    pods.append(lab.run_pod("claims", **claiming(claim)))
    devices = allocated(resources, claim)
    assert len(devices) == 2
    assert reported(lab)["claims"] == {claim: devices}
    environment = Path(f"/proc/{lab.container_pid(pods[0])}/environ").read_bytes().decode().split("\0")
    (visible,) = [each for each in environment if each.startswith("NVIDIA_VISIBLE_DEVICES=")]
    uuids = {lab.gpu_ids[int(name.removeprefix("gpu-"))] for name in devices}
    assert set(visible.partition("=")[2].split(",")) == uuids


def test_a_new_kubelet_finds_the_driver_and_its_claims_again(
    lab: Lab, resources: Any, claim: str, pods: list[Any]
) -> None:
    pods.append(lab.run_pod("claims-on", **claiming(claim)))
    before = reported(lab)["claims-on"]
    lab.stop_component("kubelet")
    lab.start_component("kubelet")
    wait_until(lambda: resources.list_resource_slice().items, 30, "the devices are published again")
    wait_until(lambda: reported(lab).get("claims-on") == before, 30, "the same devices as before")
