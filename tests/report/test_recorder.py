"""The usage recorder: saves every minute and at the end, and survives failures."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from monitor.base.sqlite import DatabaseError
from monitor.facts import ImageCacheFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState
from monitor.facts.node import NodeSnapshot
from monitor.report.buckets import Bucket
from monitor.report.recorder import UsageRecorder
from monitor.report.store import FILE, UsageStore
from tests.report.builders import HOUR0, gpu, holder, view
from tests.support import wait_until
from tests.support.clock import FakeClock

CYCLE = 10.0
BUSY = view(gpu(GpuState.BUSY, holder(), load=0.5))
IMAGES = NodeSnapshot(node="n1", at=1.0, agent_version="0", images=(ImageCacheFact(runtime="docker", total_bytes=77),))
AGENT = AgentFact(target="n1:9835", node="n1", snapshot=IMAGES, received_at=1.0)


class Rig:
    def __init__(self, folder: Path, store: UsageStore | None = None) -> None:
        self.clock = FakeClock(HOUR0)
        self.view = BUSY
        self.store = store or UsageStore(str(folder / FILE))
        self.agents: tuple[AgentFact, ...] = ()
        self.recorder = UsageRecorder(
            self.store, lambda: self.view, lambda: self.agents, CYCLE, now=self.clock.time,
            monotonic=self.clock.monotonic,
        )  # fmt: skip

    def pass_time(self, seconds: float, current: ClusterView | None = None) -> None:
        """Advance the clock, with a new view each cycle."""
        for _ in range(round(seconds / CYCLE)):
            self.clock.advance(CYCLE)
            self.view = current or view(*BUSY.gpus)
            self.recorder.record()

    def allocated(self) -> float:
        return sum(bucket.allocated for bucket in self.store.buckets(HOUR0, HOUR0 + 7200, "user"))


def test_what_is_seen_is_written_when_it_is_saved(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.recorder.record()
    rig.pass_time(50)
    assert rig.allocated() == 0
    rig.clock.advance(5)
    rig.recorder.save()
    assert rig.allocated() == pytest.approx(55)
    rig.recorder.save()
    assert rig.allocated() == pytest.approx(55)
    rig.store.close()


def test_disks_are_written_as_soon_as_an_agent_answers_and_then_at_intervals(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.recorder.save()
    assert rig.store.disks(HOUR0 + 1, "node") == ()
    rig.agents = (AGENT,)
    rig.recorder.save()
    assert [use.bytes for use in rig.store.disks(HOUR0 + 1, "node")] == [77]
    rig.agents = ()
    rig.clock.advance(700)
    rig.recorder.save()
    assert [use.bytes for use in rig.store.disks(HOUR0 + 701, "node")] == [77]
    rig.store.close()


def test_disks_are_written_again_until_every_agent_has_answered(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    other = AgentFact(target="n2:9835", node="n2", snapshot=None, received_at=None)
    rig.agents = (AGENT, other)
    rig.recorder.save()
    assert {use.node for use in rig.store.disks(HOUR0 + 1, "node")} == {"n1"}
    rig.agents = (AGENT, replace(other, snapshot=replace(IMAGES, node="n2"), received_at=1.0))
    rig.clock.advance(1)
    rig.recorder.save()
    assert {use.node for use in rig.store.disks(HOUR0 + 2, "node")} == {"n1", "n2"}
    rig.store.close()


class Failing(UsageStore):
    """Fails to write while `fails` is set."""

    fails = True

    def add(self, buckets: tuple[Bucket, ...], watched: Mapping[int, float]) -> None:  # type: ignore[override]  # the recorder passes tuples
        if self.fails:
            raise DatabaseError("disk I/O error")
        super().add(buckets, watched)


def test_what_cannot_be_written_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Failing(str(tmp_path / FILE))
    rig = Rig(tmp_path, store)
    rig.recorder.record()
    rig.pass_time(60)
    with caplog.at_level(logging.ERROR):
        rig.recorder.save()
    assert "disk I/O error" in caplog.text
    rig.pass_time(10)
    store.fails = False
    rig.recorder.save()
    assert rig.allocated() == pytest.approx(70)
    store.close()


def test_it_looks_by_itself_and_writes_at_the_end(tmp_path: Path) -> None:
    reads = 0

    def read_view() -> ClusterView:
        nonlocal reads
        reads += 1
        if reads == 2:
            raise RuntimeError("broken view")
        return view(*BUSY.gpus)

    started_at = time.time()
    recorder = UsageRecorder(UsageStore(str(tmp_path / FILE)), read_view, lambda: (), 0.05)
    recorder.start()
    wait_until(lambda: reads > 12, 60, "several cycles ran")
    recorder.stop()
    took = time.time() - started_at
    store = UsageStore(str(tmp_path / FILE))
    total = sum(bucket.allocated for bucket in store.buckets(0, started_at + 7200, "user"))
    store.close()
    assert 0.15 < total <= took
    assert recorder._cycles.stopping
