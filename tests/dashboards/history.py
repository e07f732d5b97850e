"""Twenty minutes of a cluster with a value for every metric: two agents and two replicas of the daemon."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from prometheus_client import ProcessCollector
from prometheus_client.parser import text_string_to_metric_families

from monitor.agent.metrics import AgentMetrics
from monitor.daemon.metrics import catalogue
from monitor.facts import ContainerFact, ContainerUsageFact, EvictionFact, KubeletFact, NodeSnapshot
from tests.dashboards.known import SCRAPE_METRICS, metrics
from tests.support.snapshots import AT, CARD, GIB, full_snapshot

Series = tuple[str, dict[str, str], float]
STEP_SECONDS, LENGTH_SECONDS = 15, 20 * 60
# Labels that the daemon exports for the snapshot's node and the holder of its GPU.
DAEMON_LABELS = {
    "alertname": "GpuFault", "area": "cluster", "cause": "xid", "cluster": "lab", "condition": "GpuXidError",
    "container": "trainer",
    "explained": "false", "gpu": "0", "held": "true", "image": "harbor.lab/nlp/bert:1", "model": "A100", "mount": "/",
    "namespace": "team-a", "node": "gpu-01", "outcome": "failed", "phase": "Pending", "pod": "bert-0",
    "policy": "images", "queue": "research", "receiver": "wecom", "resource": "volcano.sh/vgpu-number",
    "rule": "gpu-fault", "service": "harbor", "severity": "critical", "source": "agents", "status": "pending",
    "unit": "slot", "user": "li.lei", "uuid": CARD,
    "version": "0.1.0", "workload": "bert",
}  # fmt: skip
# Values of the label `state` on metrics where it is not the state of a GPU.
STATES = {"gpuwarden_alerts": "firing", "gpuwarden_outbox_messages": "parked"}
# Gauges that forecasts extrapolate, in units per second.
SLOPES = {"gpuwarden_disk_available_bytes": -1024.0 * 1024, "gpuwarden_container_log_bytes": 100.0}
COUNTER_SLOPE = 0.5


def snapshot(node: str) -> NodeSnapshot:
    """The full snapshot with the agent's own container, and with the kubelet's thresholds as ratios and as sizes."""
    full, own = full_snapshot(), "e" * 64
    marks = KubeletFact(
        image_gc_high_ratio=0.85,
        image_gc_low_ratio=0.8,
        eviction_hard=tuple(
            EvictionFact(signal=signal, available_ratio=0.1, available_bytes=50 * GIB)
            for signal in ("nodefs.available", "imagefs.available")
        ),
    )
    agent = ContainerFact(
        id=own, runtime="docker", state="running", pod_name="gpuwarden-agent-x7k2p", namespace="gpuwarden",
        container="agent", pod_uid="own",
    )  # fmt: skip
    use = ContainerUsageFact(container_id=own, cpu_cores=0.02, memory_bytes=GIB // 16)
    return msgspec.structs.replace(
        full,
        node=node,
        kubelet=marks,
        containers=(*(full.containers or ()), agent),
        container_usage=(*(full.container_usage or ()), use),
    )


def _agent(node: str) -> Iterable[Series]:
    text = AgentMetrics().render(snapshot(node)).decode()
    if node != "gpu-01":  # GPUs of another node have other uuids
        text = text.replace("GPU-0000000", "GPU-1000000")
    target = {"instance": f"{node}:9835", "job": "gpuwarden-agent"}
    for family in text_string_to_metric_families(text):
        yield from ((sample.name, {**sample.labels, **target}, sample.value) for sample in family.samples)
    yield from ((name, target, 1.0) for name in SCRAPE_METRICS)


def _daemon(replica: str) -> Iterable[Series]:
    target = {"instance": f"{replica}:9836", "job": "gpuwarden-daemon"}
    for each in catalogue():
        labels = {
            name: STATES.get(each.name, "busy") if name == "state" else DAEMON_LABELS[name] for name in each.labels
        }
        yield each.name, {**labels, **target}, AT - 60 if each.name.endswith("_since_seconds") else 1.0
    for family in ProcessCollector(registry=None).collect():
        yield from ((sample.name, {**sample.labels, **target}, sample.value) for sample in family.samples)
    yield from ((name, target, 1.0) for name in SCRAPE_METRICS)


def openmetrics() -> str:
    """All series up to the time of the snapshot, in the format of `promtool tsdb create-blocks-from`."""
    series = [each for node in ("gpu-01", "gpu-02") for each in _agent(node)]
    series += [each for replica in ("a", "b") for each in _daemon(replica)]
    lines = []
    for name, labels, value in series:
        shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items() if text)
        slope = COUNTER_SLOPE if metrics()[name].counter else SLOPES.get(name, 0.0)
        lines += [
            f"{name}{{{shown}}} {value - slope * ago} {AT - ago}" for ago in range(LENGTH_SECONDS, -1, -STEP_SECONDS)
        ]
    return "\n".join((*lines, "# EOF", ""))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
