"""One-line builders of facts for explanations, and the check of each table row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from monitor.explain.model import Explanation
from monitor.explain.pod import explain_pod
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder, Identity, NodeView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import (
    ConditionFact,
    ContainerStatusFact,
    EventFact,
    NodeFact,
    PodContainerFact,
    PodFact,
    TerminationFact,
)
from monitor.facts.node import NodeSnapshot
from monitor.present.explanation import render_explanation

NOW = 1_763_260_000.0
GPU = "nvidia.com/gpu"
GIB = 1024**3
IMAGE = "harbor.lab/nlp/bert:1"


def pod(
    name: str = "bert-0", *, gpus: float = 0, cpu: float = 1, memory: float = GIB, age: float = 600, **more: Any
) -> PodFact:
    """A pod pending for `age` seconds. With `node` it is bound there."""
    requests = {"cpu": float(cpu), "memory": float(memory)} | ({GPU: float(gpus)} if gpus else {})
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "name": name,
        "namespace": "team-a",
        "phase": "Pending",
        "created_at": NOW - age,
        "requests": requests,
        "containers": (PodContainerFact(name="main", image=IMAGE),),
    }
    return PodFact(**(fields | more))


def holding(name: str, node_name: str, gpus: float, **more: Any) -> PodFact:
    """A running pod that holds GPUs, older than the others unless `age` is given."""
    fields: dict[str, Any] = {"phase": "Running", "age": 90_000, "node": node_name}
    return pod(name, gpus=gpus, **(fields | more))


def node(name: str, *, gpus: float = 8, cpu: float = 96, memory: float = 512 * GIB, **more: Any) -> NodeFact:
    """A healthy, empty node."""
    amounts = {"cpu": float(cpu), "memory": float(memory), "pods": 110.0} | ({GPU: float(gpus)} if gpus else {})
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "name": name,
        "ready": True,
        "allocatable": amounts,
        "capacity": amounts,
    }
    return NodeFact(**(fields | more))


def event(reason: str, message: str, *, about: PodFact | None = None, ago: float = 60, **more: Any) -> EventFact:
    """An event, by default of pod `bert-0`."""
    name = about.name if about else "bert-0"
    fields: dict[str, Any] = {
        "uid": f"uid-event-{reason}-{ago}-{name}-{len(message or '')}",
        "kind": "Pod",
        "name": name,
        "namespace": "team-a",
        "involved_uid": f"uid-{name}",
        "reason": reason,
        "message": message,
        "type": "Warning",
        "first_at": NOW - ago,
        "last_at": NOW - ago,
    }
    return EventFact(**(fields | more))


def unschedulable(message: str, *, ago: float = 300) -> tuple[ConditionFact, ...]:
    """The condition in which a scheduler rejects a pod."""
    return (ConditionFact(type="PodScheduled", status=False, reason="Unschedulable", message=message, since=NOW - ago),)


def waiting(reason: str, message: str | None = None, **more: Any) -> ContainerStatusFact:
    """A waiting container."""
    return ContainerStatusFact(**({"name": "main", "state": "waiting", "reason": reason, "message": message} | more))


def running_container(**more: Any) -> ContainerStatusFact:
    """A container that has been running for an hour."""
    fields: dict[str, Any] = {
        "name": "main",
        "state": "running",
        "started_at": NOW - 3600,
        "ready": True,
        "container_id": "c" * 64,
    }
    return ContainerStatusFact(**(fields | more))


def looping(code: int | None, *, reason: str = "Error", message: str | None = None, **more: Any) -> ContainerStatusFact:
    """A container in CrashLoopBackOff, with its last termination."""
    last = TerminationFact(reason=reason, message=message, exit_code=code, started_at=NOW - 400, finished_at=NOW - 300)
    return waiting(
        "CrashLoopBackOff", "back-off 5m0s restarting failed container", **({"restart_count": 7, "last": last} | more)
    )


def gpu_view(node_name: str, index: int, state: GpuState, holder: PodFact | None = None, **more: Any) -> GpuView:
    """A GPU in the cluster view."""
    holders = (Holder(pod_uid=holder.uid, pod=holder.name, namespace=holder.namespace, live=True),) if holder else ()
    fields: dict[str, Any] = {
        "node": node_name,
        "index": index,
        "uuid": f"GPU-{node_name}-{index}",
        "state": state,
        "holders": holders,
    }
    return GpuView(**(fields | more))


def view(
    *, free: dict[str, int] | None = None, cards: Iterable[GpuView] = (), models: dict[str, str] | None = None
) -> ClusterView:
    """A cluster view with free GPUs per node, and GPUs."""
    nodes = tuple(
        NodeView(name=name, free=count, model=(models or {}).get(name)) for name, count in (free or {}).items()
    )
    return ClusterView(at=NOW, nodes=nodes, gpus=tuple(cards))


def agent(node_name: str, **parts: Any) -> AgentFact:
    """An agent that answers with this snapshot."""
    snapshot = NodeSnapshot(node=node_name, at=NOW, agent_version="0.1.0", **parts)
    return AgentFact(target=f"{node_name}:9835", node=node_name, snapshot=snapshot, received_at=NOW)


def owned(**users: str) -> dict[str, Identity]:
    """Identities by pod name (with _ for -) and user."""
    return {f"uid-{name.replace('_', '-')}": Identity(user=user) for name, user in users.items()}


@dataclass(frozen=True)
class Case:
    """A table row: a situation, and texts that the English explanation must and must not contain."""

    name: str
    pod: PodFact
    cause: str
    says: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    status: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def names(cases: Iterable[Case]) -> list[str]:
    return [case.name for case in cases]


def facts_of(case: Case) -> ClusterFacts:
    others = case.facts.get("pods", ())
    return make_cluster_facts(**(case.facts | {"pods": (case.pod, *others)}))


def check(case: Case, status: str = "pending") -> Explanation:
    """Explain the case and compare with its row, whose status takes precedence over the table's."""
    explanation = explain_pod(case.pod, facts_of(case), NOW)
    text = english(explanation)
    assert (explanation.status, explanation.cause) == (case.status or status, case.cause), text
    assert [part for part in case.says if part not in text] == [], text
    assert [part for part in case.silent if part in text] == [], text
    assert_renders(explanation)
    return explanation


def english(explanation: Explanation) -> str:
    return "\n".join(render_explanation(explanation, "en"))


def assert_renders(explanation: Explanation) -> None:
    """No line is empty or has unfilled values, and both languages have the same number of lines."""
    lines = {lang: render_explanation(explanation, lang) for lang in ("en", "zh")}
    assert len(lines["en"]) == len(lines["zh"])
    for line in (*lines["en"], *lines["zh"]):
        assert line.strip(" ->")
        assert line.isprintable(), line
    assert any("一" <= letter <= "鿿" for letter in "".join(lines["zh"]))
