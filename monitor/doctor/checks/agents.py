"""The agents: deployed, answering, collecting, and of our version."""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass, replace
from functools import partial

import monitor
from monitor.base.threads import run_parallel
from monitor.cluster.agents.client import AgentError, SnapshotClient
from monitor.cluster.agents.snapshot import decode_snapshot
from monitor.config.types import Listen
from monitor.doctor.checks import kubernetes
from monitor.doctor.context import DoctorContext
from monitor.doctor.model import (
    CLUSTER_TIMEOUT_SECONDS,
    Check,
    CheckVerdict,
    Verdicts,
    joined,
    not_checked,
    ok,
    problem,
    warning,
)
from monitor.facts.gpu_sharing import has_gpus
from monitor.facts.node import CollectorFact, NodeSnapshot
from monitor.kube.decode.stream import MalformedResponseError, decode_pod_list

POLL_SECONDS = 2.5
ALL_POLLS_SECONDS = 3.0
POLL_WORKERS = 64
LIST_SECONDS = 2.5
STALE_INTERVAL_COUNT = 3
MIN_STALE_SECONDS = 30.0
# Why an agent returned no snapshot, in display order.
TROUBLES = ("token", "tls", "refused", "timeout", "dns", "no-snapshot", "error")
# What can be wrong with a collector, in display order.
FAULTS = ("hung", "failing", "stale")
REFUSALS = ("answered 401", "answered 403")


@dataclass(frozen=True)
class PolledAgent:
    """An agent's reply. `trouble` is one of TROUBLES; `offset` is how far its clock is ahead of ours."""

    target: str
    node: str | None = None
    trouble: str | None = None
    why: str | None = None
    snapshot: NodeSnapshot | None = None
    offset: float | None = None

    @property
    def name(self) -> str:
        return self.node or (self.snapshot.node if self.snapshot else self.target)


@dataclass(frozen=True)
class AgentsFacts:
    """All agents. `local`: only the one of this machine is expected, and it may not have been started yet.

    `unknown` says why their addresses are unknown. `waiting` are the nodes of agent pods that are not running.
    `gpu_nodes` are the nodes with GPUs in Kubernetes; None without Kubernetes.
    """

    agents: tuple[PolledAgent, ...] = ()
    local: bool = False
    label: str | None = None
    unknown: str | None = None
    waiting: tuple[str, ...] = ()
    gpu_nodes: tuple[str, ...] | None = None
    version: str = ""


def judge_found(facts: AgentsFacts) -> Verdicts:
    """Agents that are missing, and agents that do not answer."""
    if facts.unknown is not None:
        return (not_checked("agents.unknown", why=facts.unknown),)
    if facts.local and facts.agents and facts.agents[0].trouble == "refused":
        return (not_checked("agents.none-here", target=facts.agents[0].target),)
    verdicts = _missing(facts)
    for trouble in TROUBLES:
        silent = [agent for agent in facts.agents if agent.trouble == trouble]
        if silent:
            names, why = joined([agent.name for agent in silent]), silent[0].why or "?"
            verdicts.append(problem(f"agents.{trouble}", count=len(silent), names=names, why=why))
    if verdicts:
        return tuple(verdicts)
    if facts.gpu_nodes is None:
        return (ok("agents.answer", count=len(facts.agents)),)
    return (ok("agents.answer-of", count=len(facts.agents), nodes=len(facts.gpu_nodes)),)


def _missing(facts: AgentsFacts) -> list[CheckVerdict]:
    if not facts.agents and not facts.waiting:
        if facts.gpu_nodes == ():
            return [warning("agents.no-gpus")]
        return [problem("agents.none", label=facts.label or "?")]
    verdicts = []
    if facts.waiting:
        verdicts.append(problem("agents.waiting", count=len(facts.waiting), names=joined(facts.waiting)))
    gpu_nodes = facts.gpu_nodes or ()
    covered = {*facts.waiting, *(agent.name for agent in facts.agents)}
    without = [node for node in gpu_nodes if node not in covered]
    nameless = any(agent.trouble is not None and agent.node is None for agent in facts.agents)
    if without and not nameless:  # an agent that does not answer may run on one of these nodes
        verdicts.append(problem("agents.missing", count=len(without), nodes=len(gpu_nodes), names=joined(without)))
    return verdicts


def judge_readings(facts: AgentsFacts) -> Verdicts:
    """GPU nodes without a driver, and collectors that hang, fail or have stale data."""
    answering = [(agent.name, agent.snapshot) for agent in facts.agents if agent.snapshot is not None]
    if not answering:
        return (not_checked("agents.nobody"),)
    verdicts = []
    blind = [
        name
        for name, snapshot in answering
        if name in (facts.gpu_nodes or ())
        and any(fact.name == "gpu" and fact.outcome == "absent" for fact in snapshot.collectors)
    ]
    if blind:
        verdicts.append(problem("agents.no-cards", count=len(blind), names=joined(blind)))
    affected: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, snapshot in answering:
        for fact in snapshot.collectors:
            if (fault := _fault(fact, snapshot)) is not None:
                affected.setdefault((fault, fact.name), []).append((name, fact.message or "?"))
    for fault, collector in sorted(affected, key=lambda key: FAULTS.index(key[0])):
        nodes = affected[fault, collector]
        names, why = joined([name for name, _ in nodes]), nodes[0][1]
        verdicts.append(problem(f"agents.{fault}", collector=collector, count=len(nodes), names=names, why=why))
    return tuple(verdicts) or (ok("agents.read", count=len(answering)),)


def _fault(fact: CollectorFact, snapshot: NodeSnapshot) -> str | None:
    """What is wrong with a collector: one of FAULTS."""
    if fact.hung_since is not None:
        return "hung"
    if fact.outcome == "failed":
        return "failing"
    if fact.outcome != "ok" or fact.succeeded_at is None:
        return None
    # Both times are from the agent's clock, so a wrong clock does not make data stale.
    age = snapshot.at - fact.succeeded_at
    return "stale" if age > max(MIN_STALE_SECONDS, STALE_INTERVAL_COUNT * fact.interval_seconds) else None


def judge_versions(facts: AgentsFacts) -> Verdicts:
    """Agents whose version differs from ours."""
    versions: dict[str, list[str]] = {}
    for agent in facts.agents:
        if agent.snapshot is not None:
            versions.setdefault(agent.snapshot.agent_version, []).append(agent.name)
    if not versions:
        return (not_checked("agents.nobody"),)
    return tuple(
        warning("agents.version", version=version, own=facts.version, count=len(names), names=joined(names))
        for version, names in sorted(versions.items())
        if version != facts.version
    ) or (ok("agents.same-version", version=facts.version),)


class _DiscoveryError(Exception):
    """The addresses of the agents cannot be determined."""


def read(context: DoctorContext) -> AgentsFacts:
    """Discover the agents as the daemon does, and poll all of them in parallel."""
    try:
        facts, targets = _discover(context)
        poll = context.config.daemon.agents.settings()
        client = SnapshotClient(POLL_SECONDS, poll.token or context.config.agent.read_token(), poll.tls)
    except (_DiscoveryError, ValueError) as error:
        return AgentsFacts(unknown=str(error))
    polls = [partial(_poll, client, target, node) for target, node in targets.items()]
    outcomes = run_parallel(polls, ALL_POLLS_SECONDS, POLL_WORKERS)
    client.close()
    agents = (
        outcome.value or PolledAgent(target, node, "timeout", f"no answer within {ALL_POLLS_SECONDS:g} s")
        for (target, node), outcome in zip(targets.items(), outcomes, strict=True)
    )
    return replace(facts, agents=tuple(agents))


def _discover(context: DoctorContext) -> tuple[AgentsFacts, dict[str, str | None]]:
    """Facts known before polling, and the node, if known, of each address to poll. Raise _DiscoveryError."""
    settings, cluster = context.config.daemon.agents, context.cached(kubernetes.read)
    facts = AgentsFacts(label=settings.label, version=monitor.__version__)
    static: dict[str, str | None] = {str(address): None for address in settings.static}
    if cluster.api is None:
        if static:
            return facts, static
        if cluster.lost or cluster.refused:
            raise _DiscoveryError("the API server, which knows their pods, does not answer")
        return replace(facts, local=True), {str(context.config.agent.listen): None}
    facts = replace(facts, gpu_nodes=_gpu_nodes(context))
    if static:
        return facts, static
    targets, waiting = _pods(context)
    return replace(facts, waiting=waiting), targets


def _gpu_nodes(context: DoctorContext) -> tuple[str, ...] | None:
    """Nodes with GPUs; None if nodes cannot be listed, which the check of rights reports."""
    from monitor.kube.resources import NODES

    resource = context.config.daemon.gpu_resource
    try:
        nodes = NODES.kind.page(_list(context, "/api/v1/nodes", {})).items
    except (_DiscoveryError, MalformedResponseError):
        return None
    return tuple(sorted(node.name for node in nodes if has_gpus(node, resource)))


def _pods(context: DoctorContext) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Addresses and nodes of the running agent pods, and the nodes of those that are not running."""
    settings = context.config.daemon.agents
    try:
        pods = decode_pod_list(_list(context, "/api/v1/pods", {"labelSelector": settings.label})).items
    except MalformedResponseError as error:
        raise _DiscoveryError(str(error)) from error
    targets: dict[str, str | None] = {}
    waiting = []
    for pod in pods:
        if settings.namespace not in (None, pod.namespace):
            continue
        if pod.phase == "Running" and pod.pod_ip:
            targets[str(Listen(host=pod.pod_ip, port=settings.port))] = pod.node
        else:
            waiting.append(pod.node or pod.name)
    return targets, tuple(sorted(waiting))


def _list(context: DoctorContext, path: str, query: dict[str, str]) -> bytes:
    """A list from the API server's cache, which is recent enough. Raise _DiscoveryError."""
    from monitor.kube.client import MAX_LIST_BYTES, ApiConnectionError, ApiError

    api = context.cached(kubernetes.read).api
    assert api is not None
    try:
        return api.get(path, {"resourceVersion": "0", **query}, kubernetes.JSON, LIST_SECONDS, MAX_LIST_BYTES)
    except (ApiError, ApiConnectionError) as error:
        raise _DiscoveryError(f"{path.rpartition('/')[2]} cannot be listed: {error}") from error


def _poll(client: SnapshotClient, target: str, node: str | None) -> PolledAgent:
    before = time.time()
    try:
        body = client(target)
        midpoint = (before + time.time()) / 2
        snapshot = decode_snapshot(body)
    except AgentError as error:
        return PolledAgent(target, node, _trouble(error), str(error))
    return PolledAgent(target, node, snapshot=snapshot, offset=snapshot.at - midpoint)


def _trouble(error: AgentError) -> str:
    """Why a poll failed: one of TROUBLES."""
    if str(error).startswith(REFUSALS):
        return "token"
    causes = {
        ssl.SSLError: "tls",
        socket.gaierror: "dns",
        ConnectionRefusedError: "refused",
        TimeoutError: "timeout",
        OSError: "error",
    }
    return next((trouble for cause, trouble in causes.items() if isinstance(error.__cause__, cause)), "no-snapshot")


CHECKS = (
    Check("agents.found", read, judge_found, CLUSTER_TIMEOUT_SECONDS),
    Check("agents.readings", read, judge_readings, CLUSTER_TIMEOUT_SECONDS),
    Check("agents.versions", read, judge_versions, CLUSTER_TIMEOUT_SECONDS),
)
