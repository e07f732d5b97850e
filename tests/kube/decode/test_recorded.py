"""JSON to facts: complete responses recorded from a real API server."""

from __future__ import annotations

from pathlib import Path

import msgspec

from monitor.facts.kube import (
    ConditionFact,
    ContainerStatusFact,
    EventFact,
    NodeRequirementFact,
    OwnerRef,
    PodContainerFact,
    PodFact,
    PodVolumeFact,
    TaintFact,
    TerminationFact,
    TolerationFact,
)
from monitor.facts.queues import QuotaFact
from monitor.kube.decode import stream
from monitor.kube.decode.pod import PodFieldFilter
from monitor.kube.decode.stream import decode_pod_list
from monitor.kube.decode.values import parse_time

FIXTURES = Path(__file__).parents[2] / "fixtures/kube"
KEEP = PodFieldFilter(annotations=frozenset({"scheduling.k8s.io/group-name"}), env=frozenset({"PAI_JOB_NAME"}))
AT = 1614834367.0  # 2021-03-04T05:06:07Z
GIB = 1024.0**3


def recorded(name: str) -> bytes:
    return (FIXTURES / f"{name}-v1.20.2.json").read_bytes()


def test_a_real_pod_in_full() -> None:
    page = decode_pod_list(recorded("pods"), KEEP)
    assert (page.resource_version, page.continue_, page.skipped) == ("211", None, 0)
    pod = page.items[0]
    assert pod == PodFact(
        uid="6ee10d5f-5cd9-407e-89d5-b982041283ee",
        name="train-0",
        namespace="default",
        resource_version="205",
        node="gpu-01",
        phase="Running",
        created_at=parse_time("2026-11-16T03:18:08Z"),
        started_at=AT,
        deletion_at=parse_time("2026-11-16T03:18:38Z"),
        deletion_grace_seconds=30.0,
        finalizers=("example.org/wait",),
        labels={
            "FC_FRAMEWORK_NAME": "f0a1",
            "FC_TASKROLE_NAME": "worker",
            "FC_TASK_INDEX": "0",
            "userName": "zhangsan",
            "virtualCluster": "vision",
        },
        annotations={"scheduling.k8s.io/group-name": "gang-1"},
        env={"PAI_JOB_NAME": "zhangsan~detr-训练"},
        owner=OwnerRef(
            kind="Framework",
            name="f0a1",
            uid="22222222-0000-0000-0000-000000000000",
            api_version="frameworkcontroller.microsoft.com/v1",
        ),
        priority=1000,
        priority_class="normal",
        scheduler="default-scheduler",
        qos="Burstable",
        pod_ip="10.1.0.7",
        requests={"cpu": 64.0, "memory": 128 * GIB, "nvidia.com/gpu": 2.0},
        node_selector={"gpu-model": "A100"},
        node_affinity=(
            (NodeRequirementFact(key="gpu-model", operator="In", values=("A100", "V100")),),
            (NodeRequirementFact(key="metadata.name", operator="In", values=("gpu-01",), field=True),),
        ),
        pod_affinity=True,
        tolerations=pod.tolerations,
        containers=(
            PodContainerFact(name="fetch", image="busybox:1", init=True, requests={"cpu": 64.0, "memory": GIB}),
            PodContainerFact(
                name="main",
                image="harbor.lab:8443/vision/train:7",
                requests={"nvidia.com/gpu": 2.0, "memory": 128 * GIB, "cpu": 0.5},
                limits={"nvidia.com/gpu": 2.0, "memory": 128 * GIB, "cpu": 16.0},
            ),
            PodContainerFact(name="log", image="busybox:1", requests={"cpu": 0.25}),
        ),
        statuses=(
            ContainerStatusFact(
                name="fetch",
                init=True,
                state="terminated",
                reason="Completed",
                exit_code=0,
                started_at=AT,
                finished_at=AT,
                ready=True,
                image_id="docker://sha256:aa",
                container_id="0a1b",
            ),
            ContainerStatusFact(
                name="main",
                state="waiting",
                reason="CrashLoopBackOff",
                message="back-off 1m20s restarting failed container",
                restart_count=4,
                image_id="docker-pullable://harbor.lab:8443/vision/train@sha256:bb",
                container_id="2c3d",
                last=TerminationFact(
                    reason="OOMKilled",
                    message="内存不足",
                    exit_code=137,
                    signal=9,
                    started_at=AT,
                    finished_at=AT + 1800,
                    container_id="2c3d",
                ),
            ),
            ContainerStatusFact(
                name="log",
                state="running",
                started_at=AT,
                ready=True,
                image_id="docker://sha256:aa",
                container_id="4e5f",
            ),
        ),
        conditions=(
            ConditionFact(
                type="Ready",
                status=False,
                reason="ContainersNotReady",
                message="containers with unready status: [main]",
                since=AT,
            ),
        ),
        volumes=(
            PodVolumeFact(name="dshm", kind="emptyDir", medium="Memory", size_limit_bytes=64 * GIB),
            PodVolumeFact(name="nas", kind="nfs", server="nas-1", path="/export/vision"),
            PodVolumeFact(name="home", kind="persistentVolumeClaim", claim="zhangsan-home"),
            PodVolumeFact(name="host", kind="hostPath", path="/mnt/share"),
            PodVolumeFact(name="conf", kind="configMap", names=("settings",)),
            PodVolumeFact(name="key", kind="secret", names=("ssh-key",)),
            PodVolumeFact(name="all", kind="projected", names=("c1", "s1")),
            PodVolumeFact(name="blk", kind="other"),
            PodVolumeFact(name="meta", kind="downwardAPI"),
        ),
    )
    assert pod.tolerations[:2] == (
        TolerationFact(key="dedicated", value="vision", effect="NoSchedule"),
        TolerationFact(operator="Exists"),
    )
    waiting = page.items[1]
    assert waiting.conditions[0].reason == "Unschedulable"
    assert waiting.conditions[0].message == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    assert waiting.scheduler == "volcano"


def test_no_secret_survives_decoding() -> None:
    encoded = msgspec.json.encode(decode_pod_list(recorded("pods"), KEEP).items).decode()
    assert "do-not-keep" not in encoded
    assert "AWS_SECRET_ACCESS_KEY" not in encoded


def test_facts_survive_the_wire() -> None:
    items = decode_pod_list(recorded("pods"), KEEP).items
    assert msgspec.json.decode(msgspec.json.encode(items), type=tuple[PodFact, ...]) == items


def test_a_real_node() -> None:
    (node,) = stream.NODES.page(recorded("nodes")).items
    assert (node.name, node.ready, node.ready_reason, node.ready_since) == (
        "gpu-01",
        None,
        "NodeStatusUnknown",
        parse_time("2021-03-04T06:00:00Z"),
    )
    pressure = {condition.type: condition.status for condition in node.conditions}
    assert pressure == {"MemoryPressure": False, "DiskPressure": True, "Ready": None}
    assert node.taints == (
        TaintFact(key="dedicated", value="vision", effect="NoSchedule"),
        TaintFact(key="node.kubernetes.io/not-ready", effect="NoSchedule"),
    )
    assert (node.capacity["nvidia.com/gpu"], node.allocatable["nvidia.com/gpu"]) == (8.0, 7.0)
    assert (node.allocatable["cpu"], node.allocatable["memory"]) == (95.5, 1000 * GIB)
    assert (node.internal_ip, node.kubelet_version, node.runtime_version) == (
        "10.0.0.11",
        "v1.20.2",
        "docker://20.10.5",
    )
    assert node.labels["gpu-model"] == "A100"


def test_real_events_of_both_ways_of_reporting() -> None:
    old, new = stream.EVENTS.page(recorded("events")).items
    common = {"kind": "Pod", "name": "waiting", "namespace": "default", "involved_uid": "p-1", "type": "Warning"}
    assert old == EventFact(
        uid=old.uid,
        resource_version=old.resource_version,
        container="main",
        reason="Failed",
        message='Failed to pull image "x": rpc error',
        count=7,
        first_at=AT,
        last_at=AT + 600,
        component="kubelet",
        host="gpu-01",
        **common,
    )
    assert (new.count, new.first_at, new.last_at) == (3, AT + 0.25, AT + 1200.5)
    assert (new.component, new.host, new.container) == ("default-scheduler", "master-0", None)


def test_a_real_quota() -> None:
    (quota,) = stream.QUOTAS.page(recorded("resourcequotas")).items
    assert quota == QuotaFact(
        uid=quota.uid,
        name="gpu",
        namespace="default",
        resource_version=quota.resource_version,
        hard={"requests.nvidia.com/gpu": 8.0},
        used={"requests.nvidia.com/gpu": 7.0},
        scopes=("NotTerminating",),
    )
