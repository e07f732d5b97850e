"""A node as its kubelet is configured and as other tools mark it, and an inference service on its GPUs."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPSConnection
from typing import Any

import pytest

from monitor.detect.base import Limits
from monitor.detect.rules import gpu_idle, gpu_underused, node_condition, pod_silent
from monitor.facts import KubeletFact
from monitor.facts.findings import Severity
from tests.e2e.detecting import Looker, agent_of, looking
from tests.e2e.scenes import Scene
from tests.lab.images import IMAGE
from tests.lab.lab import Lab
from tests.lab.layout import GPU_RESOURCE, LOOPBACK, NODE
from tests.nvml import FakeNvml
from tests.support import free_port, wait_until

QUICK = ("gpu", "gpu_processes", "pod_devices", "containers", "kubelet")
GIB = 1 << 30
LIMITS: dict[str, Limits[Any]] = {
    "node-condition": Limits(node_condition.Limits(after=1.0)),
    "gpu-idle": Limits(gpu_idle.Limits(warning_after=2.0, warm_up=0.0)),
    "gpu-underused": Limits(gpu_underused.Limits(window=2.0)),
    "pod-silent": Limits(pod_silent.Limits(empty=2.0)),
}
IDLE_RULES = ("gpu-idle", "gpu-underused", "pod-silent")


@pytest.fixture(scope="module")
def nvml(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> FakeNvml:
    made = FakeNvml(tmp_path_factory.mktemp("driver") / "nvml", gpus=len(lab.gpu_ids))
    for index, uuid in enumerate(lab.gpu_ids):
        made.gpu(index, uuid=uuid, util=0)
    return made


@pytest.fixture(scope="module")
def looker(lab: Lab, nvml: FakeNvml, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looker]:
    settings = {"AGENT__NODE_NAME": NODE, **lab.agent_settings()}
    with (
        agent_of(tmp_path_factory.mktemp("node"), QUICK, nvml.environment(), **settings) as agent,
        looking(lab.kubeconfig, (agent,), LIMITS) as looker,
    ):
        yield looker


@pytest.mark.lab("1.35")
def test_what_the_agent_reads_is_what_the_kubelet_uses(lab: Lab, looker: Looker) -> None:
    """The lab configures the kubelet by a file and by drop-in files."""
    wait_until(lambda: _kubelet(looker) is not None, 20, "the agent has read the configuration")
    fact = _kubelet(looker)
    assert fact is not None
    used = _kubelet_says(lab, "/configz")["kubeletconfig"]
    assert fact.image_gc_high_ratio == used["imageGCHighThresholdPercent"] / 100 == 1.0
    assert fact.image_gc_low_ratio == used["imageGCLowThresholdPercent"] / 100 == 0.96
    assert used["evictionHard"]["imagefs.available"] == "2Mi"
    assert [(each.signal, each.available_bytes) for each in fact.eviction_hard or ()] == [
        ("imagefs.available", 2 * 1024**2)
    ]


def _kubelet_says(lab: Lab, path: str) -> Any:
    """Answer of the kubelet itself, which has a certificate of its own making and accepts anyone in the lab."""
    port = lab.cluster.node(NODE).status.daemon_endpoints.kubelet_endpoint.port  # type: ignore[union-attr]  # exists
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    with closing(HTTPSConnection(LOOPBACK, port, timeout=60, context=anyone)) as connection:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())


def _kubelet(looker: Looker) -> KubeletFact | None:
    return looker.world().snapshots[NODE].kubelet


# What other tools say about a node


def mark(lab: Lab, kind: str, status: str) -> None:
    """Set a condition of the node, as node-problem-detector does."""
    condition = {"type": kind, "status": status, "reason": "XidError", "message": "GPU 3 has XID 79"}
    body = {"status": {"conditions": [condition]}}
    lab.cluster.core.patch_node_status(NODE, body, _request_timeout=60)


def unmark(lab: Lab, kind: str) -> None:
    body = {"status": {"conditions": [{"$patch": "delete", "type": kind}]}}
    lab.cluster.core.patch_node_status(NODE, body, _request_timeout=60)


def test_a_condition_that_another_tool_sets_is_a_finding(lab: Lab, looker: Looker, undo: ExitStack) -> None:
    undo.callback(unmark, lab, "GpuXidError")
    mark(lab, "GpuXidError", "True")
    finding = looker.expect("node-condition", "gpu-error", 30, Severity.CRITICAL, condition="GpuXidError")
    assert finding.labels["node"] == NODE
    assert "GPU 3 has XID 79" in (finding.raw or "")
    mark(lab, "GpuXidError", "False")
    looker.expect_over("node-condition", 30, condition="GpuXidError")


def test_a_condition_that_is_expected_is_a_finding_without_it(lab: Lab, looker: Looker, undo: ExitStack) -> None:
    undo.callback(unmark, lab, "AcceleratedHardwareReady")
    mark(lab, "AcceleratedHardwareReady", "True")
    mark(lab, "KernelDeadlock", "False")
    undo.callback(unmark, lab, "KernelDeadlock")
    wait_until(lambda: _has_condition(looker, "KernelDeadlock"), 20, "the conditions are seen")
    assert looker.finds("node-condition") == []
    mark(lab, "AcceleratedHardwareReady", "False")
    looker.expect("node-condition", "gpu-unhealthy", 30, condition="AcceleratedHardwareReady")


def _has_condition(looker: Looker, kind: str) -> bool:
    return any(condition.type == kind for condition in looker.world().node_by_name[NODE].conditions)


def test_a_taint_that_another_tool_sets_is_a_finding(lab: Lab, looker: Looker, undo: ExitStack) -> None:
    undo.callback(taint, lab, [])
    taint(lab, [{"key": "nvidia.com/gpu-xid-error", "value": "79", "effect": "NoSchedule"}])
    looker.expect("node-condition", "isolated", 30, node=NODE, condition="nvidia.com/gpu-xid-error")
    taint(lab, [])
    looker.expect_over("node-condition", 30, condition="nvidia.com/gpu-xid-error")


def taint(lab: Lab, taints: list[dict[str, str]]) -> None:
    lab.cluster.core.patch_node(NODE, {"spec": {"taints": taints}}, _request_timeout=60)


# Inference services


def deployment(name: str, container: dict[str, Any]) -> dict[str, Any]:
    """Spec of a Deployment with one GPU."""
    limits = {"limits": {GPU_RESOURCE: "1"}}
    return {
        "replicas": 1,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "containers": [{"name": "main", "image": IMAGE, "resources": limits, **container}],
                "hostNetwork": True,
                "terminationGracePeriodSeconds": 1,
                "nodeSelector": {"kubernetes.io/hostname": NODE},
            },
        },
    }


def serving(port: int) -> dict[str, Any]:
    """A container that waits for requests."""
    get = {"path": "/", "port": port, "host": LOOPBACK}
    return {
        "command": ["sh", "-c", f"echo ok > /tmp/index.html; exec httpd -f -p {LOOPBACK}:{port} -h /tmp"],
        "ports": [{"containerPort": port}],
        "readinessProbe": {"httpGet": get, "periodSeconds": 1},
    }


@pytest.fixture
def scene(lab: Lab, looker: Looker) -> Iterator[Scene]:
    with Scene(lab, "serves") as scene:
        yield scene


def test_an_inference_service_without_requests_is_no_idle_job(
    lab: Lab, looker: Looker, nvml: FakeNvml, scene: Scene, undo: ExitStack
) -> None:
    containers = {"chat": serving(free_port(LOOPBACK)), "batch": {"command": ["sleep", "1000000"]}}
    for name, container in containers.items():
        scene.create_here("apps/v1", "deployments", name, spec=deployment(name, container))
    pods = {name: _running_pod(lab, scene, name) for name in containers}
    for name, pod in pods.items():
        wait_until(lambda pod=pod: _gpus(looker, pod), 30, f"the GPU of {name} is known")  # type: ignore[misc]  # mypy cannot infer the default
        index, pid = _gpus(looker, pod)[0], lab.container_pid(pod)
        nvml.process(index, pid, memory=20 * GIB)
        nvml.gpu(index, util=0, memory_used=20 * GIB)
        undo.callback(nvml.gpu, index, util=0, memory_used=0)
        undo.callback(nvml.end_process, index, pid)
    looker.expect("gpu-idle", "idle-job", 60, pod=pods["batch"].metadata.name)
    chat = looker.world().pod_by_uid[pods["chat"].metadata.uid]
    assert looker.world().identity(chat).inference is True
    assert [each for each in looker.look() if each.rule in IDLE_RULES and each.labels.get("pod") == chat.name] == []


def _running_pod(lab: Lab, scene: Scene, app: str) -> Any:
    def ready() -> list[Any]:
        found = lab.cluster.core.list_namespaced_pod(scene.name, label_selector=f"app={app}", _request_timeout=60)
        return [pod for pod in found.items if any(part.ready for part in pod.status.container_statuses or ())]

    wait_until(ready, 60, f"{app} is ready")
    return ready()[0]


def _gpus(looker: Looker, pod: Any) -> list[int]:
    """Indexes of the GPUs of a pod."""
    return [gpu.index for gpu in looker.world().gpus_by_pod.get(pod.metadata.uid, ())]
