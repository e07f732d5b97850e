"""The agents' pods: which to poll, kept with every change of a pod instead of searched among all pods."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from monitor.facts.kube import PodFact
from monitor.kube.store import ObjectChange


class AgentPods:
    """Running pods with the agents' label: `key=value`, or `key` with any value. Changed by one thread, read by any."""

    def __init__(self, label: str, port: int, namespace: str | None = None) -> None:
        self._key, self._equals, self._value = label.partition("=")
        self._port = port
        self._namespace = namespace
        self._lock = threading.Lock()
        self._running: dict[str, tuple[str, str | None]] = {}  # address and node by uid

    def note(self, changes: Sequence[ObjectChange[PodFact]]) -> None:
        """Take over changed pods."""
        for change in changes:
            old, new = change.old, change.new
            if new is not None and self._is_target(new):
                with self._lock:
                    self._running[new.uid] = (_address(new.pod_ip or "", self._port), new.node)
            elif old is not None and old.uid in self._running:
                with self._lock:
                    del self._running[old.uid]

    def targets(self) -> dict[str, str | None]:
        """Node by address."""
        with self._lock:
            return dict(self._running.values())

    def _is_target(self, pod: PodFact) -> bool:
        value = pod.labels.get(self._key)
        labelled = value == self._value if self._equals else value is not None
        return labelled and self._namespace in (None, pod.namespace) and bool(pod.pod_ip) and pod.phase == "Running"


def _address(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
