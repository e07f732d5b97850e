"""Cluster: GPUs by state, free capacity, nodes, current findings."""

from __future__ import annotations

from dashboards.generate import styles
from dashboards.generate.board import Board, Row
from dashboards.generate.findings import findings
from dashboards.generate.panels import bars, figure, series, timeline
from dashboards.generate.promql import NODE, bottom, by_node, count, one, rate, top, total
from dashboards.generate.tables import Column, table

WASTED = "idle-held|zombie|orphan|ghost|wedged|phantom"


def _gpus(selector: str = "") -> str:
    return one(f"gpuwarden_gpus{{{NODE}{selector}}}", "node", "model", "state")


def _number(selector: str) -> str:
    return total(_gpus(selector), _gpus())


_QUEUE = 'queue=~"$queue"'
_WAITING = one(f"gpuwarden_queue_waiting_gpus{{{_QUEUE}}}", "queue")
_READY = one(f"gpuwarden_node_ready{{{NODE}}}", "node")
_SERVICES = one("gpuwarden_service_up", "service")
_CRITICAL = one('gpuwarden_findings{severity="critical"}', "rule", "severity")
_RULES = one("gpuwarden_findings", "rule", "severity")
_DISK_SHARE = "gpuwarden_disk_used_bytes / (gpuwarden_disk_used_bytes + gpuwarden_disk_available_bytes)"

NOW = Row(
    "cluster.now",
    (
        figure("cluster.gpus", f"sum({_gpus()})"),
        figure("cluster.free", _number(',state="free"'), styles.WARN_AT_ZERO),
        figure("cluster.wasted", _number(f',state=~"{WASTED}"'), styles.WARN_ABOVE_ZERO),
        figure("cluster.faulty", _number(',state=~"faulty|unknown"'), styles.CRITICAL_ABOVE_ZERO),
        figure("cluster.waiting", f"sum({_WAITING})", styles.WARN_ABOVE_ZERO),
        figure("cluster.nodes-down", count(f"{_READY} == 0", _READY), styles.CRITICAL_ABOVE_ZERO),
        figure("cluster.critical", total(_CRITICAL, _RULES), styles.CRITICAL_ABOVE_ZERO),
        figure("cluster.services-down", count(f"{_SERVICES} == 0", _SERVICES), styles.CRITICAL_ABOVE_ZERO),
    ),
)

FINDINGS = Row("cluster.findings", (findings("cluster.findings", 'explained="false"'),))

GPUS = Row(
    "cluster.gpus",
    (
        series("cluster.states", (f"sum by (state) ({_gpus()})", "{{state}}"), stacked=True, palette="state"),
        bars("cluster.states-now", (f"sum by (state) ({_gpus()})", "{{state}}"), palette="state"),
        bars("cluster.by-user", (f"topk(15, {one('gpuwarden_user_gpus', 'user')} > 0)", "{{user}}"), link="user"),
        table(
            "cluster.by-model",
            [
                one("gpuwarden_free_gpus", "model"),
                one("gpuwarden_free_gpus_largest_on_one_node", "model"),
                f"sum by (model) ({_gpus()})",
            ],
            [
                Column("model", "model"),
                Column("C", "gpus"),
                Column("A", "free", styles.WARN_AT_ZERO),
                Column("B", "largest-on-one-node", styles.WARN_AT_ZERO),
            ],
            width=10,
            sort_by=("gpus", True),
        ),
        table(
            "cluster.queues",
            [
                one(f"gpuwarden_queue_used_gpus{{{_QUEUE}}}", "queue"),
                one(f"gpuwarden_queue_capacity_gpus{{{_QUEUE}}}", "queue"),
                one(f"gpuwarden_queue_free_gpus{{{_QUEUE}}}", "queue"),
                _WAITING,
            ],
            [
                Column("queue", "queue", link="queue"),
                Column("A", "used"),
                Column("B", "capacity"),
                Column("C", "free", styles.WARN_AT_ZERO),
                Column("D", "waiting", styles.WARN_ABOVE_ZERO),
            ],
            width=14,
            sort_by=("waiting", True),
        ),
        series(
            "cluster.queue-used", (one(f"gpuwarden_queue_used_gpus{{{_QUEUE}}}", "queue"), "{{queue}}"), stacked=True
        ),
        series("cluster.queue-waiting", (_WAITING, "{{queue}}"), stacked=True, link="queue"),
    ),
)

NODES = Row(
    "cluster.nodes",
    (
        table(
            "cluster.nodes",
            [
                _READY,
                one(f"gpuwarden_node_schedulable{{{NODE}}}", "node"),
                one(f"gpuwarden_node_agent_silent{{{NODE}}}", "node"),
                f"sum by (node) ({_gpus()})",
                one(f"gpuwarden_node_requested_gpus{{{NODE}}}", "node"),
                one(f"gpuwarden_node_free_gpus{{{NODE}}}", "node"),
                by_node("gpuwarden_gpu_utilization_ratio", how="avg"),
                by_node("gpuwarden_gpu_temperature_celsius"),
                by_node("1 - gpuwarden_host_memory_available_bytes / gpuwarden_host_memory_total_bytes"),
                by_node(_DISK_SHARE),
            ],
            [
                Column("node", "node", link="node-gpus"),
                Column("A", "ready", styles.READY, width=90),
                Column("B", "scheduling", styles.SCHEDULABLE, width=90),
                Column("C", "agent", styles.SILENT, width=90),
                Column("D", "gpus", width=70),
                Column("E", "requested", width=90),
                Column("F", "free", styles.WARN_AT_ZERO, width=80),
                Column("G", "utilization", styles.RATIO),
                Column("H", "hottest", styles.CELSIUS, width=90),
                Column("I", "memory", styles.MEMORY_RATIO),
                Column("J", "fullest-disk", styles.DISK_RATIO),
            ],
            height=12,
            sort_by=("node", False),
        ),
        series(
            "cluster.node-utilization",
            (bottom(by_node("gpuwarden_gpu_utilization_ratio", how="avg"), 60), "{{node}}"),
            style=styles.RATIO,
            link="node-gpus",
        ),
        series(
            "cluster.node-load",
            (top(by_node("gpuwarden_host_load1 / gpuwarden_host_cpus"), 60), "{{node}}"),
            style=styles.LOAD_RATIO,
            link="node-gpus",
        ),
        series(
            "cluster.node-network",
            (top(by_node(rate("gpuwarden_host_network_received_bytes_total"))), "{{node}} <received>"),
            (top(by_node(rate("gpuwarden_host_network_transmitted_bytes_total"))), "{{node}} <sent>"),
            style=styles.BYTES_PER_SECOND,
            link="node-gpus",
        ),
    ),
)

TREND = Row(
    "cluster.trend",
    (
        series(
            "cluster.by-severity", (f"sum by (severity) ({_RULES})", "{{severity}}"), stacked=True, palette="severity"
        ),
        bars(
            "cluster.by-rule",
            (f"sort_desc(sum by (rule) ({_RULES}) > 0)", "{{rule}}"),
            style=styles.WARN_ABOVE_ZERO,
            width=12,
        ),
    ),
)

SERVICES = Row(
    "cluster.services",
    (
        timeline("cluster.services", (_SERVICES, "{{service}}"), styles.UP),
        series(
            "cluster.probe-duration",
            (one("gpuwarden_service_probe_duration_seconds", "service"), "{{service}}"),
            style=styles.PROBE_SECONDS,
        ),
    ),
)

DASHBOARD = Board("cluster", ("node", "queue"), (NOW, FINDINGS, GPUS, NODES, TREND, SERVICES))
