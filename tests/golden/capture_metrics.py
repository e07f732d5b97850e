"""Both `/metrics` pages for fixed inputs, and the list of all metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unittest.mock import MagicMock

from prometheus_client.parser import text_string_to_metric_families

from monitor.agent.metrics import AgentMetrics as AgentExposition
from monitor.alert.delivery.stats import DeliveryStats
from monitor.alert.model import Alert, Phase
from monitor.alert.mute import AlertView
from monitor.cleanup.totals import CleanupTotals
from monitor.daemon.metrics import DaemonMetrics, MetricArea, alerts, catalogue, cleanup, cluster, findings, own, pods
from monitor.daemon.metrics.collect import MetricsDeps
from monitor.daemon.metrics.findings import FindingsSnapshot
from monitor.daemon.metrics.own import DaemonStatus
from monitor.daemon.pod_health import PodHealth, UnhealthyPod
from monitor.explain.model import PodRef
from monitor.facts.cluster import (
    ClusterView,
    FreeView,
    GpuState,
    GpuView,
    Holder,
    Identity,
    NodeView,
    PodView,
    QueueView,
    ShareView,
    SourceView,
    UsageView,
)
from monitor.facts.findings import LABELS, Finding, Severity
from monitor.facts.services import ServiceFact
from monitor.facts.text import Text
from tests.golden.text import rows
from tests.support.snapshots import AT, GIB, full_snapshot

HOLDER = Holder(namespace="nlp", pod="bert-0", user="zhang", job="bert", queue="vc-nlp")
NOTE = Text(key="x")


def agent_metrics() -> str:
    """The agent's page of a node with every fact known."""
    return AgentExposition().render(full_snapshot()).decode()


def daemon_metrics() -> str:
    """The daemon's page of a small cluster with a sample of every metric."""
    given: tuple[tuple[str, Any, Any], ...] = (
        ("own", _own(), own.families),
        ("cluster", _view(), cluster.ClusterFamilies()),
        ("findings", _found(), findings.FindingFamilies("lab")),
        ("services", _services(), findings.service_families),
        ("pods", _unwell(), pods.families),
        ("alerts", _alerts(), alerts.families),
        ("post", _traffic(), alerts.delivery_families),
        ("cleanup", _cleaned(), cleanup.families),
    )
    areas = [MetricArea(name, lambda value=value: value, families) for name, value, families in given]  # type: ignore[misc]  # a lambda's default has no type
    return DaemonMetrics(areas).render().decode()


def daemon_areas() -> str:
    """Areas of the daemon's page in order, wired as in the daemon."""
    nobody = MagicMock()
    wired = MetricsDeps(nobody, nobody, nobody, nobody).daemon_metrics()
    return rows([area.name] for area in wired._areas)


def agent_names() -> str:
    """Name, type and labels of every metric of the agent."""
    return _names(agent_metrics())


def daemon_names() -> str:
    """Name, type and labels of every metric in the daemon's catalogue."""
    return rows([each.name, each.kind, ",".join(each.labels)] for each in catalogue())


def _names(text: str) -> str:
    def labels(samples: Iterable[Any]) -> str:
        return ",".join(dict.fromkeys(name for sample in samples for name in sample.labels))

    families = text_string_to_metric_families(text)
    return rows([each.samples[0].name, each.type, labels(each.samples)] for each in families)


def _own() -> DaemonStatus:
    return DaemonStatus(
        version="1.2.3",
        now=AT,
        view_at=AT - 2,
        evaluated_at=AT - 3,
        evaluation_seconds=0.25,
        lease_held=True,
        reload_ok=True,
        loaded_at=AT - 60,
    )


def _view() -> ClusterView:
    usage = UsageView(
        gpus=1, gpu_memory_bytes=GIB, gpu_utilization_ratio=0.5, shm_bytes=7, cpu_cores=2.5, memory_bytes=GIB,
        disk_bytes=11,
    )  # fmt: skip
    cards = (
        GpuView(node="n1", state=GpuState.BUSY, index=0, uuid="GPU-a", model="A100", since=AT - 5, holders=(HOLDER,)),
        GpuView(node="n1", state=GpuState.FREE, index=1, uuid="GPU-b", model="A100"),
        *(GpuView(node="n2", state=state, index=number) for number, state in enumerate(GpuState)),
    )
    return ClusterView(
        at=AT - 2,
        nodes=(
            NodeView(name="n1", ready=True, schedulable=False, in_kubernetes=True, has_agent=True, requested=1, free=1),
            NodeView(
                name="n2", has_agent=True, silent_since=AT - 60,
                shares=(ShareView(resource="volcano.sh/vgpu-memory", unit="mib", total=81920, used=8000),),
            ),
        ),
        gpus=cards,
        pods=(
            PodView(
                uid="u", name="bert-0", namespace="nlp", phase="Running", node="n1", requested_gpus=1,
                gpu_shares={"volcano.sh/vgpu-memory": 8000},
                identity=Identity(user="zhang", job="bert", queue="vc-nlp"),
            ),
        ),
        free=(FreeView(model="A100", total=2, free=1, largest_on_one_node=1),),
        queues=(
            QueueView(
                name="vc-nlp", used=1, waiting=2, capacity=4, free=3, used_shares={"volcano.sh/vgpu-memory": 8000},
                waiting_shares={"volcano.sh/vgpu-memory": 4000}, capacity_shares={"volcano.sh/vgpu-memory": 16000},
            ),
        ),
        users={"zhang": usage, 'a"}\nb\\中': UsageView(gpus=2)},
        sources=(SourceView(name="pods", ok=True), SourceView(name="agents", ok=False)),
    )  # fmt: skip


def _finding(severity: Severity, **more: Any) -> Finding:
    labels = {name: f"a-{name}" for name in LABELS if name != "cluster"}
    given: dict[str, Any] = {"labels": labels, "cause": "idle", "headline": NOTE, "since": AT - 60}
    return Finding(rule="gpu-idle", severity=severity, **(given | more))


def _found() -> FindingsSnapshot:
    found = (
        _finding(Severity.WARNING, held=True),
        _finding(Severity.INFO, labels={"node": "n1"}, explained_by="node-down|node=n1", since=None),
    )
    return FindingsSnapshot(found, ("gpu-idle", "node-down"))


def _services() -> tuple[ServiceFact, ...]:
    return (
        ServiceFact(name="harbor", kind="harbor", target="", ok=True, at=AT, latency_seconds=0.25),
        ServiceFact(name="portal", kind="http", target="", ok=False, at=AT),
    )


def _unwell() -> PodHealth:
    pod = PodRef(namespace="nlp", name="bert-0", user="zhang", job="bert", queue="vc-nlp")
    return PodHealth((UnhealthyPod(pod, "pending", "quota"),), {("pending", "quota"): 3}, 2)


def _alerts() -> tuple[AlertView, ...]:
    def shown(phase: Phase, **more: Any) -> AlertView:
        alert = Alert(
            fingerprint="f", finding=_finding(Severity.CRITICAL), phase=phase, first_seen_at=AT, seen_at=AT
        )  # fmt: skip
        return AlertView(alert=alert, **more)

    return (
        shown(Phase.PENDING),
        shown(Phase.FIRING),
        shown(Phase.FIRING, silenced_by="s"),
        shown(Phase.FIRING, in_maintenance=True),
        shown(Phase.FIRING, explained_by="x"),
        shown(Phase.RESOLVED),
    )


def _traffic() -> tuple[DeliveryStats, ...]:
    outcomes = {"sent": 3, "failed": 2, "parked": 1}
    return (DeliveryStats(receiver="bot", waiting=2, parked=1, outcomes=outcomes, took=4.0, failing_since=AT - 9),)


def _cleaned() -> CleanupTotals:
    return CleanupTotals({("images", "done"): 2}, {("images", "failed"): 1}, {"images": GIB}, {"images": AT - 90})
