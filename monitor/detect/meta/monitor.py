"""Findings about the monitor itself: what it cannot see is a reason to look, not a reason to be calm. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

BLIND = "monitor-blind"
OWN_RULES = (BLIND, "receiver-failing")
GRACE = 60.0  # seconds after the start in which nothing is missed
AFTER = 60.0  # seconds for which something has to be out of sight
SILENT = 120.0  # seconds after which an agent that nobody has asked any more is out of sight too
KUBERNETES_DOWN = "service-down|service=kubernetes"
CORE = ("pods", "nodes")
STORE = "prometheus"  # the source of all agents' facts, where they are not asked themselves


@dataclass(frozen=True)
class Sight:
    """What can be seen: the sources of the view, the agents, and when the rules last looked (None: not yet).

    `trouble` says why the state of alerts cannot be written, if it cannot.
    """

    started_at: float
    looked_at: float | None = None
    sources: tuple[SourceView, ...] = ()
    agents: Sequence[AgentFact] = ()
    trouble: str | None = None


def with_own(found: Iterable[Finding], sight: Sight, now: float) -> tuple[Finding, ...]:
    """Given what was found, return it with what is to be said of the monitor itself.

    That no agent at all is heard explains each one that is silent, and that Kubernetes is down explains why it is not
    seen.
    """
    found = tuple(found)
    own = tuple(_blind(sight, now)) if now - sight.started_at >= GRACE else ()
    keys = {finding.key for finding in found}
    deaf = next((finding.key for finding in own if finding.cause == "agents"), None)
    explained = [
        msgspec.structs.replace(each, explained_by=KUBERNETES_DOWN)
        if each.cause == "api-server" and KUBERNETES_DOWN in keys
        else each
        for each in own
    ]
    return (*(_behind(finding, deaf) for finding in found), *explained)


def _behind(finding: Finding, deaf: str | None) -> Finding:
    if deaf is None or finding.rule != "agent-silent" or finding.explained_by is not None:
        return finding
    return msgspec.structs.replace(finding, explained_by=deaf)


def _blind(sight: Sight, now: float) -> Iterator[Finding]:
    if sight.trouble is not None:
        yield _finding("state", "state", sight.trouble, None, now)
    yield from _kubernetes(sight, now)
    store = next((each for each in sight.sources if each.name == STORE), None)
    if store is None or store.ok:
        yield from _agents(sight.agents, now)
    elif now - _since(store, sight) >= AFTER:
        yield _finding(STORE, STORE, store.why or "?", _since(store, sight), now)
    looked = sight.started_at if sight.looked_at is None else sight.looked_at
    if now - looked >= AFTER:
        yield _finding("detection", "detection", "the rules have not run", looked, now)


def _kubernetes(sight: Sight, now: float) -> Iterator[Finding]:
    """Yield what of Kubernetes is out of sight; all of it is one finding. Not to have any is no loss."""
    lost = [each for each in sight.sources if not each.ok and each.name not in ("kubernetes", "agents", STORE)]
    lost = [each for each in lost if now - _since(each, sight) >= AFTER]
    if any(each.name in CORE for each in lost):
        why = "; ".join(dict.fromkeys(each.why or "?" for each in lost))
        names = ", ".join(each.name for each in lost)
        yield _finding("api-server", names, why, min(_since(each, sight) for each in lost), now, "api-server")
        return
    for each in lost:
        yield _finding("source", each.name, each.why or "?", _since(each, sight), now)


def _since(source: SourceView, sight: Sight) -> float:
    return sight.started_at if source.since is None else source.since


def _agents(agents: Sequence[AgentFact], now: float) -> Iterator[Finding]:
    """Yield that nobody is heard any more. A single agent that is silent is a rule's business."""
    if len(agents) < 2:
        return
    since = [_unheard_since(agent, now) for agent in agents]
    known = [each for each in since if each is not None]
    if len(known) == len(since) and now - max(known) >= AFTER:
        why = "; ".join(dict.fromkeys(agent.error for agent in agents if agent.error)) or "?"
        yield _finding("agents", f"{len(agents)} agents", why, max(known), now, "agents")


def _unheard_since(agent: AgentFact, now: float) -> float | None:
    if agent.silent_since is not None:
        return agent.silent_since
    heard = agent.received_at
    return heard if heard is not None and now - heard > SILENT else None


def _finding(cause: str, source: str, why: str, since: float | None, now: float, service: str | None = None) -> Finding:
    values: dict[str, str | int | float] = {"source": source, "why": why[:300]}
    values |= {"seconds": max(0.0, now - since)} if since is not None else {}
    return Finding(
        rule=BLIND,
        severity=Severity.WARNING if cause == "source" else Severity.CRITICAL,
        cause=cause,
        labels={"service": f"monitor/{service or source}"},
        headline=Text(key=f"{BLIND}.{cause}", values=values),
        advice=(Text(key=f"{BLIND}.{cause}.advice", values={"source": source}),),
        since=since,
        raw=why[:1000],
    )
