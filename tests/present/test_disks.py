"""Disk rows and the forecast of when a disk is full."""

from __future__ import annotations

import random
from typing import Any

from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding, Severity
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact
from monitor.facts.text import Text
from monitor.history.forecast import DiskForecast
from monitor.present import disks

NOW = 1_794_873_600.0
GIB = 1 << 30


def agent(node: str, *facts: DiskFact, silent: bool = False) -> AgentFact:
    snapshot = NodeSnapshot(node=node, at=NOW, agent_version="1", disk=facts)
    return AgentFact(target=node, node=node, snapshot=snapshot, silent_since=NOW if silent else None)


def disk(mount: str, used: int | None, **more: object) -> DiskFact:
    left = None if used is None else (100 - used) * GIB
    size = None if used is None else used * GIB
    given: dict[str, Any] = {"mount": mount, "device": f"dev{mount}", "fstype": "ext4"}
    return DiskFact(**(given | {"used_bytes": size, "available_bytes": left} | more))


def test_the_fullest_disks_come_first_and_a_share_once() -> None:
    share = {"device": "nas:/s", "roles": ("nas",)}
    agents = [
        agent("a", disk("/", 40), disk("/data", 95), disk("/nas", 60, **share)),
        agent("b", disk("/", None), disk("/nas", 60, **share)),
        agent("gone", disk("/", 99), silent=True),
    ]
    found = disks.DiskRanking().fullest(agents, 3)
    assert [(row.node, row.fact.mount, row.nodes, row.level) for row in found] == [
        ("b", "/", 1, "unknown"),
        ("a", "/data", 1, "critical"),
        ("b", "/nas", 2, "fine"),
    ]


def test_after_any_answers_the_ranking_is_that_of_all_agents() -> None:
    chance, kept = random.Random(4), disks.DiskRanking()
    agents = [agent(f"n{number}") for number in range(8)]
    for _ in range(200):
        number = chance.randrange(len(agents))
        shared = {"device": "nas:/s", "roles": ("nas",)} if chance.random() < 0.3 else {}
        facts = [disk(f"/{each}", chance.choice((None, 10, 20, 30)), **shared) for each in range(chance.randrange(3))]
        agents[number] = agent(f"n{number}", *facts, silent=chance.random() < 0.2)
        known = agents[: chance.randrange(4, 9)]
        assert kept.fullest(known, 5) == disks.DiskRanking().fullest(known, 5)


def test_a_trend_that_was_found_is_believed_before_our_own() -> None:
    note = Text(key="disk-filling.images", values={"left": 7200.0})
    found = Finding(
        rule="disk-filling",
        severity=Severity.WARNING,
        cause="images",
        labels={"node": "a", "mount": "/data"},
        headline=note,
    )
    rows = disks.DiskRanking().fullest([agent("a", disk("/", 40), disk("/data", 80))], 5)
    forecast = DiskForecast(
        at=NOW, used=0.4, rate=1e-4, min_rate=1e-4, max_rate=1e-4, full_at=NOW + 6000.0, earliest_at=NOW + 6000.0
    )
    by_history = {"a:/": forecast, "a:/data": forecast}.get
    timed = disks.with_forecasts(rows, disks.forecasts([found]), by_history, NOW)
    assert [(row.fact.mount, row.full_in) for row in timed] == [("/data", 7200.0), ("/", 6000.0)]
    assert [row.full_in for row in disks.with_forecasts(rows, {}, lambda _: None, NOW)] == [None, None]
