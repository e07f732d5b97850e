"""Registers the collectors. To add one: its module, a line in COLLECTORS, and a default in monitor.config.agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from monitor.agent.collectors import Collector
from monitor.agent.collectors.container_usage import ContainerUsageCollector
from monitor.agent.collectors.containers import ContainersCollector
from monitor.agent.collectors.disk import DiskCollector
from monitor.agent.collectors.disk_io import DiskIoCollector
from monitor.agent.collectors.gpu import GpuCollector
from monitor.agent.collectors.gpu_processes import GpuProcessesCollector
from monitor.agent.collectors.host import HostCollector
from monitor.agent.collectors.images import ImagesCollector
from monitor.agent.collectors.kernel import KernelCollector
from monitor.agent.collectors.kubelet import KubeletCollector
from monitor.agent.collectors.log_tails import LogTailsCollector
from monitor.agent.collectors.logs import LogsCollector
from monitor.agent.collectors.mounts import MountsCollector
from monitor.agent.collectors.pod_devices import PodDevicesCollector
from monitor.agent.collectors.probes import ProbesCollector
from monitor.agent.collectors.runtime_usage import RuntimeUsageCollector
from monitor.agent.collectors.shm import ShmCollector
from monitor.agent.collectors.xid import XidCollector
from monitor.agent.kernel.lines import FRAGMENTS
from monitor.agent.kmsg import KernelLog, SharedKernelLog
from monitor.agent.runner import CollectorRunner, CollectorWorker
from monitor.agent.runtime import Runtimes
from monitor.agent.settings import AgentSettings, Paths


@dataclass(frozen=True)
class AgentDeps:
    """Dependencies of collectors. `latest` is the current result of another collector, or None if it has none."""

    settings: AgentSettings
    runtimes: Runtimes
    latest: Callable[[str], Any]

    @property
    def paths(self) -> Paths:
        return self.settings.paths

    @cached_property
    def kernel_log(self) -> SharedKernelLog:
        return SharedKernelLog(KernelLog(self.paths.kmsg, FRAGMENTS))

    def containers(self) -> Any:
        return self.latest("containers")

    def gpu_processes(self) -> Any:
        return self.latest("gpu_processes")


CollectorFactory = Callable[[AgentDeps], Collector]

# In start order. A collector that uses the results of others names them and waits for their first run.
COLLECTORS: tuple[tuple[CollectorFactory, tuple[str, ...]], ...] = (
    (lambda deps: HostCollector(deps.paths), ()),
    (lambda _: GpuCollector(), ()),
    (lambda deps: GpuProcessesCollector(deps.paths.proc), ()),
    (lambda deps: XidCollector(deps.kernel_log), ()),
    (lambda deps: KernelCollector(deps.kernel_log), ()),
    (lambda deps: PodDevicesCollector(deps.paths, deps.settings.device_resources), ()),
    (lambda deps: ContainersCollector(deps.runtimes), ()),
    (lambda deps: ContainerUsageCollector(deps.paths, deps.containers), ("containers",)),
    (lambda deps: ShmCollector(deps.paths, deps.containers, deps.gpu_processes), ("containers", "gpu_processes")),
    (lambda deps: LogsCollector(deps.containers, deps.paths.rootfs), ("containers",)),
    (
        lambda deps: LogTailsCollector(deps.containers, deps.paths.rootfs, lines=deps.settings.log_lines),
        ("containers",),
    ),
    (lambda deps: ImagesCollector(deps.runtimes, deps.containers, deps.paths.state), ("containers",)),
    (lambda deps: RuntimeUsageCollector(deps.runtimes), ("containers",)),
    (lambda deps: DiskCollector(deps.paths, deps.runtimes.roots), ("containers",)),
    (lambda deps: DiskIoCollector(deps.paths), ()),
    (lambda deps: KubeletCollector(deps.paths), ()),
    (lambda deps: MountsCollector(deps.paths, deps.settings.mounts), ()),
    (lambda deps: ProbesCollector(deps.settings.registries, deps.settings.probe_timeout), ()),
)


def build_runner(settings: AgentSettings) -> CollectorRunner:
    """Runner of all enabled collectors, not yet started."""
    workers: dict[str, CollectorWorker] = {}
    runtimes = Runtimes(settings.paths.docker_socket, settings.paths.cri_sockets)
    deps = AgentDeps(settings, runtimes, lambda name: workers[name].fresh() if name in workers else None)
    for factory, after in COLLECTORS:
        collector = factory(deps)
        schedule = settings.collectors[collector.name]
        if schedule.enabled:
            waits_for = [workers[name] for name in after if name in workers]
            workers[collector.name] = CollectorWorker(collector, schedule, after=waits_for)
    return CollectorRunner(tuple(workers.values()))
