"""Containers on one node and their resource usage."""

from __future__ import annotations

from typing import Annotated

from monitor.facts.base import SHORT_LIST, BoundedFloat, BoundedInt, BoundedText, Fact, Identifier


class ContainerFact(Fact, frozen=True, kw_only=True):
    """One container. `state` is created, running, paused, exited or unknown."""

    id: Identifier
    runtime: Identifier
    state: Identifier
    name: BoundedText | None = None
    image: BoundedText | None = None
    image_id: BoundedText | None = None
    pid: BoundedInt | None = None
    created_at: BoundedFloat | None = None
    started_at: BoundedFloat | None = None
    finished_at: BoundedFloat | None = None
    exit_code: BoundedInt | None = None  # of a container that has exited
    sandbox: bool = False
    pod_uid: Identifier | None = None
    pod_name: BoundedText | None = None
    namespace: BoundedText | None = None
    container: BoundedText | None = None
    user: BoundedText | None = None  # user of the pod, on its sandbox, if a platform sets one
    log_path: BoundedText | None = None


class ContainerUsageFact(Fact, frozen=True, kw_only=True):
    """CPU and memory of one running container, from its cgroup."""

    container_id: Identifier
    cpu_seconds_total: BoundedFloat | None = None
    cpu_cores: BoundedFloat | None = None  # mean over the last interval
    cpu_limit_cores: BoundedFloat | None = None
    throttled_seconds_total: BoundedFloat | None = None
    memory_bytes: BoundedInt | None = None
    memory_limit_bytes: BoundedInt | None = None


class ShmFact(Fact, frozen=True, kw_only=True):
    """A /dev/shm. `container_id` None is the host's own. Containers that share one have equal `device`."""

    size_bytes: BoundedInt
    used_bytes: BoundedInt
    device: int
    container_id: Identifier | None = None
    pid: BoundedInt | None = None


class LogFact(Fact, frozen=True, kw_only=True):
    """Log of a container: total size of its files, and when the newest was last written."""

    container_id: Identifier
    size_bytes: BoundedInt | None = None
    written_at: BoundedFloat | None = None
    error: BoundedText | None = None


class HostFact(Fact, frozen=True, kw_only=True):
    """The node itself. CPU seconds are sums over all cores since boot, network bytes over its physical interfaces."""

    cpus: BoundedInt
    memory_total_bytes: BoundedInt
    memory_available_bytes: BoundedInt
    cpu_seconds_total: Annotated[dict[Identifier, BoundedFloat], SHORT_LIST]
    load1: BoundedFloat | None = None
    booted_at: BoundedFloat | None = None
    kernel: BoundedText | None = None
    network_received_bytes_total: BoundedInt | None = None
    network_transmitted_bytes_total: BoundedInt | None = None
