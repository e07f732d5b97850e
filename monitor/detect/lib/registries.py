"""Which node reaches which registry: by its own probes, and by the pulls that fail there. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from monitor.detect.base import RuleContext
from monitor.detect.lib.pods import clock_skew
from monitor.detect.lib.pulls import FailedPull, canonical_registry, failed_pulls
from monitor.explain.image_pull import Pull
from monitor.facts.storage import ProbeFact

RESOLVE, CONNECT, TRUST, DOWN = "node-cannot-resolve", "node-cannot-connect", "node-does-not-trust", "registry-down"
UNDECIDED_SECONDS = 35.0  # seconds: within them every node has asked again
_BY_PULL = {
    Pull.DNS: RESOLVE,
    Pull.CONNECTION_REFUSED: CONNECT,
    Pull.TIMEOUT: CONNECT,
    Pull.CONNECTION_BROKEN: CONNECT,
    Pull.TLS: TRUST,
    Pull.PLAIN_HTTP: TRUST,
    Pull.REGISTRY_ERROR: DOWN,
}
_BY_STAGE = {"dns": RESOLVE, "tcp": CONNECT, "tls": CONNECT, "http": DOWN}


@dataclass
class RegistryFailure:
    """What one node has with one registry. A probe's word on the cause counts more than that of a pull."""

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
    """By registry: the nodes that have failure, those that reached it and when, and whether the daemon itself does."""

    failures: defaultdict[str, dict[str, RegistryFailure]] = field(default_factory=lambda: defaultdict(dict))
    reached_at: defaultdict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    daemon_reached: dict[str, bool] = field(default_factory=dict)


def registry_reachability(context: RuleContext) -> RegistryReachability:
    """Return who reaches what."""
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
    for pull in failed_pulls(context.facts):
        cause = _BY_PULL.get(pull.diagnosis.cause)
        if cause is not None and not _is_over(pull, cause, reachability):
            _add(reachability, pull, cause)
    return reachability


def _probes(context: RuleContext) -> Iterable[tuple[str, ProbeFact, float]]:
    """Yield each node's probes, and when they were made by our clock. What a silent agent said proves nothing."""
    for node, agent in context.facts.agent_of_node.items():
        if agent.snapshot is not None and agent.silent_since is None:
            for probe in agent.snapshot.probes or ():
                yield node, probe, probe.at + clock_skew(agent)


def host_of(target: str) -> str:
    """Given a URL, return its host and port."""
    return (target.partition("://")[2] if "://" in target else target).partition("/")[0]


def _probe_cause(probe: ProbeFact) -> str:
    cause = probe.cause or ""
    return TRUST if cause.startswith("tls-") or cause == "plain-http" else _BY_STAGE.get(probe.stage or "", CONNECT)


def _is_over(pull: FailedPull, cause: str, reachability: RegistryReachability) -> bool:
    """Return whether the node has reached the registry since: a container in back-off shows what was, not what is.

    Only for the way there. What the runtime trusts, and whether it goes through a proxy, a probe does not know.
    """
    at = reachability.reached_at[pull.registry].get(pull.pod.node or "")
    direct = pull.diagnosis.host is None or canonical_registry(pull.diagnosis.host) == pull.registry
    if at is None or cause not in (RESOLVE, CONNECT) or not direct:
        return False
    return pull.event is None or pull.event.last_at is None or at > pull.event.last_at


def other_nodes(failures: Sequence[RegistryFailure], reachability: RegistryReachability, since: float) -> set[str]:
    """Return the nodes without these failures that reached the same registries at or after this time."""
    ill = {each.node for each in failures}
    registries = {each.registry for each in failures}
    return {
        node
        for name in registries
        for node, at in reachability.reached_at[name].items()
        if node not in ill and at >= since
    }


def is_undecided(
    failures: Sequence[RegistryFailure], reachability: RegistryReachability, since: float, now: float
) -> bool:
    """Return whether it is too early to say whose fault it is.

    Nodes ask a registry one after the other. That the others reached it before this began proves nothing about them;
    the first of them to ask again does. A pull that fails does not wait for that.
    """
    if now - since >= UNDECIDED_SECONDS or any(
        each.pods or reachability.daemon_reached.get(each.registry) is False for each in failures
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
