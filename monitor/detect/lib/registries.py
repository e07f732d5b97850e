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
    """By registry: the nodes that have trouble, those that reached it and when, and whether the daemon itself does."""

    troubles: defaultdict[str, dict[str, RegistryFailure]] = field(default_factory=lambda: defaultdict(dict))
    well: defaultdict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    daemon: dict[str, bool] = field(default_factory=dict)


def registry_reachability(situation: RuleContext) -> RegistryReachability:
    """Return who reaches what."""
    reach = RegistryReachability()
    for node, probe, at in _probes(situation):
        registry = canonical_registry(host_of(probe.target))
        if probe.ok:
            reach.well[registry][node] = at
        else:
            error = probe.error or probe.cause
            reach.troubles[registry][node] = RegistryFailure(node, registry, _probe_cause(probe), probed=True, error=error)
    for service in situation.services:
        if service.kind in ("registry", "harbor"):
            host = canonical_registry(host_of(service.target))
            reach.daemon[host] = reach.daemon.get(host, True) and service.ok
    for pull in failed_pulls(situation.world):
        cause = _BY_PULL.get(pull.found.cause)
        if cause is not None and not _is_over(pull, cause, reach):
            _add(reach, pull, cause)
    return reach


def _probes(situation: RuleContext) -> Iterable[tuple[str, ProbeFact, float]]:
    """Yield each node's probes, and when they were made by our clock. What a silent agent said proves nothing."""
    for node, agent in situation.world.agent_of_node.items():
        if agent.snapshot is not None and agent.silent_since is None:
            for probe in agent.snapshot.probes or ():
                yield node, probe, probe.at + clock_skew(agent)


def host_of(target: str) -> str:
    """Given a URL, return its host and port."""
    return (target.partition("://")[2] if "://" in target else target).partition("/")[0]


def _probe_cause(probe: ProbeFact) -> str:
    cause = probe.cause or ""
    return TRUST if cause.startswith("tls-") or cause == "plain-http" else _BY_STAGE.get(probe.stage or "", CONNECT)


def _is_over(pull: FailedPull, cause: str, reach: RegistryReachability) -> bool:
    """Return whether the node has reached the registry since: a container in back-off shows what was, not what is.

    Only for the way there. What the runtime trusts, and whether it goes through a proxy, a probe does not know.
    """
    at = reach.well[pull.registry].get(pull.pod.node or "")
    direct = pull.found.host is None or canonical_registry(pull.found.host) == pull.registry
    if at is None or cause not in (RESOLVE, CONNECT) or not direct:
        return False
    return pull.event is None or pull.event.last_at is None or at > pull.event.last_at


def other_nodes(troubles: Sequence[RegistryFailure], reach: RegistryReachability, since: float) -> set[str]:
    """Return the nodes without these troubles that reached the same registries at or after this time."""
    ill = {each.node for each in troubles}
    registries = {each.registry for each in troubles}
    return {node for name in registries for node, at in reach.well[name].items() if node not in ill and at >= since}


def is_undecided(troubles: Sequence[RegistryFailure], reach: RegistryReachability, since: float, now: float) -> bool:
    """Return whether it is too early to say whose fault it is.

    Nodes ask a registry one after the other. That the others reached it before this began proves nothing about them;
    the first of them to ask again does. A pull that fails does not wait for that.
    """
    if now - since >= UNDECIDED_SECONDS or any(each.pods or reach.daemon.get(each.registry) is False for each in troubles):
        return False
    return bool(other_nodes(troubles, reach, 0.0)) and not other_nodes(troubles, reach, since)


def _add(reach: RegistryReachability, pull: FailedPull, cause: str) -> None:
    node = pull.pod.node or "?"
    trouble = reach.troubles[pull.registry].setdefault(node, RegistryFailure(node, pull.registry, cause))
    trouble.images.add(pull.image)
    trouble.pods.add(pull.pod.uid)
    began = pull.event.first_at if pull.event else None
    if began is not None:
        trouble.since = began if trouble.since is None else min(began, trouble.since)
