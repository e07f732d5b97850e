"""Second half of GPU and jobs: unhealthy pods, users and containers."""

from __future__ import annotations

from dashboards.generate import styles
from dashboards.generate.board import Row
from dashboards.generate.panels import bars, series
from dashboards.generate.promql import HELD_BY, IN_POD, bottom, by_node, one, rate, top
from dashboards.generate.tables import Column, table

_POD = "{{namespace}}/{{pod}} {{container}}"
_USER = 'user=~"$user"'
_CONTAINER = ("namespace", "pod", "container")

_EXPLAINED = f"gpuwarden_pod_explained{{{HELD_BY}}}"
_REQUESTED = one(f"gpuwarden_pod_requested_gpus{{{HELD_BY}}}", "namespace", "pod")
JOBS = Row(
    "gpus.jobs",
    (
        table(
            "gpus.explained",
            [
                one(_EXPLAINED, "namespace", "pod", "user", "workload", "queue", "status", "cause"),
                f"{_REQUESTED} and on(namespace, pod) {one(_EXPLAINED, 'namespace', 'pod')}",
            ],
            [
                Column("namespace", "namespace", link="namespace"),
                Column("pod", "pod"),
                Column("status", "status"),
                Column("cause", "cause"),
                Column("B", "gpus", width=70),
                Column("user", "user", link="user"),
                Column("workload", "job"),
                Column("queue", "queue", link="queue"),
            ],
            width=16,
            height=10,
            hidden=("Value #A",),
            sort_by=("status", False),
        ),
        bars(
            "gpus.causes",
            (f"sort_desc({one('gpuwarden_pods_explained', 'status', 'cause')} > 0)", "{{status}}: {{cause}}"),
            style=styles.WARN_ABOVE_ZERO,
            width=8,
            height=10,
        ),
        series(
            "gpus.requested",
            (
                f"sum by (phase) ({one(f'gpuwarden_pod_requested_gpus{{{HELD_BY}}}', 'namespace', 'pod', 'phase')})",
                "{{phase}}",
            ),
            stacked=True,
        ),
        series(
            "gpus.statuses",
            (f"sum by (status) ({one('gpuwarden_pods_explained', 'status', 'cause')})", "{{status}}"),
            stacked=True,
        ),
    ),
)


def _of_user(name: str) -> str:
    return one(f"gpuwarden_user_{name}{{{_USER}}}", "user")


USERS = Row(
    "gpus.users",
    (
        table(
            "gpus.users",
            [
                _of_user("gpus"),
                _of_user("gpu_utilization_ratio"),
                _of_user("gpu_memory_bytes"),
                _of_user("cpu_cores"),
                _of_user("memory_bytes"),
                _of_user("shm_bytes"),
                _of_user("disk_bytes"),
            ],
            [
                Column("user", "user", link="user"),
                Column("A", "gpus", width=70),
                Column("B", "utilization", styles.RATIO),
                Column("C", "gpu-memory", styles.BYTES),
                Column("D", "cores", styles.CORES),
                Column("E", "memory", styles.BYTES),
                Column("F", "shm", styles.BYTES),
                Column("G", "disk", styles.BYTES),
            ],
            sort_by=("gpus", True),
        ),
        series("gpus.user-gpus", (top(_of_user("gpus"), 30), "{{user}}"), stacked=True, link="user"),
        series(
            "gpus.user-utilization",
            (bottom(_of_user("gpu_utilization_ratio"), 30), "{{user}}"),
            style=styles.RATIO,
            link="user",
        ),
    ),
)


def _container(metric: str) -> str:
    return f"gpuwarden_{metric}{{{IN_POD}}}"


CONTAINERS = Row(
    "gpus.containers",
    (
        series(
            "gpus.container-cpu",
            (top(by_node(_container("container_cpu_cores"), *_CONTAINER, how="sum")), _POD),
            style=styles.CORES,
        ),
        series(
            "gpus.container-throttled",
            (top(by_node(rate(_container("container_cpu_throttled_seconds_total")), *_CONTAINER, how="sum")), _POD),
            style=styles.SECONDS,
        ),
        series(
            "gpus.container-memory",
            (top(by_node(_container("container_memory_bytes"), *_CONTAINER, how="sum")), _POD),
            style=styles.BYTES,
        ),
        series(
            "gpus.container-memory-share",
            (
                top(
                    by_node(
                        f"{_container('container_memory_bytes')} / {_container('container_memory_limit_bytes')}",
                        *_CONTAINER,
                    )
                ),
                _POD,
            ),
            style=styles.MEMORY_RATIO,
        ),
        series(
            "gpus.container-shm",
            (top(by_node(_container("shm_used_bytes"), *_CONTAINER)), f"{_POD} {{{{node}}}}"),
            style=styles.BYTES,
        ),
        series(
            "gpus.container-shm-share",
            (
                top(by_node(f"{_container('shm_used_bytes')} / {_container('shm_size_bytes')}", *_CONTAINER)),
                f"{_POD} {{{{node}}}}",
            ),
            style=styles.SHM_RATIO,
        ),
    ),
)
