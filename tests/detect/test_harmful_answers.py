# ruff: noqa: E501  # messages are quoted in full
"""Answers that once sent the admin elsewhere, from the API server's JSON to the text of the alert."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from monitor.detect.base import RuleContext
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules import RULES
from monitor.explain.not_created import explain_name
from monitor.facts.cluster import ClusterView
from monitor.facts.facts_index import make_cluster_facts
from monitor.kube.decode import stream
from monitor.kube.decode.pod import PodFieldFilter
from monitor.kube.decode.values import parse_time
from tests.detect.builders_pods import text
from tests.explain.builders import english

CREATED, SEEN_AT = "2026-11-18T06:00:00Z", "2026-11-18T06:30:00Z"
NOW = parse_time("2026-11-18T06:31:00Z") or 0.0
UNPACK = 'Failed to pull image "team/llm:v2": rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/team/llm:v2": '
HEAD = UNPACK + 'failed to resolve reference "docker.io/team/llm:v2": failed to do request: Head '
RUNC = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "


def meta(name: str = "train-0", **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": CREATED, **more}


def pod(status: dict[str, Any], node: str | None = "gpu-01", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "team/llm:v2"}]
    return {"metadata": meta(), "spec": {"nodeName": node, "containers": containers, **spec}, "status": status}


def waiting(reason: str, message: str) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "main", "state": state}]}


def unscheduled(message: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition | {"lastTransitionTime": CREATED}]}


def event(reason: str, message: str, kind: str = "Pod", name: str = "train-0") -> dict[str, Any]:
    involved = {"kind": kind, "namespace": "team", "name": name, "uid": f"uid-{name}"}
    times = {"firstTimestamp": SEEN_AT, "lastTimestamp": SEEN_AT, "count": 3}
    return {
        "metadata": meta(f"{name}.{reason}"),
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        **times,
    }


def node(name: str = "gpu-01", **spec: Any) -> dict[str, Any]:
    amounts = {"cpu": "96", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "metadata": meta(name),
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }


def taint(key: str) -> dict[str, str]:
    return {"key": key, "effect": "NoSchedule"}


@dataclass(frozen=True)
class Outage:
    """What the API server lists, the rule and cause of the alert, and what it must and must not say."""

    name: str
    pod: dict[str, Any]
    rule: str
    cause: str
    says: tuple[str, ...]
    silent: tuple[str, ...] = ()
    lists: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


OUTAGES = [
    Outage("a malformed tar is no damaged store", pod(waiting("ErrImagePull", UNPACK + "failed to extract layer sha256:3b69: archive/tar: invalid tar header: unknown")), "image-pull", "bad-image", ("malformed", "Build team/llm:v2 again"), ("rain the node", "image store of")),
    Outage("a dead proxy is no registry that is down", pod(waiting("ErrImagePull", HEAD + '"https://registry-1.docker.io/v2/team/llm/manifests/v2": proxyconnect tcp: dial tcp 127.0.0.1:1082: connect: connection refused')), "image-pull", "proxy", ("127.0.0.1:1082", "HTTPS_PROXY"), ("docker.io refuses", "Is the registry up")),
    Outage("a dead mirror is no registry that is down", pod(waiting("ErrImagePull", HEAD + '"http://127.0.0.1:65001/v2/team/llm/manifests/v2?ns=docker.io": dial tcp 127.0.0.1:65001: connect: connection refused')), "image-pull", "mirror", ("127.0.0.1:65001", "Dragonfly"), ("docker.io refuses",)),
    Outage("a snapshotter's not found is no missing image", pod(waiting("ErrImagePull", UNPACK + 'failed to prepare extraction snapshot "extract-9 sha256:e9": parent snapshot sha256:e1 does not exist: not found')), "image-pull", "node-store", ("image store of gpu-01 is inconsistent",), ("does not exist in", "push it again")),
    Outage("a proxy without TLS is no registry without TLS", pod(waiting("ErrImagePull", HEAD + '"https://registry-1.docker.io/v2/team/llm/manifests/v2": proxyconnect tcp: tls: first record does not look like a TLS handshake')), "image-pull", "proxy", ("HTTP proxy", "scheme"), ("insecure-registries", "requires HTTPS")),
    Outage("disk pressure beside a control plane is nothing to tolerate", pod(unscheduled("0/2 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }."), node=None), "pod-pending", "taint", ("disk",), ("toleration",), {"nodes": [node("cp", taints=[taint("node-role.kubernetes.io/control-plane")]), node(taints=[taint("node.kubernetes.io/disk-pressure")])]}),
    Outage("the same, if the scheduler alone knows", pod(unscheduled("0/2 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }."), node=None), "pod-pending", "taint", ("disk pressure", "Free space"), ("toleration",), {"nodes": [node()]}),
    Outage("YuniKorn has looked at the pod", pod({"phase": "Pending"}, node=None, schedulerName="yunikorn"), "pod-pending", "quota", ("yunikorn has queued it",), ("no scheduler",), {"nodes": [node()], "events": [event("Scheduling", "team/train-0 is queued and waiting for allocation")]}),
    Outage("an emptyDir over its limit is no node without memory", pod({"phase": "Failed", "reason": "Evicted", "message": 'Usage of EmptyDir volume "dshm" exceeds the limit "64Gi". ', "startTime": SEEN_AT}), "pod-start-failed", "evicted", ("its own sizeLimit", "gpu-01 is fine"), ("short of memory", "requests.memory")),
    Outage("AppArmor is no start file", pod(waiting("CreateContainerError", 'failed to create containerd container: load apparmor profile /tmp/cri-containerd.apparmor.d36: parser error(""): exec: "apparmor_parser": executable file not found in $PATH')), "pod-start-failed", "security-profile", ("AppArmor profile",), ("start file", "start command")),
    Outage("a device that was not allocated is reported", pod({"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "Allocate failed due to rpc error: code = Unavailable desc = error reading from server: EOF, which is unexpected", "startTime": SEEN_AT}), "pod-start-failed", "refused", ("device plugin",)),
    Outage("a driver mismatch is no configuration", pod(waiting("RunContainerError", RUNC + "error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown")), "pod-start-failed", "gpu-driver", ("reboot gpu-01",), ("configuration",)),
]  # fmt: skip


def facts_of(lists: dict[str, list[dict[str, Any]]]) -> Any:
    kinds: dict[str, Any] = {"pods": stream.pods(PodFieldFilter()), "nodes": stream.NODES, "events": stream.EVENTS}
    kinds |= {"pod_groups": stream.POD_GROUPS, "workloads": stream.WORKLOADS}
    decoded = {}
    for name, items in lists.items():
        page = kinds[name].page(json.dumps({"metadata": {"resourceVersion": "9"}, "items": items}).encode())
        assert page.problem is None, page.problem
        decoded[name] = page.items
    return make_cluster_facts(view=ClusterView(at=NOW), **decoded)


@pytest.mark.parametrize("outage", OUTAGES, ids=[outage.name for outage in OUTAGES])
def test_alert(outage: Outage) -> None:
    context = RuleContext(facts_of({"pods": [outage.pod], **outage.lists}), NOW)
    findings = detect(RULES, {}, context, DetectionHistory()).findings
    assert [(finding.rule, finding.cause) for finding in findings] == [(outage.rule, outage.cause)]
    said = text(findings[0])
    assert [part for part in outage.says if part not in said] == [], said
    assert [part for part in outage.silent if part in said] == [], said
    assert text(findings[0], "zh")


GROUP = {
    "metadata": meta(
        "train-pg", ownerReferences=[{"kind": "Job", "name": "train", "uid": "uid-job", "controller": True}]
    ),
    "spec": {"minMember": 4, "queue": "nlp"},
    "status": {"phase": "Pending"},
}
WORKLOAD = {
    "metadata": meta(
        "job-train", ownerReferences=[{"kind": "Job", "name": "train", "uid": "uid-job", "controller": True}]
    ),
    "spec": {"queueName": "nlp", "podSets": [{"name": "main", "count": 4, "template": {"spec": {"containers": []}}}]},
    "status": {
        "conditions": [
            {
                "type": "QuotaReserved",
                "status": "False",
                "reason": "Pending",
                "message": "couldn't assign flavors to pod set main: no topology domains at level: kubernetes.io/hostname",
                "lastTransitionTime": CREATED,
            }
        ]
    },
}


def test_a_full_volcano_queue_is_not_a_question_of_missing_pods() -> None:
    events = [
        event("Unschedulable", "0/0 tasks in gang unschedulable: pod group is not ready, 4 minAvailable", "PodGroup", "train-pg"),
        event("Unschedulable", "queue resource quota insufficient", "PodGroup", "train-pg"),
    ]  # fmt: skip
    said = english(explain_name("train", None, facts_of({"pod_groups": [GROUP], "events": events}), NOW))
    assert "Its queue has no room for it" in said
    assert "not created" not in said


def test_a_missing_topology_is_nothing_to_wait_for() -> None:
    said = english(explain_name("train", None, facts_of({"workloads": [WORKLOAD]}), NOW))
    assert "The topology that it requires has no domain" in said
    assert "Wait until" not in said
