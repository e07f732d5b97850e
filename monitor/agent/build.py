"""Which collectors an agent has, and what each is given. Adding one: its file, a line here, a default in config.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from monitor.agent.collectors.kubelet import KubeletCollector
from monitor.agent.collectors.logs import LogsCollector
from monitor.agent.collectors.mounts import MountsCollector
from monitor.agent.collectors.pod_devices import PodDevicesCollector
from monitor.agent.collectors.probes import ProbesCollector
from monitor.agent.collectors.runtime_usage import RuntimeUsageCollector
from monitor.agent.collectors.shm import ShmCollector
from monitor.agent.collectors.xid import XidCollector
from monitor.agent.runner import Runner, Worker
from monitor.agent.runtime import Runtimes
from monitor.agent.settings import AgentSettings


@dataclass(frozen=True)
class AgentDeps:
    """What collectors are made from: the settings, the runtimes, and what other collectors have read."""

    settings: AgentSettings
    runtimes: Runtimes
    fresh: Callable[[str], Any]

    def containers(self) -> Any:
        return self.fresh("containers")

    def gpu_processes(self) -> Any:
        return self.fresh("gpu_processes")


CollectorFactory = Callable[[AgentDeps], Collector]

# In the order in which they start; a collector that uses another's reading names it and waits for its first run.
COLLECTORS: tuple[tuple[CollectorFactory, tuple[str, ...]], ...] = (
    (lambda s: HostCollector(s.settings.paths), ()),
    (lambda _: GpuCollector(), ()),
    (lambda s: GpuProcessesCollector(s.settings.paths.proc), ()),
    (lambda s: XidCollector(s.settings.paths.kmsg), ()),
    (lambda s: PodDevicesCollector(s.settings.paths, s.settings.device_resources), ()),
    (lambda s: ContainersCollector(s.runtimes), ()),
    (lambda s: ContainerUsageCollector(s.settings.paths, s.containers), ("containers",)),
    (lambda s: ShmCollector(s.settings.paths, s.containers, s.gpu_processes), ("containers", "gpu_processes")),
    (lambda s: LogsCollector(s.containers, s.settings.paths.rootfs), ("containers",)),
    (lambda s: ImagesCollector(s.runtimes, s.containers, s.settings.paths.state), ("containers",)),
    (lambda s: RuntimeUsageCollector(s.runtimes), ("containers",)),
    (lambda s: DiskCollector(s.settings.paths, s.runtimes.roots), ("containers",)),
    (lambda s: DiskIoCollector(s.settings.paths), ()),
    (lambda s: KubeletCollector(s.settings.paths), ()),
    (lambda s: MountsCollector(s.settings.paths, s.settings.mounts), ()),
    (lambda s: ProbesCollector(s.settings.registries, s.settings.probe_timeout), ()),
)


def build_runner(settings: AgentSettings) -> Runner:
    """Given settings, return a runner with every enabled collector, not started yet."""
    workers: dict[str, Worker] = {}
    runtimes = Runtimes(settings.paths.docker_socket, settings.paths.cri_sockets)
    sources = AgentDeps(settings, runtimes, lambda name: workers[name].fresh() if name in workers else None)
    for factory, after in COLLECTORS:
        collector = factory(sources)
        schedule = settings.collectors[collector.name]
        if schedule.enabled:
            waits_for = [workers[name] for name in after if name in workers]
            workers[collector.name] = Worker(collector, schedule, after=waits_for)
    return Runner(tuple(workers.values()))
