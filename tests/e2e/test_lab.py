"""The lab itself provides what other tests rely on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from monitor.agent.collectors.pod_devices import PodDevicesCollector
from monitor.agent.settings import Paths
from tests.lab.lab import Lab
from tests.lab.process import marked
from tests.support import wait_until

GPU = "nvidia.com/gpu"


def devices(lab: Lab) -> dict[str, set[str]]:
    """Devices of each pod by name, from the agent's own kubelet collector."""
    root = str(lab.kubelet_root)
    paths = Paths(proc="", sys="", rootfs="", kubelet=root, kmsg="", state="", docker_socket="", cri_sockets=())
    held: dict[str, set[str]] = {}
    for fact in PodDevicesCollector(paths, ("nvidia.com/",)).collect():
        held.setdefault(str(fact.pod_name), set()).add(fact.device_id)
    return held


@pytest.mark.read_only
def test_the_cluster_answers_and_its_nodes_say_how_they_are(kubeconfig: Path) -> None:
    api: Any = config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]  # theirs
    with api:
        assert client.VersionApi(api).get_code(_request_timeout=60).major == "1"
        nodes: list[Any] = client.CoreV1Api(api).list_node(_request_timeout=60).items
    assert nodes
    for node in nodes:
        assert any(condition.type == "Ready" for condition in node.status.conditions), node.metadata.name


def test_every_component_runs(lab: Lab) -> None:
    ended = {name for name, runs in lab.running().items() if not runs}
    assert ended <= set(lab.variant.optional)


def test_the_node_is_ready_with_all_its_gpus(lab: Lab) -> None:
    node = lab.cluster.node("gpu-01")
    assert node is not None
    assert {condition.type: condition.status for condition in node.status.conditions}["Ready"] == "True"
    assert node.status.capacity[GPU] == node.status.allocatable[GPU] == "8"


def test_a_pod_gets_two_gpus_and_the_kubelet_says_which(lab: Lab, pods: list[Any]) -> None:
    pods.append(lab.run_pod("two-gpus", gpus=2))
    held = devices(lab)["two-gpus"]
    assert len(held) == 2
    assert held <= set(lab.gpu_ids)
    checkpoint = json.loads((lab.kubelet_root / "device-plugins/kubelet_internal_checkpoint").read_text())
    entries = [entry for entry in checkpoint["Data"]["PodDeviceEntries"] if entry["PodUID"] == pods[0].metadata.uid]
    assert {id_ for entry in entries for ids in entry["DeviceIDs"].values() for id_ in ids} == held


def test_a_containers_process_is_a_real_one_in_the_pods_cgroup(lab: Lab, pods: list[Any]) -> None:
    pods.append(lab.run_pod("process"))
    pid = lab.container_pid(pods[0])
    assert Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x001000000\x00"
    assert f"pod{pods[0].metadata.uid}" in Path(f"/proc/{pid}/cgroup").read_text()


def test_a_pod_that_asks_for_too_much_waits_and_the_scheduler_says_why(lab: Lab, pods: list[Any]) -> None:
    pods.append(lab.run_pod("too-many", gpus=9, phase=None))
    wait_until(lambda: lab.cluster.events_of(pods[0]), 20, "an event")
    assert f"1 Insufficient {GPU}" in lab.cluster.events_of(pods[0])[0]
    assert lab.cluster.read_pod(pods[0]).status.phase == "Pending"


def test_an_image_is_pulled_from_the_registry(lab: Lab, pods: list[Any]) -> None:
    pods.append(lab.run_pod("pulled", image=lab.push_image("team/train:1")))
    assert any(event.startswith("Pulled: Successfully pulled image") for event in lab.cluster.events_of(pods[0]))


def test_a_stopped_registry_refuses_connections_and_a_started_one_serves_again(lab: Lab, pods: list[Any]) -> None:
    image = lab.push_image("team/refused:1")
    lab.stop_registry()
    try:
        pods.append(lab.run_pod("refused", image=image, phase=None))
        refused = f"dial tcp {lab.registry}: connect: connection refused"
        wait_until(lambda: any(refused in event for event in lab.cluster.events_of(pods[0])), 30, refused)
    finally:
        lab.start_registry()
    pods.append(lab.run_pod("served", image=image))


def test_objects_outlive_the_api_server(lab: Lab, pods: list[Any]) -> None:
    pods.append(lab.run_pod("outlives"))
    lab.kill_apiserver()
    assert not lab.running()["apiserver"]
    assert lab.cluster.node("gpu-01") is None
    lab.start_component("apiserver")
    lab.restart_apiserver()
    assert lab.cluster.read_pod(pods[0]).metadata.uid == pods[0].metadata.uid
    assert lab.cluster.read_pod(pods[0]).status.phase == "Running"


def test_a_new_kubelet_keeps_pods_and_gets_its_gpus_back(lab: Lab, pods: list[Any]) -> None:
    pods.append(lab.run_pod("stays", gpus=1))
    before, pid = devices(lab)["stays"], lab.container_pid(pods[0])
    lab.stop_component("kubelet")
    lab.start_component("kubelet")
    wait_until(lambda: devices(lab).get("stays") == before, 20, "the same device as before")
    assert lab.container_pid(pods[0]) == pid


def test_a_fake_node_takes_pods_and_keeps_its_taints(lab: Lab, pods: list[Any]) -> None:
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    lab.add_fake_node("fake-01", gpus=4, labels={"pool": "a"}, taints=[taint])
    try:
        node = lab.cluster.node("fake-01")
        assert node is not None
        assert node.metadata.labels["pool"] == "a"
        assert [(found.key, found.effect) for found in node.spec.taints] == [("team", "NoSchedule")]
        tolerant = {"tolerations": [{"key": "team", "operator": "Exists"}]}
        pods.append(lab.run_pod("on-fake", gpus=3, node="fake-01", spec=tolerant, phase=None))
        wait_until(lambda: lab.cluster.read_pod(pods[0]).spec.node_name == "fake-01", 20, "the pod on the node")
    finally:
        lab.fake_nodes.remove("fake-01")


def test_nothing_listens_beyond_loopback(lab: Lab) -> None:
    inodes = {inode for process in marked(lab.kubeconfig.parent) for inode in sockets_of(process.pid)}
    beyond = [
        line
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if is_listening_beyond_loopback(line) and line.split()[9] in inodes
    ]
    assert inodes
    assert beyond == []


def sockets_of(pid: int) -> set[str]:
    """Inodes of the sockets of a pid."""
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        target = os.readlink(f"/proc/{pid}/fd/{name}")
        if target.startswith("socket:["):
            found.add(target.removeprefix("socket:[").removesuffix("]"))
    return found


def is_listening_beyond_loopback(line: str) -> bool:
    """Whether a line of /proc/net/tcp or tcp6 is a listener outside loopback."""
    fields = line.split()
    address, state = fields[1].partition(":")[0], fields[3]
    loopback = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
    return state == "0A" and address not in loopback
