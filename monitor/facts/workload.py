"""Containers on one node and what they use."""

from __future__ import annotations

from monitor.facts.base import Fact, Figure, Whole


class ContainerFact(Fact, frozen=True, kw_only=True):
    """One container. `state` is created, running, paused, exited or unknown."""

    id: str
    runtime: str
    state: str
    name: str | None = None
    image: str | None = None
    image_id: str | None = None
    pid: Whole | None = None
    created_at: Figure | None = None
    started_at: Figure | None = None
    finished_at: Figure | None = None
    sandbox: bool = False
    pod_uid: str | None = None
    pod_name: str | None = None
    namespace: str | None = None
    container: str | None = None
    user: str | None = None  # of the pod, on its sandbox, where a platform names one
    log_path: str | None = None


class ContainerUsageFact(Fact, frozen=True, kw_only=True):
    """CPU and memory of one running container, from its cgroup."""

    container_id: str
    cpu_seconds_total: Figure | None = None
    cpu_cores: Figure | None = None  # used, on average over the last interval
    cpu_limit_cores: Figure | None = None
    throttled_seconds_total: Figure | None = None
    memory_bytes: Whole | None = None
    memory_limit_bytes: Whole | None = None


class ShmFact(Fact, frozen=True, kw_only=True):
    """A /dev/shm. `container_id` None is the host's own. `device` is equal where containers share one."""

    size_bytes: Whole
    used_bytes: Whole
    device: int
    container_id: str | None = None
    pid: Whole | None = None


class LogFact(Fact, frozen=True, kw_only=True):
    """A container's log: all its files together, and when the newest was last written."""

    container_id: str
    size_bytes: Whole | None = None
    written_at: Figure | None = None
    error: str | None = None


class HostFact(Fact, frozen=True, kw_only=True):
    """The node itself. CPU seconds are sums over all cores since boot."""

    cpus: Whole
    memory_total_bytes: Whole
    memory_available_bytes: Whole
    cpu_seconds_total: dict[str, Figure]
    load1: Figure | None = None
    booted_at: Figure | None = None
    kernel: str | None = None
