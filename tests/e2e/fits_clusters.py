"""Random clusters without kubelets, and random requests, for the comparison of `fits` with the scheduler."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from monitor.explain.fits.model import FitsRequest, Workers
from monitor.queries.fits import parse_request

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
MODEL_LABEL = "nvidia.com/gpu.product"
MODELS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-PCIE-40GB", "NVIDIA-H100-80GB-HBM3", "Tesla-V100-SXM2-32GB")
WANTED_MODELS = ("A100", "a100-sxm4", "H100", "V100", "80GB", "A100", "H100", "80gb", "B200")
TAINTS = (
    {"key": "dedicated", "value": "nlp", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "cv", "effect": "NoSchedule"},
    {"key": "maintenance", "value": "", "effect": "NoExecute"},
    {"key": "old", "value": "", "effect": "PreferNoSchedule"},
)
TOLERATED = ("dedicated=nlp", "dedicated", "maintenance:NoExecute", "dedicated=cv:NoSchedule", "old")
NOT_READY = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}
HELD = "example.com/held"


@dataclass
class RandomNode:
    """A node to create, with what is left of it."""

    name: str
    amounts: dict[str, int]  # CPU in millicores, memory in MiB
    labels: dict[str, str]
    taints: list[dict[str, str]]
    cordoned: bool
    ready: bool
    free: dict[str, int] = field(default_factory=dict)

    def manifest(self) -> dict[str, Any]:
        labels = self.labels | {"kubernetes.io/hostname": self.name}
        return {"metadata": {"name": self.name, "labels": labels}}

    def spec(self) -> dict[str, Any]:
        """What admission would add to at creation: new nodes are tainted as not ready."""
        taints = self.taints if self.ready else [*self.taints, NOT_READY]
        return {"spec": {"taints": taints, "unschedulable": self.cordoned}}

    def status(self) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True" if self.ready else "Unknown", "reason": "Kubelet"}
        amounts = quantities(self.amounts)
        conditions = [ready | {"lastHeartbeatTime": now, "lastTransitionTime": now}]
        return {"status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions}}


def quantities(amounts: dict[str, int]) -> dict[str, str]:
    units = {"cpu": "m", "memory": "Mi"}
    return {name: f"{amount}{units.get(name, '')}" for name, amount in amounts.items()}


def random_nodes(chance: random.Random, prefix: str) -> list[RandomNode]:
    """Between 3 and 9 nodes of several kinds."""
    nodes = []
    for index in range(chance.randint(3, 9)):
        gpus = chance.choice((0, 2, 4, 6, 8, 8, 8, 16))
        amounts = {
            "cpu": chance.choice((3900, 15500, 31750, 64000, 96000)),
            "memory": chance.choice((16, 64, 250, 503, 1024)) * 1024 - chance.randrange(1024),
            "pods": chance.choice((3, 6, 20, 110)),
        }
        amounts |= {GPU: gpus} if gpus else {}
        amounts |= {MIG: 7} if chance.random() < 0.2 else {}
        nodes.append(
            RandomNode(
                f"{prefix}-{index}",
                amounts,
                {MODEL_LABEL: chance.choice(MODELS)} if gpus or MIG in amounts else {},
                random_taints(chance),
                chance.random() < 0.06,
                chance.random() > 0.06,
                dict(amounts),
            )
        )
    return nodes


def random_taints(chance: random.Random) -> list[dict[str, str]]:
    """Taints of a node, one for each key."""
    chosen = {taint["key"]: dict(taint) for taint in TAINTS if chance.random() < 0.06}
    return list(chosen.values())


def random_holders(chance: random.Random, nodes: Sequence[RandomNode], prefix: str) -> list[dict[str, Any]]:
    """Pods that are on the nodes already: running, finished and terminating ones."""
    pods = []
    for number in range(chance.randint(0, 5 * len(nodes))):
        node = chance.choice(nodes)
        wanted = {"cpu": chance.choice((0, 100, 1500, 4000)), "memory": chance.choice((0, 128, 5000, 32768))}
        wanted |= {GPU: chance.choice((0, 1, 2, 3, 4, 8)), "pods": 1}
        if any(amount > node.free.get(name, 0) for name, amount in wanted.items()):
            continue
        kind = chance.choice(("runs", "runs", "runs", "runs", "finished", "terminating"))
        if kind != "finished":
            for name, amount in wanted.items():
                node.free[name] = node.free.get(name, 0) - amount
        requests = quantities({name: amount for name, amount in wanted.items() if amount and name != "pods"})
        pod = pod_manifest(f"{prefix}-held-{number}", requests)
        pod["metadata"]["labels"] = {"kind": kind}
        pod["metadata"]["finalizers"] = [HELD] if kind == "terminating" else []
        pod["spec"]["nodeName"] = node.name
        pods.append(pod)
    return pods


def pod_manifest(name: str, requests: dict[str, str]) -> dict[str, Any]:
    resources = {"requests": requests, "limits": {key: text for key, text in requests.items() if "/" in key}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "x", "resources": resources}],
        },
    }


def random_request(chance: random.Random) -> FitsRequest:
    """A job as users ask for it."""
    per_node = chance.choice((1, 1, 2, 3, 4, 6, 8, 8, 16))
    pods = chance.choice((1, 1, 1, 2, 2, 3, 4, 6))
    fields = {"gpus": str(pods * per_node)}
    if chance.random() < 0.75:
        fields["per_node"] = str(per_node)
    if chance.random() < 0.3:
        fields["model"] = chance.choice(WANTED_MODELS)
    if chance.random() < 0.5:
        fields["cpu"] = chance.choice(("100m", "1", "3500m", "8", "31", "64"))
    if chance.random() < 0.5:
        fields["memory"] = chance.choice(("1Gi", "7000Mi", "64Gi", "100GB", "500Gi"))
    if chance.random() < 0.1:
        fields["resource"] = MIG
        fields.pop("model", None)
    tolerated = [text for text in TOLERATED if chance.random() < 0.2]
    return parse_request(fields, tolerated)


def pods_of(request: FitsRequest, workers: Iterable[Workers], nodes: Iterable[RandomNode], name: str) -> list[Any]:
    """The pods that a user would create for the request, in the order of the answer."""
    manifests = []
    for group, each in enumerate(workers):
        requests = {request.resource or GPU: str(each.gpus)}
        if each.cpu_millicores is not None:
            requests["cpu"] = f"{each.cpu_millicores}m"
        if each.memory_bytes is not None:
            requests["memory"] = str(each.memory_bytes)
        for number in range(each.pods):
            manifest = pod_manifest(f"{name}-{group}-{number}", requests)
            manifest["spec"]["tolerations"] = [_toleration(text) for text in request.tolerations]
            if request.model is not None:
                manifest["spec"]["affinity"] = _of_model(request.model, nodes)
            manifests.append(manifest)
    return manifests


def _toleration(text: str) -> dict[str, str]:
    taint, _, effect = text.partition(":")
    key, equals, value = taint.partition("=")
    named = {"key": key, "operator": "Equal", "value": value} if equals else {"key": key, "operator": "Exists"}
    return named | ({"effect": effect} if effect else {})


def _of_model(model: str, nodes: Iterable[RandomNode]) -> dict[str, Any]:
    """Affinity to the products whose names contain the model."""
    products = {node.labels[MODEL_LABEL] for node in nodes if MODEL_LABEL in node.labels}
    chosen = sorted(each for each in products if model.lower().replace("-", "") in each.lower().replace("-", ""))
    term = {"matchExpressions": [{"key": MODEL_LABEL, "operator": "In", "values": chosen or ["none"]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
