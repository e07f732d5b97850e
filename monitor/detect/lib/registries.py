"""Which nodes reach which registries, from their probes and failing pulls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from monitor.detect.lib.pulls import FailedPull, canonical_registry
from monitor.explain.error_chain.causes import PullFailureCause
from monitor.facts.storage import ProbeFact

RESOLVE, CONNECT, TRUST, DOWN = "node-cannot-resolve", "node-cannot-connect", "node-does-not-trust", "registry-down"
UNDECIDED_SECONDS = 35.0  # every node probes again within this time
_BY_PULL = {
    PullFailureCause.DNS: RESOLVE,
    PullFailureCause.CONNECTION_REFUSED: CONNECT,
    PullFailureCause.TIMEOUT: CONNECT,
    PullFailureCause.CONNECTION_BROKEN: CONNECT,
    PullFailureCause.TLS: TRUST,
    PullFailureCause.PLAIN_HTTP: TRUST,
    PullFailureCause.REGISTRY_ERROR: DOWN,
}
_BY_STAGE = {"dns": RESOLVE, "tcp": CONNECT, "tls": CONNECT, "http": DOWN}


@dataclass(frozen=True)
class RegistryFailure:
    """Failure of one node to reach one registry."""

    node: str
    registry: str
    cause: str
    probed: bool = False
    error: str | None = None
    images: frozenset[str] = frozenset()
    pods: frozenset[str] = frozenset()
    since: float | None = None

    def joined(self, other: RegistryFailure) -> RegistryFailure:
        """Add the failure of a pull. The cause stays, so that of a probe takes precedence."""
        since = min((at for at in (self.since, other.since) if at is not None), default=None)
        return replace(self, images=self.images | other.images, pods=self.pods | other.pods, since=since)


@dataclass(frozen=True)
class RegistryReachability:
    """By registry: failures by node, when nodes last reached it, and whether the daemon does.

    `blind` are the nodes whose probes are unknown now.
    """

    failures: Mapping[str, Mapping[str, RegistryFailure]]
    reached_at: Mapping[str, Mapping[str, float]]
    daemon_reached: Mapping[str, bool]
    blind: frozenset[str]

    def reached_from(self, registry: str) -> Mapping[str, float]:
        """When each node last reached a registry."""
        return self.reached_at.get(registry, {})


def registry_of_url(target: str) -> str:
    """Registry of a URL: its host and port."""
    return canonical_registry((target.partition("://")[2] if "://" in target else target).partition("/")[0])


def probe_failure(node: str, registry: str, probe: ProbeFact) -> RegistryFailure:
    """A failed probe."""
    return RegistryFailure(node, registry, _probe_cause(probe), probed=True, error=probe.error or probe.cause)


def _probe_cause(probe: ProbeFact) -> str:
    cause = probe.cause or ""
    return TRUST if cause.startswith("tls-") or cause == "plain-http" else _BY_STAGE.get(probe.stage or "", CONNECT)


def pull_failure(pull: FailedPull, reached_at: Mapping[str, float]) -> RegistryFailure | None:
    """A failing pull that the registry or the connection to it causes; None if the node has reached it since.

    A container in back-off shows the past. A probe shows only connectivity, not which certificates or proxy the runtime
    uses.
    """
    cause, node, event = _BY_PULL.get(pull.diagnosis.cause), pull.pod.node or "?", pull.event
    direct = pull.diagnosis.host is None or canonical_registry(pull.diagnosis.host) == pull.registry
    probed_at = reached_at.get(node) if direct and cause in (RESOLVE, CONNECT) else None
    failed_at, began = (event.last_at, event.first_at) if event is not None else (None, None)
    if cause is None or (probed_at is not None and (failed_at is None or probed_at > failed_at)):
        return None
    images, pods = frozenset((pull.image,)), frozenset((pull.pod.uid,))
    return RegistryFailure(node, pull.registry, cause, images=images, pods=pods, since=began)


def other_nodes(failures: Sequence[RegistryFailure], reachability: RegistryReachability, since: float) -> set[str]:
    """Nodes without these failures that reached the same registries at or after `since`."""
    failing = {failure.node for failure in failures}
    registries = {failure.registry for failure in failures}
    return {
        node
        for name in registries
        for node, at in reachability.reached_from(name).items()
        if node not in failing and at >= since
    }


def is_undecided(
    failures: Sequence[RegistryFailure], reachability: RegistryReachability, since: float, now: float
) -> bool:
    """Whether it is too early to tell a node's failure from a registry's.

    Nodes probe a registry one after another. That other nodes reached it before the failure began is not evidence; the
    next probe of any of them is. A failing pull does not wait for that.
    """
    if now >= since + UNDECIDED_SECONDS or any(
        failure.pods or reachability.daemon_reached.get(failure.registry) is False for failure in failures
    ):
        return False
    return bool(other_nodes(failures, reachability, 0.0)) and not other_nodes(failures, reachability, since)
