"""The lab's cluster through its API server: pods, events and nodes without a kubelet."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from tests.lab.errors import LabError, wait_for
from tests.lab.manifests import lease_manifest, node_manifest, node_status

ANSWER_LIMIT = 10
HEARTBEAT_EVERY = 8.0
FINAL_PHASES = ("Succeeded", "Failed")
NOT_READY_TAINT = "node.kubernetes.io/not-ready"
log = logging.getLogger(__name__)


def now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def _unless_gone() -> Iterator[None]:
    """Ignore 404 responses."""
    try:
        yield
    except ApiException as error:
        if error.status != 404:
            raise


class Cluster:
    """Operations on pods and nodes, each with a timeout."""

    def __init__(self, kubeconfig: Path) -> None:
        # Any: the client also accepts plain dictionaries, which its types do not express.
        self.api: Any = config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]  # theirs
        self.core: Any = client.CoreV1Api(self.api)

    def close(self) -> None:
        self.api.close()

    def create_pod(self, manifest: Mapping[str, Any]) -> Any:
        namespace = manifest["metadata"]["namespace"]
        return self.core.create_namespaced_pod(namespace, manifest, _request_timeout=ANSWER_LIMIT)

    def read_pod(self, pod: Any) -> Any:
        """The current pod; ApiException if it is gone."""
        found = pod.metadata
        return self.core.read_namespaced_pod(found.name, found.namespace, _request_timeout=ANSWER_LIMIT)

    def events_of(self, pod: Any) -> list[str]:
        """The pod's events as `reason: message`, oldest first."""
        events = self.core.list_namespaced_event(
            pod.metadata.namespace,
            field_selector=f"involvedObject.uid={pod.metadata.uid}",
            _request_timeout=ANSWER_LIMIT,
        )
        ordered = sorted(events.items, key=lambda event: event.metadata.creation_timestamp)
        return [f"{event.reason}: {event.message}" for event in ordered]

    def wait_for_phase(self, pod: Any, phase: str, limit: float) -> Any:
        """Wait until the pod is in this phase and return it; LabError with its events otherwise."""

        def look() -> Any:
            current = self.read_pod(pod)
            return current if current.status.phase in (phase, *FINAL_PHASES) else None

        try:
            found = wait_for(look, limit, f"pod {pod.metadata.name} {phase}")
        except LabError as error:
            raise LabError(f"{error}{self._story(pod)}") from None
        if found.status.phase != phase:
            raise LabError(f"pod {pod.metadata.name} will never be {phase}{self._story(pod)}")
        return found

    def _story(self, pod: Any) -> str:
        events = "".join(f"\n    {event}" for event in self.events_of(pod))
        return f"; it is {self.read_pod(pod).status.phase}{events}"

    def delete_pods(self, pods: Sequence[Any], limit: float) -> None:
        """Delete pods and wait until they and their containers are gone; LabError on timeout."""
        for pod in pods:
            self._delete(pod, {})
        for pod in pods:
            wait_for(partial(self._has_ended, pod), limit, f"the containers of {pod.metadata.name} ended")
            # This kubelet releases the object only at its next removal of dead sandboxes, up to a minute later.
            self._delete(pod, {"grace_period_seconds": 0})

    def _delete(self, pod: Any, options: Mapping[str, Any]) -> None:
        found = pod.metadata
        with _unless_gone():
            self.core.delete_namespaced_pod(found.name, found.namespace, _request_timeout=ANSWER_LIMIT, **options)

    def _has_ended(self, pod: Any) -> bool:
        with _unless_gone():
            current = self.read_pod(pod)
            same = current.metadata.uid == pod.metadata.uid
            return not (same and any(item.state.running for item in current.status.container_statuses or ()))
        return True

    def node(self, name: str) -> Any | None:
        """A node; None if it does not exist or the API server does not respond."""
        try:
            return self.core.read_node(name, _request_timeout=ANSWER_LIMIT)
        except (ApiException, HTTPError):
            return None


def is_ready(node: Any) -> bool:
    """Whether a node is ready."""
    if any(taint.key == NOT_READY_TAINT for taint in node.spec.taints or ()):
        return False
    return any(item.type == "Ready" and item.status == "True" for item in node.status.conditions or ())


class FakeNodes:
    """Nodes without a kubelet, kept alive by a thread that renews their leases."""

    def __init__(self, cluster: Cluster, clock: Callable[[], datetime] = now) -> None:
        self._cluster = cluster
        self._leases: Any = client.CoordinationV1Api(cluster.api)
        self._clock = clock
        self._alive: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, name: str, gpus: int, labels: Mapping[str, str] | None, taints: Sequence[Mapping[str, str]]) -> None:
        """Create the node and wait until pods can be scheduled to it; LabError on timeout."""
        core = self._cluster.core
        core.create_node(node_manifest(name, labels, taints), _request_timeout=ANSWER_LIMIT)
        self._alive.add(name)
        self._beat(name)
        core.patch_node_status(name, node_status(gpus, self._clock()), _request_timeout=ANSWER_LIMIT)
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat_all, name="lab-heartbeats", daemon=True)
            self._thread.start()
        wait_for(lambda: is_ready(core.read_node(name, _request_timeout=ANSWER_LIMIT)), 30, f"node {name} ready")

    def silence(self, name: str) -> None:
        """Stop the node's heartbeats, as after a power failure: the cluster considers it lost after 40 seconds."""
        self._alive.discard(name)

    def remove(self, name: str) -> None:
        """Delete the node."""
        self._alive.discard(name)
        with _unless_gone():
            self._cluster.core.delete_node(name, _request_timeout=ANSWER_LIMIT)
        with _unless_gone():
            self._leases.delete_namespaced_lease(name, "kube-node-lease", _request_timeout=ANSWER_LIMIT)

    def close(self) -> None:
        """Stop the heartbeats."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2 * ANSWER_LIMIT)

    def _beat_all(self) -> None:
        while not self._stop.wait(HEARTBEAT_EVERY):
            for name in sorted(self._alive):
                try:
                    self._beat(name)
                except (ApiException, HTTPError) as error:  # the API server is down, possibly on purpose
                    log.info("no heartbeat for %s: %s", name, error)

    def _beat(self, name: str) -> None:
        lease = lease_manifest(name, self._clock())
        try:
            self._leases.patch_namespaced_lease(name, "kube-node-lease", lease, _request_timeout=ANSWER_LIMIT)
        except ApiException as error:
            if error.status != 404:
                raise
            self._leases.create_namespaced_lease("kube-node-lease", lease, _request_timeout=ANSWER_LIMIT)
