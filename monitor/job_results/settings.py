"""Which jobs' owners get a message about the end."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.base.globs import matches_any_glob
from monitor.explain.model import PodRef
from monitor.facts.cluster import Identity
from monitor.facts.kube import PodFact

LABEL = "gpuwarden.io/job-results"
_ON, _OFF = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})
# Workloads that are meant to run until they are deleted.
_SERVICES = frozenset({"Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "StaticPod", "Node", "Notebook"})


@dataclass(frozen=True)
class JobResultSettings:
    """Jobs of these users or queues (patterns), and those with the label; with the label `false`, never.

    `receivers` are those of the messages.
    """

    receivers: tuple[str, ...]
    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    label: str = LABEL

    def wants(self, pod: PodFact, who: Identity, reference: PodRef) -> bool:
        """Whether the end of the job of this pod is reported."""
        if who.inference or who.workload_kind in _SERVICES:
            return False
        label = pod.labels.get(self.label, "").strip().lower()
        if label in _ON or label in _OFF:
            return label in _ON
        by_user = bool(reference.user) and matches_any_glob(reference.user or "", self.users)
        return by_user or (bool(reference.queue) and matches_any_glob(reference.queue or "", self.queues))
