"""The host: CPU, memory, load, boot time and network."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, Metric

from monitor.agent.metrics.label_values import infos, message_label
from monitor.base.metrics import Row, counters, gauges
from monitor.facts import HostFact, NodeSnapshot

HOST: tuple[Row[HostFact], ...] = (
    ("gpuwarden_host_cpus", "CPUs of the node.", lambda h: h.cpus),
    ("gpuwarden_host_memory_total_bytes", "Memory of the node.", lambda h: h.memory_total_bytes),
    ("gpuwarden_host_memory_available_bytes", "Memory available without swapping.", lambda h: h.memory_available_bytes),
    ("gpuwarden_host_load1", "Load average over one minute.", lambda h: h.load1),
    ("gpuwarden_host_boot_time_seconds", "When the node was booted (Unix time).", lambda h: h.booted_at),
)  # fmt: skip
NETWORK: tuple[Row[HostFact], ...] = (
    (
        "gpuwarden_host_network_received_bytes",
        "Bytes received by the physical network interfaces, without RDMA.",
        lambda h: h.network_received_bytes_total,
    ),
    (
        "gpuwarden_host_network_transmitted_bytes",
        "Bytes sent by the physical network interfaces, without RDMA.",
        lambda h: h.network_transmitted_bytes_total,
    ),
)


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Metrics of the host; none if it is unknown."""
    if snapshot.host is None:
        return
    yield from gauges(HOST, (), [((), snapshot.host)])
    kernel = snapshot.host.kernel
    yield from infos(
        "gpuwarden_host_info",
        "Operating system of the node.",
        ("kernel",),
        [(message_label(kernel),)] if kernel else (),
    )
    cpu = CounterMetricFamily("gpuwarden_host_cpu_seconds", "CPU time by mode, over all cores.", labels=("mode",))
    for mode, seconds in snapshot.host.cpu_seconds_total.items():
        cpu.add_metric((mode,), seconds)
    yield cpu
    yield from counters(NETWORK, (), [((), snapshot.host)])
