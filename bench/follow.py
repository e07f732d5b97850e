"""Follows a cluster like the daemon, and reports its cost and the latency of changes.

`python -m bench.follow KUBECONFIG AGENT_PORT` follows; each input line, once it has settled, prints the figures since
the previous line. A change carries its time of sending (all processes share the clock) as the index of its task; it is
seen when a published view shows the pod with that index or a later one.
"""

from __future__ import annotations

import json
import sys
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.cluster_data import AGENT_LABEL
from monitor.cluster.live import ClusterSettings, LiveCluster
from monitor.cluster.platforms import all_rules
from monitor.config.daemon import DaemonConfig
from monitor.facts.cluster import ClusterView, PodView
from monitor.facts.kube import PodFact
from monitor.kube.client import connect
from monitor.kube.store import ObjectChange

SETTLE_SECONDS = 60.0
LONGEST_INDEX = 9  # of a task; the time of sending has more digits


class Witness(LiveCluster):
    """Records when each pod change reaches the published view."""

    def __init__(self, *args: Any) -> None:
        self.seen: list[float] = []  # seconds from sent to visible in the view
        self.pending: deque[tuple[PodFact, int]] = deque()
        super().__init__(*args)

    def _update(self) -> None:
        super()._update()
        if not self.pending:
            return
        view, now = self.view, time.monotonic_ns()
        for _ in range(len(self.pending)):
            pod, sent = self.pending.popleft()
            if _shown_index(view, pod) >= sent:
                self.seen.append((now - sent) / 1e9)
            else:
                self.pending.append((pod, sent))

    def _kube_changed(self, resource: str, changes: Sequence[ObjectChange[Any]]) -> None:
        for change in changes if resource == "pods" else ():
            pod: PodFact | None = change.new
            index = pod.labels.get("FC_TASK_INDEX", "") if pod else ""
            if pod and len(index) > LONGEST_INDEX:
                self.pending.append((pod, int(index)))
        super()._kube_changed(resource, changes)


def _shown_index(view: ClusterView, pod: PodFact) -> int:
    """Index of a pod in a view; -1 if absent."""
    at = bisect_left(view.pods, (pod.namespace, pod.name, pod.uid), key=_order)
    found = view.pods[at] if at < len(view.pods) else None
    return int(found.identity.index or 0) if found is not None and found.uid == pod.uid else -1


def _order(pod: PodView) -> tuple[str, str, str]:
    return pod.namespace, pod.name, pod.uid


def settings(agent_port: int) -> ClusterSettings:
    """The daemon's defaults, with another agent port."""
    daemon = DaemonConfig()
    return ClusterSettings(
        poll=daemon.agents.settings(),
        agents=(),
        agent_label=AGENT_LABEL,
        agent_port=agent_port,
        resource=daemon.gpu_resource,
        limits=daemon.gpu.limits(),
        rules=all_rules(),
        cycle=daemon.cycle,
    )


def fare(cluster: Witness) -> dict[str, Any]:
    """Figures since the last call."""
    memory = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    found = {
        "at": time.monotonic(),
        "cpu": time.process_time(),
        "waited": sum(_waited(task) for task in Path("/proc/self/task").iterdir()),
        "rss_mib": int(memory["VmRSS"].split()[0]) / 1024,
        "peak_mib": int(memory["VmHWM"].split()[0]) / 1024,
        "seen": cluster.seen,
        "unseen": len(cluster.pending),
        "missing": [source.name for source in cluster.view.sources if not source.ok],
    }
    cluster.seen = []
    return found


def _waited(task: Path) -> float:
    """Seconds that runnable threads waited for a core because of other programs."""
    return int((task / "schedstat").read_text().split()[1]) / 1e9


def main(kubeconfig: str, agent_port: str) -> None:
    cluster = Witness(settings(int(agent_port)), connect(kubeconfig))
    cluster.start()
    cluster.wait_settled(SETTLE_SECONDS)
    for _ in sys.stdin:
        print(json.dumps(fare(cluster)), flush=True)
    cluster.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
