"""Health of the sources of the view."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from monitor.cluster.sources import agent_sources, kube_sources
from monitor.facts import NodeSnapshot
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.kube import SourceFact
from monitor.present.cluster import source_reason

SNAPSHOT = NodeSnapshot(node="n", at=1.0, agent_version="0")


def source(name: str = "pods", ok: bool = True, why: str | None = None, since: float | None = None) -> SourceView:
    return SourceView(name=name, ok=ok, why=why, since=since)


def without_texts(sources: Iterable[SourceView]) -> tuple[SourceView, ...]:
    return tuple(replace(each, text=None) for each in sources)


@pytest.mark.parametrize(
    ("name", "fact", "expect"),
    [
        ("synced", SourceFact(resource="pods", state="synced", contact_at=5.0), source()),
        ("new", SourceFact(resource="pods", state="starting", without="all"), source(ok=False, why="starting; all")),
        ("stale",
         SourceFact(resource="pods", state="stale", stale_since=7.0, last_error="refused", without="pods"),
         source(ok=False, why="stale; refused; pods", since=7.0)),
        ("failing", SourceFact(resource="pods", state="failing", last_error="refused"),
         source(ok=False, why="failing; refused")),
        ("forbidden", SourceFact(resource="pods", state="forbidden", last_error="may not list pods"),
         source(ok=False, why="forbidden; may not list pods")),
        ("absent", SourceFact(resource="pods", state="absent"), None),
    ],
)  # fmt: skip
def test_a_kind_of_object(name: str, fact: SourceFact, expect: SourceView | None) -> None:
    assert without_texts(kube_sources((fact,))) == ((expect,) if expect else ())


def test_each_kind_is_named() -> None:
    facts = [SourceFact(resource=name, state="synced") for name in ("pods", "nodes")]
    assert kube_sources(facts) == (source("pods"), source("nodes"))


@pytest.mark.parametrize(("given", "why"), [("switched off", "switched off"), (None, "not configured")])
def test_no_kubernetes(given: str | None, why: str) -> None:
    assert without_texts(kube_sources(None, given)) == (source("kubernetes", ok=False, why=why),)


def heard(target: str, node: str | None = None) -> AgentFact:
    return AgentFact(target=target, node=node, snapshot=SNAPSHOT, received_at=1.0)


def silent(target: str, since: float, node: str | None = None) -> AgentFact:
    return AgentFact(target=target, node=node, silent_since=since, failures=1, error="no")


@pytest.mark.parametrize(
    ("name", "agents", "expect"),
    [
        ("none", (), source("agents", False, "no agent was found; start one on each node")),
        ("none asked yet", (AgentFact(target="a:1"), AgentFact(target="b:1")), source("agents", False, "starting")),
        ("one heard, one not asked yet", (heard("a:1"), AgentFact(target="b:1")), source("agents")),
        ("all heard", (heard("a:1"), heard("b:1")), source("agents")),
        ("one silent, by its name", (heard("a:1"), silent("b:1", 9.0, "gpu-02")),
         source("agents", False, "1 of 2 silent: gpu-02", 9.0)),
        ("one silent from the start, by its address", (silent("b:1", 9.0),),
         source("agents", False, "1 of 1 silent: b:1", 9.0)),
        ("three silent, since the first of them", tuple(silent(f"{n}:1", 9.0 - n) for n in range(3)),
         source("agents", False, "3 of 3 silent: 0:1, 1:1, 2:1", 7.0)),
        ("many silent", (heard("a:1"), *(silent(f"{n}:1", 9.0) for n in range(8))),
         source("agents", False, "8 of 9 silent: 0:1, 1:1, 2:1 and 5 more", 9.0)),
    ],
)  # fmt: skip
def test_agents(name: str, agents: tuple[AgentFact, ...], expect: SourceView) -> None:
    assert without_texts(agent_sources(agents)) == (expect,)


REASONS = [
    (kube_sources(None), "not configured", "没有配置"),
    (kube_sources((SourceFact(resource="pods", state="forbidden"),)), "forbidden", "没有权限"),
    (kube_sources((SourceFact(resource="pods", state="failing", last_error="eof"),)), "failing; eof", "读取失败；eof"),
    (agent_sources(()), "no agent was found; start one on each node", "没有找到 agent；请在每个节点上启动"),
    (agent_sources((silent("a:1", 9.0),)), "1 of 1 silent: a:1", "1 个 agent 中有 1 个没有响应：a:1"),
    (agent_sources([silent(f"{n}:1", 9.0) for n in range(5)]), "5 of 5 silent: 0:1, 1:1, 2:1 and 2 more",
     "5 个 agent 中有 5 个没有响应：0:1, 1:1, 2:1 等，另有 2 个"),
]  # fmt: skip


@pytest.mark.parametrize(("sources", "english", "chinese"), REASONS)
def test_a_reason_is_told_in_both_languages(sources: tuple[SourceView, ...], english: str, chinese: str) -> None:
    (failing,) = sources
    assert (failing.why, source_reason(failing, "en"), source_reason(failing, "zh")) == (english, english, chinese)
