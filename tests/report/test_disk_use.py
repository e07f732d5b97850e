from __future__ import annotations

from typing import Any

from monitor.facts import ImageCacheFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Identity, PodView, UsageView
from monitor.facts.datasets import ScanFact, UnitFact
from monitor.facts.node import NodeSnapshot
from monitor.report.buckets import DAY
from monitor.report.disk_use import DiskUse, DiskUseKind, day_of, disk_uses

NOW = 1_763_260_000.0
TODAY = day_of(NOW)


def pod(user: str | None, size: int | None, node: str = "n1") -> PodView:
    return PodView(
        uid="u", name="p", namespace="team", phase="Running", identity=Identity(user=user), node=node,
        usage=UsageView(disk_bytes=size),
    )  # fmt: skip


def agent(node: str, *caches: int | None, silent_since: float | None = None) -> AgentFact:
    images = tuple(ImageCacheFact(runtime="docker", total_bytes=size) for size in caches)
    snapshot = NodeSnapshot(node=node, at=NOW, agent_version="0", images=images)
    return AgentFact(target=f"{node}:9835", node=node, snapshot=snapshot, received_at=NOW, silent_since=silent_since)


def unit(owner: str | None, size: int) -> UnitFact:
    given: dict[str, Any] = {"root": "/share", "path": "a", "kind": "dir", "device": 1, "inode": 1, "owner_uid": 1001}
    times: dict[str, Any] = {"newest_mtime": 0.0, "newest_ctime": 0.0}
    return UnitFact(owner=owner, allocated_bytes=size, apparent_bytes=size, files=1, **given, **times)


def test_who_takes_how_much() -> None:
    pods = [pod("zhang", 5), pod("zhang", 6), pod("li", 7), pod("li", None), pod(None, 1), pod("li", 2, "n2")]
    agents = [agent("n1", 100, 50), agent("n2", None), agent("n3", 9, silent_since=NOW)]
    scan = ScanFact(
        root="/share", started_at=NOW - 2 * DAY, finished_at=NOW - DAY,
        units=(unit("zhang", 1000), unit("zhang", 1), unit(None, 30)),
    )  # fmt: skip
    found = {
        (use.day, use.kind, use.node, use.user): use.bytes for use in disk_uses(pods, agents, [("nas", scan)], NOW)
    }
    assert found == {
        (TODAY, DiskUseKind.WRITABLE, "n1", "zhang"): 11,
        (TODAY, DiskUseKind.WRITABLE, "n1", "li"): 7,
        (TODAY, DiskUseKind.WRITABLE, "n1", None): 1,
        (TODAY, DiskUseKind.WRITABLE, "n2", "li"): 2,
        (TODAY, DiskUseKind.IMAGES, "n1", None): 150,
        (TODAY - DAY, DiskUseKind.DATASETS, "nas", "zhang"): 1001,
        (TODAY - DAY, DiskUseKind.DATASETS, "nas", "uid 1001"): 30,
    }


def test_nothing_known_is_nothing_said() -> None:
    assert disk_uses([pod("li", None)], [AgentFact(target="n4:9835")], [], NOW) == ()
    assert day_of(TODAY + DAY - 1) == TODAY
    assert DiskUse(day=TODAY, kind=DiskUseKind.IMAGES, bytes=0).user is None
