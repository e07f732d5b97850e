"""Containers: CPU, memory, shared memory, logs and writable layers, each with its pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import Metric

from monitor.agent.metrics.label_values import infos, message_label
from monitor.base.metrics import Row, counters, gauges, label
from monitor.facts import ContainerFact, ContainerUsageFact, LogFact, NodeSnapshot, ShmFact

CONTAINER = ("container_id", "pod_uid", "pod", "namespace", "container", "user")

STATE: tuple[Row[ContainerFact], ...] = (
    ("gpuwarden_container_info", "A container on this node.", lambda _: 1),
    ("gpuwarden_container_start_time_seconds", "When it was started (Unix time).", lambda c: c.started_at),
)
USAGE_GAUGES: tuple[Row[ContainerUsageFact], ...] = (
    ("gpuwarden_container_memory_bytes", "Memory in use, without cache that can be dropped.", lambda u: u.memory_bytes),
    ("gpuwarden_container_memory_limit_bytes", "Memory limit.", lambda u: u.memory_limit_bytes),
    ("gpuwarden_container_cpu_cores", "Cores in use, over the last interval.", lambda u: u.cpu_cores),
    ("gpuwarden_container_cpu_limit_cores", "CPU limit.", lambda u: u.cpu_limit_cores),
)
USAGE_COUNTERS: tuple[Row[ContainerUsageFact], ...] = (
    ("gpuwarden_container_cpu_seconds", "CPU time used.", lambda u: u.cpu_seconds_total),
    (
        "gpuwarden_container_cpu_throttled_seconds",
        "Time throttled by the CPU limit.",
        lambda u: u.throttled_seconds_total,
    ),
)
SHM: tuple[Row[ShmFact], ...] = (
    ("gpuwarden_shm_size_bytes", "Size of /dev/shm; without a container it is the host's.", lambda s: s.size_bytes),
    ("gpuwarden_shm_used_bytes", "Use of /dev/shm.", lambda s: s.used_bytes),
)
LOGS: tuple[Row[LogFact], ...] = (
    ("gpuwarden_container_log_bytes", "All files of the container's log.", lambda f: f.size_bytes),
    ("gpuwarden_container_log_written_seconds", "When the log last grew (Unix time).", lambda f: f.written_at),
    ("gpuwarden_container_log_unreadable", "Whether the log cannot be read.", lambda f: f.error is not None),
)
WRITABLE: tuple[Row[int], ...] = (
    ("gpuwarden_container_writable_bytes", "Size of the container's writable layer.", lambda size: size),
)


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """State, usage, shared memory, logs and writable layer of each container."""
    containers = snapshot.containers or ()
    users = pod_users(containers)
    owners = {container.id: _owner(container, users) for container in containers}
    state = [
        ((*owners[c.id], *map(label, (c.image, c.image_id, c.runtime, c.state, c.name, c.log_path))), c)
        for c in containers
        if not c.sandbox
    ]
    names = ("image", "image_id", "runtime", "state", "name", "log_path")
    yield from gauges(STATE[:1], (*CONTAINER, *names), state)
    yield from _sandboxes(containers)
    yield from gauges(STATE[1:], CONTAINER, [(owners[c.id], c) for c in containers if not c.sandbox])
    usage = [(_labels(owners, fact.container_id), fact) for fact in snapshot.container_usage or ()]
    yield from gauges(USAGE_GAUGES, CONTAINER, usage)
    yield from counters(USAGE_COUNTERS, CONTAINER, usage)
    yield from gauges(SHM, (*CONTAINER, "device"), [_shm(owners, fact) for fact in snapshot.shm or ()])
    yield from gauges(LOGS, CONTAINER, [(_labels(owners, fact.container_id), fact) for fact in snapshot.logs or ()])
    errors = [(fact.container_id, message_label(fact.error)) for fact in snapshot.logs or () if fact.error]
    text = "Why the container's log cannot be read."
    yield from infos("gpuwarden_container_log_error_info", text, ("container_id", "error"), errors)
    layers = [
        ((*_labels(owners, id_), use.runtime), size)
        for use in snapshot.runtime_usage or ()
        for id_, size in use.writable.items()
    ]
    yield from gauges(WRITABLE, (*CONTAINER, "runtime"), layers)


def _sandboxes(containers: Iterable[ContainerFact]) -> Iterable[Metric]:
    """Pod sandboxes: resources used on behalf of a pod carry the id of its sandbox."""
    names = ("container_id", "pod_uid", "pod", "namespace", "user", "runtime", "state", "name")
    rows = [
        [label(v) for v in (c.id, c.pod_uid, c.pod_name, c.namespace, c.user, c.runtime, c.state, c.name)]
        for c in containers
        if c.sandbox
    ]
    yield from infos("gpuwarden_container_sandbox_info", "The sandbox of a pod.", names, rows)


def pod_users(containers: Iterable[ContainerFact]) -> dict[str | None, str]:
    """Users by pod UID, for pods whose sandbox names one."""
    return {container.pod_uid: container.user for container in containers if container.user and container.pod_uid}


def _owner(container: ContainerFact, users: Mapping[str | None, str]) -> tuple[str, ...]:
    return (
        container.id,
        container.pod_uid or "",
        label(container.pod_name),
        label(container.namespace),
        label(container.container or container.name),
        label(users.get(container.pod_uid)),
    )


def _labels(owners: Mapping[str, tuple[str, ...]], container_id: str | None) -> tuple[str, ...]:
    return owners.get(container_id or "") or (container_id or "", "", "", "", "", "")


def _shm(owners: Mapping[str, tuple[str, ...]], fact: ShmFact) -> tuple[tuple[str, ...], ShmFact]:
    return (*_labels(owners, fact.container_id), str(fact.device)), fact
