"""Disk rows and the forecast of when a disk is full."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding, Severity
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact
from monitor.facts.text import Text
from monitor.present import disks

NOW = 1_794_873_600.0
GIB = 1 << 30


def growth(*shares: float) -> list[tuple[float, float | None]]:
    """One value per minute, the last one now."""
    return [(NOW - 60.0 * (len(shares) - 1 - minute), share) for minute, share in enumerate(shares)]


FULL = [
    ("it grows", growth(0.5, 0.6, 0.7, 0.8), 120.0),
    ("it does not", growth(0.5, 0.5, 0.5, 0.5), None),
    ("it shrinks", growth(0.8, 0.7, 0.6), None),
    ("too little is known", growth(0.5, 0.9), None),
    ("it was emptied since", growth(0.8, 0.9, 0.5, 0.5, 0.5), None),
    ("it was emptied and grows again", growth(0.9, 0.5, 0.6, 0.7, 0.8), 120.0),
    ("it takes for ever", growth(*(0.5 + 0.0003 * minute for minute in range(50))), 60 * (0.4853 / 0.0003)),
    ("nothing is known", [], None),
]


@pytest.mark.parametrize(("what", "points", "seconds"), FULL, ids=[each[0] for each in FULL])
def test_when_a_disk_is_full(what: str, points: list[tuple[float, float | None]], seconds: float | None) -> None:
    found = disks.full_in(points, NOW)
    assert found == (None if seconds is None else pytest.approx(seconds, rel=0.01))


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
    found = disks.fullest_disks(agents, 3)
    assert [(row.node, row.fact.mount, row.nodes, row.level) for row in found] == [
        ("b", "/", 1, "unknown"),
        ("a", "/data", 1, "critical"),
        ("b", "/nas", 2, "fine"),
    ]


def test_a_trend_that_was_found_is_believed_before_our_own() -> None:
    note = Text(key="disk-filling.images", values={"left": 7200.0})
    found = Finding(
        rule="disk-filling",
        severity=Severity.WARNING,
        cause="images",
        labels={"node": "a", "mount": "/data"},
        headline=note,
    )
    rows = disks.fullest_disks([agent("a", disk("/", 40), disk("/data", 80))], 5)
    timed = disks.with_forecasts(rows, disks.forecasts([found]), {"a": growth(0.5, 0.6, 0.7, 0.8)}, NOW)
    assert [(row.fact.mount, row.full_in) for row in timed] == [("/data", 7200.0), ("/", None)]
