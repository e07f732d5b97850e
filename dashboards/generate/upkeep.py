"""Second half of storage and cleanup: mounts, registries and cleanup runs."""

from __future__ import annotations

from dashboards.generate import styles
from dashboards.generate.board import Row
from dashboards.generate.panels import series, timeline
from dashboards.generate.promql import bottom, by_node, grown, on_node, one, top
from dashboards.generate.tables import Column, table

_DISK = "{{node}} {{mount}}"
MOUNTS, REGISTRIES = by_node("gpuwarden_mount_ok", "mount"), by_node("gpuwarden_registry_reachable", "registry")

REACH = Row(
    "storage.reach",
    (
        timeline("storage.mounts", (bottom(MOUNTS, 100), _DISK), styles.UP, width=8),
        series(
            "storage.mount-latency",
            (top(by_node("gpuwarden_mount_latency_seconds", "mount")), _DISK),
            style=styles.PROBE_SECONDS,
            width=8,
        ),
        table(
            "storage.mount-states",
            [f"1000 * {by_node('''gpuwarden_mount_state_since_seconds{state!='ok'}''', 'mount', 'state')}"],
            [
                Column("node", "node", link="node-gpus"),
                Column("mount", "mount"),
                Column("state", "mount-state"),
                Column("A", "since", styles.SINCE),
            ],
            width=8,
            height=8,
        ),
        timeline("storage.registries", (bottom(REGISTRIES, 100), "{{node}} {{registry}}"), styles.UP, width=8),
        series(
            "storage.registry-duration",
            (f"max by (registry) ({on_node('gpuwarden_registry_probe_duration_seconds')})", "{{registry}}"),
            style=styles.PROBE_SECONDS,
            width=8,
        ),
        table(
            "storage.registry-failures",
            [by_node("gpuwarden_registry_probe_failure", "registry", "stage", "cause")],
            [
                Column("node", "node", link="node-gpus"),
                Column("registry", "registry"),
                Column("stage", "stage"),
                Column("cause", "cause"),
            ],
            width=8,
            height=8,
            hidden=("Value",),
        ),
    ),
)

_RUNS = "gpuwarden_cleanup_runs_total"
CLEANUP = Row(
    "storage.cleanup",
    (
        table(
            "storage.policies",
            [
                f"1000 * {one('gpuwarden_cleanup_last_run_seconds', 'policy')}",
                f"sum by (policy) ({_RUNS})",
                "sum by (policy) (gpuwarden_cleanup_items_total)",
                "sum by (policy) (gpuwarden_cleanup_freed_bytes_total)",
            ],
            [
                Column("policy", "policy"),
                Column("A", "last-run", styles.SINCE),
                Column("B", "runs"),
                Column("C", "items"),
                Column("D", "freed", styles.BYTES),
            ],
            width=12,
            height=8,
        ),
        series(
            "storage.freed",
            (f"sum by (policy) ({grown('gpuwarden_cleanup_freed_bytes_total')})", "{{policy}}"),
            style=styles.BYTES,
            bars=True,
            stacked=True,
        ),
        series(
            "storage.runs",
            (f"sum by (policy, outcome) ({grown(_RUNS)})", "{{policy}} {{outcome}}"),
            bars=True,
            stacked=True,
            width=8,
        ),
        series(
            "storage.items",
            (f"sum by (policy, outcome) ({grown('gpuwarden_cleanup_items_total')})", "{{policy}} {{outcome}}"),
            bars=True,
            stacked=True,
            width=8,
        ),
        series(
            "storage.actions",
            (f"sum by (kind, outcome) ({on_node(grown('gpuwarden_actions_total'))})", "{{kind}} {{outcome}}"),
            (f"sum by (reason) ({on_node(grown('gpuwarden_actions_refused_total'))})", "<refused> {{reason}}"),
            bars=True,
            stacked=True,
            width=8,
        ),
    ),
)
