"""GPU and jobs, its second half: pods that are not well, users, containers."""

from __future__ import annotations

from dashboards.generate.model import Column, Row
from dashboards.generate.panels import bars, series, table
from dashboards.generate.promql import HELD_BY, bottom, by_node, one, rate, top

_POD = "{{namespace}}/{{pod}}"
_USER = 'user=~"$user"'
_IN_POD = 'namespace=~"$namespace",user=~"$user"'
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
            look="tolerated",
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
                Column("B", "utilization", "share"),
                Column("C", "gpu-memory", "bytes"),
                Column("D", "cores", "cores"),
                Column("E", "memory", "bytes"),
                Column("F", "shm", "bytes"),
                Column("G", "disk", "bytes"),
            ],
            sort_by=("gpus", True),
        ),
        series("gpus.user-gpus", (top(_of_user("gpus"), 30), "{{user}}"), stacked=True, link="user"),
        series(
            "gpus.user-utilization",
            (bottom(_of_user("gpu_utilization_ratio"), 30), "{{user}}"),
            look="share",
            link="user",
        ),
    ),
)


def _container(metric: str) -> str:
    return f"gpuwarden_{metric}{{{_IN_POD}}}"


CONTAINERS = Row(
    "gpus.containers",
    (
        series(
            "gpus.container-cpu",
            (top(by_node(_container("container_cpu_cores"), *_CONTAINER, how="sum")), f"{_POD} {{{{container}}}}"),
            look="cores",
        ),
        series(
            "gpus.container-throttled",
            (
                top(by_node(rate(_container("container_cpu_throttled_seconds_total")), *_CONTAINER, how="sum")),
                f"{_POD} {{{{container}}}}",
            ),
            look="seconds",
        ),
        series(
            "gpus.container-memory",
            (
                top(by_node(_container("container_memory_bytes"), *_CONTAINER, how="sum")),
                f"{_POD} {{{{container}}}}",
            ),
            look="bytes",
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
                f"{_POD} {{{{container}}}}",
            ),
            look="share-memory",
        ),
        series(
            "gpus.container-shm",
            (top(by_node(_container("shm_used_bytes"), *_CONTAINER)), f"{_POD} {{{{container}}}} {{{{node}}}}"),
            look="bytes",
        ),
        series(
            "gpus.container-shm-share",
            (
                top(by_node(f"{_container('shm_used_bytes')} / {_container('shm_size_bytes')}", *_CONTAINER)),
                f"{_POD} {{{{container}}}} {{{{node}}}}",
            ),
            look="share-shm",
        ),
    ),
)
