"""The agents: found as the daemon finds them, and each asked once."""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import replace
from functools import partial

import msgspec

import monitor
from monitor.base.peer_http import PeerTls
from monitor.base.threads import run_parallel
from monitor.cluster.agents.client import AgentError, SnapshotClient
from monitor.doctor.checks.agents import AgentLook, AgentsFacts
from monitor.doctor.context import Visit
from monitor.facts.node import NodeSnapshot
from monitor.kube.decode.stream import MalformedResponseError, decode_pod_list

JSON = "application/json"
ASK_SECONDS = 2.5
ALL_SECONDS = 3.0
LIST_SECONDS = 2.5
CREW = 64
REFUSALS = ("answered 401", "answered 403")


class _FindError(Exception):
    """Where agents are could not be found out."""


def agents(visit: Visit) -> AgentsFacts:
    """Find the agents and ask them all, side by side."""
    try:
        found, targets = _found(visit)
        token, tls = _secrets(visit)
        fetch = SnapshotClient(ASK_SECONDS, token, tls)
    except (_FindError, ValueError) as error:
        return AgentsFacts(unknown=str(error))
    outcomes = run_parallel([partial(_ask, fetch, target, node) for target, node in targets.items()], ALL_SECONDS, CREW)
    fetch.close()
    looks = (
        outcome.value or AgentLook(target, node, "timeout", f"no answer within {ALL_SECONDS:g} s")
        for (target, node), outcome in zip(targets.items(), outcomes, strict=True)
    )
    return replace(found, agents=tuple(looks))


def _secrets(visit: Visit) -> tuple[str | None, PeerTls | None]:
    poll = visit.config.daemon.agents.settings()
    return poll.token or visit.config.agent.read_token(), poll.tls


def _found(visit: Visit) -> tuple[AgentsFacts, dict[str, str | None]]:
    """Return what is known before any is asked, and whom to ask. Raise _FindError."""
    wanted, cluster = visit.config.daemon.agents, visit.cluster.get()
    facts = AgentsFacts(label=wanted.label, version=monitor.__version__)
    static: dict[str, str | None] = {str(address): None for address in wanted.static}
    if cluster.api is None:
        if static:
            return facts, static
        if cluster.facts.lost or cluster.facts.refused:
            raise _FindError("the API server, which knows their pods, does not answer")
        return replace(facts, own=True), {str(visit.config.agent.listen): None}
    nodes = _gpu_nodes(visit)
    if static:
        return replace(facts, gpu_nodes=nodes), static
    targets, waiting = _pods(visit)
    return replace(facts, gpu_nodes=nodes, waiting=waiting), targets


def _gpu_nodes(visit: Visit) -> tuple[str, ...] | None:
    """Return the nodes that have GPUs; None if they cannot be listed: the rights say so."""
    from monitor.kube.resources import NODES

    resource = visit.config.daemon.gpu_resource
    try:
        nodes = NODES.kind.page(_list(visit, "/api/v1/nodes", {})).items
    except (_FindError, MalformedResponseError):
        return None
    return tuple(sorted(node.name for node in nodes if node.capacity.get(resource, 0) > 0))


def _pods(visit: Visit) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Return the addresses of agents' pods that run, with their nodes, and the nodes of those that do not."""
    wanted = visit.config.daemon.agents
    try:
        listed = decode_pod_list(_list(visit, "/api/v1/pods", {"labelSelector": wanted.label})).items
    except MalformedResponseError as error:
        raise _FindError(str(error)) from error
    pods = [pod for pod in listed if wanted.namespace in (None, pod.namespace)]
    runs = {pod.uid: pod.phase == "Running" and bool(pod.pod_ip) for pod in pods}
    targets: dict[str, str | None] = {
        f"[{pod.pod_ip}]:{wanted.port}" if ":" in (pod.pod_ip or "") else f"{pod.pod_ip}:{wanted.port}": pod.node
        for pod in pods
        if runs[pod.uid]
    }
    return targets, tuple(sorted(pod.node or pod.name for pod in pods if not runs[pod.uid]))


def _list(visit: Visit, path: str, query: dict[str, str]) -> bytes:
    """Return a list, from the API server's cache: a moment old is new enough. Raise _FindError."""
    from monitor.kube.client import ApiConnectionError, ApiError

    api = visit.cluster.get().api
    assert api is not None
    try:
        return api.get(path, {"resourceVersion": "0", **query}, JSON, LIST_SECONDS)
    except (ApiError, ApiConnectionError) as error:
        raise _FindError(f"{path.rpartition('/')[2]} cannot be listed: {error}") from error


def _ask(fetch: SnapshotClient, target: str, node: str | None) -> AgentLook:
    before = time.time()
    try:
        body = fetch(target)
        between = (before + time.time()) / 2
        snapshot = msgspec.json.decode(body, type=NodeSnapshot)
    except AgentError as error:
        return AgentLook(target, node, _trouble(error), str(error))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return AgentLook(target, node, "no-snapshot", "what it sent is no snapshot")
    return AgentLook(target, node, snapshot=snapshot, offset=snapshot.at - between)


def _trouble(error: AgentError) -> str:
    """Given why there is no answer, return the kind of it: one of TROUBLES."""
    if str(error).startswith(REFUSALS):
        return "token"
    kinds = {
        ssl.SSLError: "tls",
        socket.gaierror: "dns",
        ConnectionRefusedError: "refused",
        TimeoutError: "timeout",
        ConnectionResetError: "error",
        OSError: "error",
    }
    return next((word for kind, word in kinds.items() if isinstance(error.__cause__, kind)), "no-snapshot")
