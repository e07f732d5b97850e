"""What the agent sends to a client that keeps the snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from monitor.agent.routes import AgentRoutes
from monitor.agent.runner import CollectorWorker
from monitor.agent.settings import CollectorSchedule
from monitor.agent.versions import SnapshotVersions
from monitor.facts import PARTS, HostFact, NodeSnapshot, SnapshotUpdate
from tests.support.snapshots import AT, full_snapshot


class Node:
    """A node whose snapshot a test changes."""

    def __init__(self) -> None:
        self.now = full_snapshot()
        self.versions = SnapshotVersions(lambda: self.now)

    def change(self, **fields: Any) -> None:
        self.now = msgspec.structs.replace(self.now, **fields)

    def update(self, since: SnapshotUpdate | str) -> SnapshotUpdate:
        return self.versions.update(since if isinstance(since, str) else since.version or "")


def _parts(update: SnapshotUpdate) -> set[str]:
    """Parts that an update carries."""
    return {part for part in PARTS if getattr(update, part) not in (None, ())}


def test_the_first_update_is_complete() -> None:
    node = Node()
    update = node.update("")
    assert (update.since, update.changed) == (None, ())
    assert all(getattr(update, name) == getattr(node.now, name) for name in NodeSnapshot.__struct_fields__)


def test_an_unchanged_node_sends_its_time_and_nothing_else() -> None:
    node = Node()
    first = node.update("")
    node.change(at=AT + 10)
    update = node.update(first)
    assert (update.at, update.since, update.version) == (AT + 10, first.version, first.version)
    assert (update.changed, _parts(update)) == ((), set())
    assert len(msgspec.json.encode(update)) < 200


def test_equal_content_is_no_change() -> None:
    node = Node()
    first = node.update("")
    node.now = msgspec.json.decode(msgspec.json.encode(node.now), type=NodeSnapshot)
    assert node.update(first).changed == ()


def test_only_what_changed_is_sent() -> None:
    node = Node()
    first = node.update("")
    node.change(disk=(), images=None)
    update = node.update(first)
    assert update.changed == ("disk", "images")
    assert (update.disk, update.images, _parts(update)) == ((), None, set())
    assert node.update(update).changed == ()
    assert node.update(first).changed == ("disk", "images"), "another client may still have the first version"


def test_of_the_collectors_only_those_that_ran_are_sent() -> None:
    node = Node()
    first = node.update("")
    ran, *others = node.now.collectors
    node.change(collectors=(msgspec.structs.replace(ran, runs=ran.runs + 1), *others))
    update = node.update(first)
    assert (update.changed, [fact.name for fact in update.collectors]) == ((), [ran.name])
    node.change(collectors=tuple(others))
    update = node.update(update)
    assert (update.changed, update.collectors) == (("collectors",), tuple(others))


@pytest.mark.parametrize(
    "since",
    ["", ".", "{start}", "{start}.", "{start}.2", "{start}.-1", "{start}.+1", "{start}.1.0", "{start}.1&x=1",
     "{start}. 1", "{start}.\u0661", "{start}." + "9" * 5000, "0000000000000000.1", "x" * 30_000, "{start}%2e1"],
)  # fmt: skip
def test_what_is_no_version_of_this_start_gets_everything(since: str) -> None:
    node = Node()
    start = (node.update("").version or "").partition(".")[0]
    update = node.update(since.replace("{start}", start))
    assert (update.since, update.disk) == (None, node.now.disk)


def test_versions_of_another_start_are_not_known() -> None:
    before, after = Node(), Node()
    update = before.update("")
    after.update("")
    assert after.update(update).since is None


def test_who_asks_without_a_version_gets_the_snapshot_as_ever() -> None:
    routes = AgentRoutes(full_snapshot, None)
    for query in ("", "x=1", "Since=", "x=1&since="):
        assert routes.answer("/v1/snapshot", "", query).body == msgspec.json.encode(full_snapshot())
    assert b'"version"' in routes.answer("/v1/snapshot", "", "since=").body


@dataclass
class _Reads:
    value: Any
    name: str = "host"

    def collect(self) -> Any:
        return self.value


def test_a_run_that_reads_the_same_keeps_the_result() -> None:
    host = HostFact(cpus=8, memory_total_bytes=1, memory_available_bytes=1, cpu_seconds_total={"user": 1.0})
    reads = _Reads(host)
    worker = CollectorWorker(reads, CollectorSchedule(enabled=True, interval=60, limit=60))
    worker.run_once()
    reads.value = msgspec.structs.replace(host)
    worker.run_once()
    assert worker.fresh() is host
    reads.value = msgspec.structs.replace(host, cpus=9)
    worker.run_once()
    assert worker.fresh() is reads.value
