"""PromQL for the figures of the history, from the series of agents and daemon."""

from __future__ import annotations

import json
from collections.abc import Mapping

from monitor.history.model import HistoryMetric, HistorySubject

_HELD = 'state=~"busy|idle-held"'
_IDLE = 'mode=~"idle|iowait"'


def expressions(subject: HistorySubject, name: str, labels: Mapping[str, str]) -> dict[HistoryMetric, str]:
    """An expression with one series for each figure of an entity. `labels` select the series of this cluster."""
    write = _Writer(labels)
    if subject is HistorySubject.CLUSTER:
        return write.cluster()
    if subject is HistorySubject.NODE:
        return write.node(name)
    if subject is HistorySubject.GPU:
        node, _, index = name.rpartition("/")
        return write.gpu(node, index)
    if subject is HistorySubject.DISK:
        node, _, mount = name.partition(":")
        return write.disk(node, mount)
    if subject in (HistorySubject.POD, HistorySubject.JOB):
        namespace, _, own = name.partition("/")
        return write.workload({"namespace": namespace, "pod" if subject is HistorySubject.POD else "workload": own})
    return write.user(name) if subject is HistorySubject.USER else write.queue(name)


class _Writer:
    """Writes expressions. Series of the daemon are merged, because each replica has them."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels

    def cluster(self) -> dict[HistoryMetric, str]:
        return {
            HistoryMetric.UTILIZATION: f"avg({self._of('gpuwarden_gpu_utilization_ratio')})",
            HistoryMetric.GPUS: f"sum(max by (node, model, state) ({self._of('gpuwarden_gpus', _HELD)}))",
            HistoryMetric.FREE: f"sum(max by (node) ({self._of('gpuwarden_node_free_gpus')}))",
            HistoryMetric.WAITING: f"sum(max by (queue) ({self._of('gpuwarden_queue_waiting_gpus')}))",
        }

    def node(self, node: str) -> dict[HistoryMetric, str]:
        cpu = self._of("gpuwarden_host_cpu_seconds_total") + "[2m]"
        idle = self._of("gpuwarden_host_cpu_seconds_total", _IDLE) + "[2m]"
        total, available = (self._of(f"gpuwarden_host_memory_{kind}_bytes") for kind in ("total", "available"))
        shm = f"sum by (instance) (max by (instance, device) ({self._of('gpuwarden_shm_used_bytes')}))"
        return {
            HistoryMetric.UTILIZATION: self._on_node(self._of("gpuwarden_gpu_utilization_ratio"), node, "avg"),
            HistoryMetric.FREE: f"max({self._of('gpuwarden_node_free_gpus', _match(node=node))})",
            HistoryMetric.CPU: self._on_node(
                f"(1 - sum by (instance) (rate({idle})) / sum by (instance) (rate({cpu})))", node
            ),
            HistoryMetric.MEMORY: self._on_node(f"(1 - {available} / {total})", node),
            HistoryMetric.SHM: self._on_node(shm, node),
            HistoryMetric.RECEIVED: self._traffic(node, "received"),
            HistoryMetric.TRANSMITTED: self._traffic(node, "transmitted"),
        }

    def _traffic(self, node: str, direction: str) -> str:
        return self._on_node(f"rate({self._of(f'gpuwarden_host_network_{direction}_bytes_total')}[2m])", node)

    def gpu(self, node: str, index: str) -> dict[HistoryMetric, str]:
        own = _match(gpu=index)
        used, total = (self._of(f"gpuwarden_gpu_memory_{kind}_bytes", own) for kind in ("used", "total"))
        return {
            HistoryMetric.UTILIZATION: self._on_node(self._of("gpuwarden_gpu_utilization_ratio", own), node),
            HistoryMetric.MEMORY: self._on_node(f"({used} / {total})", node),
            HistoryMetric.POWER: self._on_node(self._of("gpuwarden_gpu_power_watts", own), node),
            HistoryMetric.TEMPERATURE: self._on_node(self._of("gpuwarden_gpu_temperature_celsius", own), node),
        }

    def disk(self, node: str, mount: str) -> dict[HistoryMetric, str]:
        used, left = (self._of(f"gpuwarden_disk_{kind}_bytes", _match(mount=mount)) for kind in ("used", "available"))
        return {HistoryMetric.USED: self._on_node(f"({used} / ({used} + {left}))", node)}

    def workload(self, labels: Mapping[str, str]) -> dict[HistoryMetric, str]:
        requested = self._of("gpuwarden_pod_requested_gpus", _match(**labels), 'node!=""')
        return {
            HistoryMetric.UTILIZATION: self._of_holders(labels),
            HistoryMetric.GPUS: f"sum(max by (namespace, pod) ({requested}))",
        }

    def user(self, user: str) -> dict[HistoryMetric, str]:
        own = _match(user=user)
        return {
            HistoryMetric.UTILIZATION: f"max({self._of('gpuwarden_user_gpu_utilization_ratio', own)})",
            HistoryMetric.GPUS: f"max({self._of('gpuwarden_user_gpus', own)})",
        }

    def queue(self, queue: str) -> dict[HistoryMetric, str]:
        own = _match(queue=queue)
        return {
            HistoryMetric.UTILIZATION: self._of_holders({"queue": queue}),
            HistoryMetric.GPUS: f"max({self._of('gpuwarden_queue_used_gpus', own)})",
            HistoryMetric.WAITING: f"max({self._of('gpuwarden_queue_waiting_gpus', own)})",
        }

    def _of(self, metric: str, *matchers: str) -> str:
        """A metric of this cluster."""
        inside = ", ".join((*matchers, *(_match(**{name: value}) for name, value in self._labels.items())))
        return f"{metric}{{{inside}}}" if inside else metric

    def _on_node(self, expression: str, node: str, how: str = "max") -> str:
        """Of the series of all agents, those of one node."""
        agent = f"max by (instance) ({self._of('gpuwarden_agent_info', _match(node=node))})"
        return f"{how}({expression} * on (instance) group_left () {agent})"

    def _of_holders(self, labels: Mapping[str, str]) -> str:
        """Mean utilization of the GPUs whose holder has these labels."""
        held = f"max by (uuid) ({self._of('gpuwarden_gpu_state', _match(**labels), _HELD)})"
        return f"avg({self._of('gpuwarden_gpu_utilization_ratio')} * on (uuid) group_left () {held})"


def _match(**labels: str) -> str:
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items())
