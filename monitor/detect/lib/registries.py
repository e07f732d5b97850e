"""Which nodes reach which registries, from their probes and failing pulls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from monitor.detect.base import RuleContext
from monitor.detect.lib.pulls import FailedPull, canonical_registry, failed_pulls
from monitor.detect.visibility import clock_skew
from monitor.explain.image_pull import PullFailureCause
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


@dataclass
class RegistryFailure:
    """Failure of one node to reach one registry. A probe's cause takes precedence over that of a pull."""

    node: str
    registry: str
    cause: str
    probed: bool = False
    error: str | None = None
    images: set[str] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    since: float | None = None


@dataclass
class RegistryReachability:
    """By registry: failures by node, when nodes last reached it, and whether the daemon does."""

    failures: defaultdict[str, dict[str, RegistryFailure]] = field(default_factory=lambda: defaultdict(dict))
    reached_at: defaultdict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    daemon_reached: dict[str, bool] = field(default_factory=dict)


def registry_reachability(context: RuleContext) -> RegistryReachability:
    """Reachability of all probed registries and of those with failing pulls."""
    reachability = RegistryReachability()
    for node, probe, at in _probes(context):
        registry = canonical_registry(host_of(probe.target))
        if probe.ok:
            reachability.reached_at[registry][node] = at
        else:
            error = probe.error or probe.cause
            reachability.failures[registry][node] = RegistryFailure(
                node, registry, _probe_cause(probe), probed=True, error=error
            )
    for service in context.services:
        if service.kind in ("registry", "harbor"):
            host = canonical_registry(host_of(service.target))
            reachability.daemon_reached[host] = reachability.daemon_reached.get(host, True) and service.ok
    for pull in (pull for pod in context.facts.pods for pull in failed_pulls(pod, context.facts)):
        cause = _BY_PULL.get(pull.diagnosis.cause)
        if cause is not None and not _is_over(pull, cause, reachability):
            _add(reachability, pull, cause)
    return reachability


def _probes(context: RuleContext) -> Iterable[tuple[str, ProbeFact, float]]:
    """Probes of each node with their time in our clock. Those of a silent agent are stale."""
    for node, agent in context.facts.agent_of_node.items():
        if agent.snapshot is not None and agent.silent_since is None:
            for probe in agent.snapshot.probes or ():
                yield node, probe, probe.at + clock_skew(agent)


def host_of(target: str) -> str:
    """Host and port of a URL."""
    return (target.partition("://")[2] if "://" in target else target).partition("/")[0]


def _probe_cause(probe: ProbeFact) -> str:
    cause = probe.cause or ""
    return TRUST if cause.startswith("tls-") or cause == "plain-http" else _BY_STAGE.get(probe.stage or "", CONNECT)


def _is_over(pull: FailedPull, cause: str, reachability: RegistryReachability) -> bool:
    """Whether the node has reached the registry since: a container in back-off shows the past.

    Applies to connectivity only; a probe does not know which certificates or proxy the runtime uses.
    """
    at = reachability.reached_at[pull.registry].get(pull.pod.node or "")
    direct = pull.diagnosis.host is None or canonical_registry(pull.diagnosis.host) == pull.registry
    if at is None or cause not in (RESOLVE, CONNECT) or not direct:
        return False
    return pull.event is None or pull.event.last_at is None or at > pull.event.last_at


def other_nodes(failures: Sequence[RegistryFailure], reachability: RegistryReachability, since: float) -> set[str]:
    """Nodes without these failures that reached the same registries at or after `since`."""
    failing = {failure.node for failure in failures}
    registries = {failure.registry for failure in failures}
    return {
        node
        for name in registries
        for node, at in reachability.reached_at[name].items()
        if node not in failing and at >= since
    }


def is_undecided(
    failures: Sequence[RegistryFailure], reachability: RegistryReachability, since: float, now: float
) -> bool:
    """Whether it is too early to tell a node's failure from a registry's.

    Nodes probe a registry one after another. That other nodes reached it before the failure began is not evidence; the
    next probe of any of them is. A failing pull does not wait for that.
    """
    if now - since >= UNDECIDED_SECONDS or any(
        failure.pods or reachability.daemon_reached.get(failure.registry) is False for failure in failures
    ):
        return False
    return bool(other_nodes(failures, reachability, 0.0)) and not other_nodes(failures, reachability, since)


def _add(reachability: RegistryReachability, pull: FailedPull, cause: str) -> None:
    node = pull.pod.node or "?"
    failure = reachability.failures[pull.registry].setdefault(node, RegistryFailure(node, pull.registry, cause))
    failure.images.add(pull.image)
    failure.pods.add(pull.pod.uid)
    began = pull.event.first_at if pull.event else None
    if began is not None:
        failure.since = began if failure.since is None else min(began, failure.since)
