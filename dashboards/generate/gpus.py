"""GPU and jobs: the selected GPUs, users, queues and namespaces."""

from __future__ import annotations

from dashboards.generate import jobs, styles
from dashboards.generate.board import Board, Row
from dashboards.generate.panels import Localized, figure, heat_map, series, timeline
from dashboards.generate.promql import (
    GPU_STATE,
    GPUS,
    HELD_BY,
    IN_POD,
    bottom,
    by_gpu_uuid,
    by_node,
    count,
    grown,
    numbered,
    of_gpus,
    one,
    rate,
    top,
    total,
)
from dashboards.generate.tables import Column, table

_GPU = "{{node}} GPU {{gpu}}"

_KNOWN = one(f"gpuwarden_gpu_state{{{GPUS}}}", "node", "gpu")


def _in_state(states: str) -> str:
    return count(one(f'gpuwarden_gpu_state{{state=~"{states}",{GPUS}}}', "node", "gpu"), _KNOWN)


NOW = Row(
    "gpus.now",
    (
        figure("gpus.count", f"count({_KNOWN})"),
        figure("gpus.utilization", f"avg({of_gpus('gpuwarden_gpu_utilization_ratio')})", styles.RATIO),
        figure("gpus.idle", _in_state("idle-held"), styles.WARN_ABOVE_ZERO),
        figure("gpus.zombie", _in_state("zombie|wedged|phantom"), styles.CRITICAL_ABOVE_ZERO),
        figure("gpus.orphan", _in_state("orphan|ghost"), styles.CRITICAL_ABOVE_ZERO),
        figure("gpus.faulty", _in_state("faulty"), styles.CRITICAL_ABOVE_ZERO),
        figure("gpus.power", f"sum({of_gpus('gpuwarden_gpu_power_watts')})", styles.WATT),
        figure(
            "gpus.waiting",
            total(
                one(f'gpuwarden_pod_requested_gpus{{phase="Pending",{HELD_BY}}}', "namespace", "pod"),
                "gpuwarden_pod_requested_gpus",
            ),
            style=styles.WARN_ABOVE_ZERO,
        ),
    ),
)


def _gpu_table() -> Localized:
    labels = ("uuid", "node", "gpu", "model", "state", "user", "namespace", "pod", "workload", "queue")
    return table(
        "gpus.gpu-table",
        [
            f"max by ({', '.join(labels)}) ({GPU_STATE})",
            f"1000 * {by_gpu_uuid('gpuwarden_gpu_state_since_seconds')}",
            by_gpu_uuid("gpuwarden_gpu_utilization_ratio"),
            by_gpu_uuid("gpuwarden_gpu_memory_used_bytes / gpuwarden_gpu_memory_total_bytes"),
            by_gpu_uuid("gpuwarden_gpu_power_watts"),
            by_gpu_uuid("gpuwarden_gpu_temperature_celsius"),
        ],
        [
            Column("node", "node", link="node-storage"),
            Column("gpu", "gpu", width=60),
            Column("model", "model"),
            Column("state", "state", styles.STATE, width=110),
            Column("B", "since", styles.SINCE),
            Column("C", "utilization", styles.RATIO),
            Column("D", "gpu-memory", styles.RATIO),
            Column("E", "power", styles.WATT, width=80),
            Column("F", "temperature", styles.CELSIUS, width=80),
            Column("user", "user", link="user"),
            Column("namespace", "namespace", link="namespace"),
            Column("pod", "pod"),
            Column("workload", "job"),
            Column("queue", "queue", link="queue"),
        ],
        height=11,
        hidden=("uuid", "Value #A"),
        sort_by=("node", False),
    )


GPU_ROW = Row(
    "gpus.gpus",
    (
        _gpu_table(),
        timeline(
            "gpus.timeline",
            (top(numbered("gpuwarden_gpu_state", GPUS, "state", tuple(styles.STATES), "node", "gpu"), 100), _GPU),
            styles.STATE_NUMBER,
            width=24,
            height=10,
        ),
        heat_map(
            "gpus.heat-map",
            (bottom(of_gpus("avg_over_time(gpuwarden_gpu_utilization_ratio[$__rate_interval])"), 100), _GPU),
            styles.RATIO,
            columns=144,
        ),
        series(
            "gpus.utilization-line",
            (bottom(of_gpus("gpuwarden_gpu_utilization_ratio", "pod"), 60), f"{_GPU} {{{{pod}}}}"),
            style=styles.RATIO,
        ),
        series(
            "gpus.memory-line",
            (
                top(of_gpus("gpuwarden_gpu_memory_used_bytes / gpuwarden_gpu_memory_total_bytes", "pod"), 60),
                f"{_GPU} {{{{pod}}}}",
            ),
            style=styles.RATIO,
        ),
        series("gpus.power-line", (top(of_gpus("gpuwarden_gpu_power_watts"), 60), _GPU), style=styles.WATT),
        series(
            "gpus.temperature-line", (top(of_gpus("gpuwarden_gpu_temperature_celsius"), 60), _GPU), style=styles.CELSIUS
        ),
        series("gpus.clock-line", (bottom(of_gpus("gpuwarden_gpu_sm_clock_hertz"), 60), _GPU), style=styles.HERTZ),
        timeline(
            "gpus.throttled",
            (top(of_gpus("gpuwarden_gpu_throttled", "reason"), 100), f"{_GPU} {{{{reason}}}}"),
            styles.THROTTLED,
        ),
    ),
)

_ECC = 'gpuwarden_gpu_ecc_errors_total{{lifetime="volatile",kind="{}"}}'
_XID_AT = by_node("gpuwarden_gpu_xid_last_seconds", "gpu", "pci_bus_id", "xid")
_KERNEL_AT = by_node("gpuwarden_kernel_event_last_seconds", "kind")
FAULTS = Row(
    "gpus.faults",
    (
        table(
            "gpus.xids",
            [by_node("gpuwarden_gpu_xid_errors_total", "gpu", "pci_bus_id", "xid"), f"1000 * {_XID_AT}"],
            [
                Column("node", "node", link="node-gpus"),
                Column("gpu", "gpu", width=60),
                Column("pci_bus_id", "pci"),
                Column("xid", "xid", width=70),
                Column("A", "times", width=70),
                Column("B", "last", styles.SINCE),
            ],
            width=12,
            height=8,
            sort_by=("last", True),
        ),
        series(
            "gpus.xids-line",
            (f"count by (node, xid) ({_XID_AT} > time() - 300)", "{{node}} XID {{xid}}"),
            bars=True,
            stacked=True,
            style=styles.CRITICAL_ABOVE_ZERO,
        ),
        series(
            "gpus.ecc",
            (top(of_gpus(_ECC.format("uncorrected"), how="sum")), f"{_GPU} <uncorrected>"),
            (top(of_gpus(grown(_ECC.format("corrected")), how="sum")), f"{_GPU} <corrected>"),
            width=8,
        ),
        table(
            "gpus.repairs",
            [
                of_gpus("gpuwarden_gpu_row_remap_pending"),
                of_gpus("gpuwarden_gpu_row_remap_failed"),
                of_gpus("gpuwarden_gpu_retired_pages_pending"),
                of_gpus("gpuwarden_gpu_lost"),
                of_gpus("gpuwarden_gpu_nvlinks - gpuwarden_gpu_nvlinks_active"),
            ],
            [
                Column("node", "node", link="node-gpus"),
                Column("gpu", "gpu", width=60),
                Column("D", "lost", styles.PROBLEM),
                Column("A", "remap-pending", styles.PROBLEM),
                Column("B", "remap-failed", styles.PROBLEM),
                Column("C", "pages-pending", styles.PROBLEM),
                Column("E", "nvlinks-down", styles.CRITICAL_ABOVE_ZERO),
            ],
            width=10,
            height=8,
            sort_by=("lost", True),
        ),
        table(
            "gpus.recovery",
            [of_gpus('gpuwarden_gpu_recovery_action{action!="none"}', "action")],
            [Column("node", "node", link="node-gpus"), Column("gpu", "gpu", width=60), Column("action", "action")],
            width=6,
            height=8,
            hidden=("Value",),
        ),
        series(
            "gpus.links",
            (top(of_gpus(rate("gpuwarden_gpu_pcie_replays_total"))), f"{_GPU} PCIe"),
            (top(of_gpus(rate("gpuwarden_gpu_nvlink_errors_total"), "kind")), f"{_GPU} NVLink {{{{kind}}}}"),
            style=styles.PER_SECOND,
            width=24,
        ),
        table(
            "gpus.kernel",
            [by_node("gpuwarden_kernel_events_total", "kind"), f"1000 * {_KERNEL_AT}"],
            [
                Column("node", "node", link="node-gpus"),
                Column("kind", "kind"),
                Column("A", "times", width=70),
                Column("B", "last", styles.SINCE),
            ],
            width=12,
            height=8,
            sort_by=("last", True),
        ),
        series(
            "gpus.kernel-skipped",
            (top(by_node(grown("gpuwarden_kernel_lines_skipped_total"))), "{{node}}"),
            width=12,
        ),
    ),
)

_PROCESS = ("gpu", "pid", "process", "namespace", "pod", "container", "user")
PROCESSES = Row(
    "gpus.processes",
    (
        table(
            "gpus.processes",
            [
                by_node(f"gpuwarden_gpu_process_memory_bytes{{{IN_POD}}}", *_PROCESS),
                f"1000 * {by_node(f'gpuwarden_gpu_process_start_time_seconds{{{IN_POD}}}', *_PROCESS)}",
            ],
            [
                Column("node", "node", link="node-gpus"),
                Column("gpu", "gpu", width=60),
                Column("pid", "pid", width=80),
                Column("process", "process"),
                Column("A", "gpu-memory", styles.BYTES),
                Column("B", "started", styles.SINCE),
                Column("namespace", "namespace", link="namespace"),
                Column("pod", "pod"),
                Column("container", "container"),
                Column("user", "user", link="user"),
            ],
            width=14,
            sort_by=("gpu-memory", True),
        ),
        table(
            "gpus.stuck",
            [
                by_node(
                    'gpuwarden_gpu_process_state{state=~"D|Z|gone"}',
                    "gpu",
                    "pid",
                    "process",
                    "namespace",
                    "pod",
                    "state",
                ),
                f"1000 * {by_node('gpuwarden_gpu_process_state_since_seconds', 'gpu', 'pid')}",
            ],
            [
                Column("node", "node", link="node-gpus"),
                Column("gpu", "gpu", width=60),
                Column("pid", "pid", width=80),
                Column("process", "process"),
                Column("state", "process-state"),
                Column("B", "since", styles.SINCE),
                Column("namespace", "namespace"),
                Column("pod", "pod"),
            ],
            width=10,
            hidden=("Value #A",),
        ),
    ),
)

DASHBOARD = Board(
    "gpus",
    ("node", "gpu", "user", "queue", "namespace"),
    (NOW, GPU_ROW, jobs.JOBS, jobs.USERS, FAULTS, PROCESSES, jobs.CONTAINERS),
)
