"""GPU and jobs: what the chosen cards, users, queues and namespaces do."""

from __future__ import annotations

from dashboards.generate import jobs, variables
from dashboards.generate.looks import STATES
from dashboards.generate.model import Column, Dashboard, Panel, Row
from dashboards.generate.panels import series, stat, table, timeline
from dashboards.generate.promql import (
    CARD_STATE,
    CARDS,
    HELD_BY,
    bottom,
    by_card_id,
    by_node,
    count,
    grown,
    numbered,
    of_cards,
    one,
    rate,
    top,
    total,
)

_CARD = "{{node}} GPU {{gpu}}"
_POD = "{{namespace}}/{{pod}}"
_USER = 'user=~"$user"'
_IN_POD = 'namespace=~"$namespace",user=~"$user"'
_CONTAINER = ("namespace", "pod", "container")

_KNOWN = one(f"gpuwarden_gpu_state{{{CARDS}}}", "node", "gpu")


def _in_state(states: str) -> str:
    return count(one(f'gpuwarden_gpu_state{{state=~"{states}",{CARDS}}}', "node", "gpu"), _KNOWN)


NOW = Row(
    "gpus.now",
    (
        stat("gpus.cards", f"count({_KNOWN})"),
        stat("gpus.utilization", f"avg({of_cards('gpuwarden_gpu_utilization_ratio')})", look="share"),
        stat("gpus.idle", _in_state("idle-held"), look="tolerated"),
        stat("gpus.zombie", _in_state("zombie|wedged|phantom"), look="never"),
        stat("gpus.orphan", _in_state("orphan|ghost"), look="never"),
        stat("gpus.faulty", _in_state("faulty"), look="never"),
        stat("gpus.power", f"sum({of_cards('gpuwarden_gpu_power_watts')})", look="watt"),
        stat(
            "gpus.waiting",
            total(
                one(f'gpuwarden_pod_requested_gpus{{phase="Pending",{HELD_BY}}}', "namespace", "pod"),
                "gpuwarden_pod_requested_gpus",
            ),
            look="tolerated",
        ),
    ),
)


def _card_table() -> Panel:
    labels = ("uuid", "node", "gpu", "model", "state", "user", "namespace", "pod", "workload", "queue")
    return table(
        "gpus.cards-table",
        [
            f"max by ({', '.join(labels)}) ({CARD_STATE})",
            f"1000 * {by_card_id('gpuwarden_gpu_state_since_seconds')}",
            by_card_id("gpuwarden_gpu_utilization_ratio"),
            by_card_id("gpuwarden_gpu_memory_used_bytes / gpuwarden_gpu_memory_total_bytes"),
            by_card_id("gpuwarden_gpu_power_watts"),
            by_card_id("gpuwarden_gpu_temperature_celsius"),
        ],
        [
            Column("node", "node", link="node-storage"),
            Column("gpu", "gpu", width=60),
            Column("model", "model"),
            Column("state", "state", "state", width=110),
            Column("B", "since", "since"),
            Column("C", "utilization", "share"),
            Column("D", "gpu-memory", "share"),
            Column("E", "power", "watt", width=80),
            Column("F", "temperature", "celsius", width=80),
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


CARD_ROW = Row(
    "gpus.cards",
    (
        _card_table(),
        timeline(
            "gpus.timeline",
            top(numbered("gpuwarden_gpu_state", CARDS, "state", tuple(STATES), "node", "gpu"), 100),
            _CARD,
            "state-number",
            width=24,
            height=10,
        ),
        series(
            "gpus.utilization-line",
            (bottom(of_cards("gpuwarden_gpu_utilization_ratio", "pod"), 60), f"{_CARD} {{{{pod}}}}"),
            look="share",
        ),
        series(
            "gpus.memory-line",
            (
                top(of_cards("gpuwarden_gpu_memory_used_bytes / gpuwarden_gpu_memory_total_bytes", "pod"), 60),
                f"{_CARD} {{{{pod}}}}",
            ),
            look="share",
        ),
        series("gpus.power-line", (top(of_cards("gpuwarden_gpu_power_watts"), 60), _CARD), look="watt"),
        series(
            "gpus.temperature-line", (top(of_cards("gpuwarden_gpu_temperature_celsius"), 60), _CARD), look="celsius"
        ),
        series("gpus.clock-line", (bottom(of_cards("gpuwarden_gpu_sm_clock_hertz"), 60), _CARD), look="hertz"),
        timeline(
            "gpus.throttled",
            top(of_cards("gpuwarden_gpu_throttled", "reason"), 100),
            f"{_CARD} {{{{reason}}}}",
            "slowed",
        ),
    ),
)

_ECC = 'gpuwarden_gpu_ecc_errors_total{{lifetime="volatile",kind="{}"}}'
_XID_AT = by_node("gpuwarden_gpu_xid_last_seconds", "gpu", "pci_bus_id", "xid")
FAULTS = Row(
    "gpus.faults",
    (
        table(
            "gpus.xids",
            [
                by_node("gpuwarden_gpu_xid_errors_total", "gpu", "pci_bus_id", "xid"),
                f"1000 * {_XID_AT}",
            ],
            [
                Column("node", "node", link="node-gpus"),
                Column("gpu", "gpu", width=60),
                Column("pci_bus_id", "pci"),
                Column("xid", "xid", width=70),
                Column("A", "times", width=70),
                Column("B", "last", "since"),
            ],
            width=12,
            height=8,
            sort_by=("last", True),
        ),
        series(
            "gpus.xids-line",
            (
                f"count by (node, xid) ({_XID_AT} > time() - 300)",
                "{{node}} XID {{xid}}",
            ),
            bars=True,
            stacked=True,
            look="never",
        ),
        series(
            "gpus.ecc",
            (top(of_cards(_ECC.format("uncorrected"), how="sum")), f"{_CARD} <uncorrected>"),
            (top(of_cards(grown(_ECC.format("corrected")), how="sum")), f"{_CARD} <corrected>"),
            width=8,
        ),
        table(
            "gpus.repairs",
            [
                of_cards("gpuwarden_gpu_row_remap_pending"),
                of_cards("gpuwarden_gpu_row_remap_failed"),
                of_cards("gpuwarden_gpu_retired_pages_pending"),
                of_cards("gpuwarden_gpu_lost"),
                of_cards("gpuwarden_gpu_nvlinks - gpuwarden_gpu_nvlinks_active"),
            ],
            [
                Column("node", "node", link="node-gpus"),
                Column("gpu", "gpu", width=60),
                Column("D", "lost", "trouble"),
                Column("A", "remap-pending", "trouble"),
                Column("B", "remap-failed", "trouble"),
                Column("C", "pages-pending", "trouble"),
                Column("E", "nvlinks-down", "never"),
            ],
            width=10,
            height=8,
            sort_by=("lost", True),
        ),
        table(
            "gpus.recovery",
            [of_cards('gpuwarden_gpu_recovery_action{action!="none"}', "action")],
            [Column("node", "node", link="node-gpus"), Column("gpu", "gpu", width=60), Column("action", "action")],
            width=6,
            height=8,
            hidden=("Value",),
        ),
        series(
            "gpus.links",
            (top(of_cards(rate("gpuwarden_gpu_pcie_replays_total"))), f"{_CARD} PCIe"),
            (top(of_cards(rate("gpuwarden_gpu_nvlink_errors_total"), "kind")), f"{_CARD} NVLink {{{{kind}}}}"),
            look="rate",
            width=24,
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
                by_node(f"gpuwarden_gpu_process_memory_bytes{{{_IN_POD}}}", *_PROCESS),
                f"1000 * {by_node(f'gpuwarden_gpu_process_start_time_seconds{{{_IN_POD}}}', *_PROCESS)}",
            ],
            [
                Column("node", "node", link="node-gpus"),
                Column("gpu", "gpu", width=60),
                Column("pid", "pid", width=80),
                Column("process", "process"),
                Column("A", "gpu-memory", "bytes"),
                Column("B", "started", "since"),
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
                Column("B", "since", "since"),
                Column("namespace", "namespace"),
                Column("pod", "pod"),
            ],
            width=10,
            hidden=("Value #A",),
        ),
    ),
)

DASHBOARD = Dashboard(
    "gpus",
    (variables.NODE, variables.GPU, variables.USER, variables.QUEUE, variables.NAMESPACE),
    (NOW, CARD_ROW, jobs.JOBS, jobs.USERS, FAULTS, PROCESSES, jobs.CONTAINERS),
)
