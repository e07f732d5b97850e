"""A daemon that keeps an agent's snapshot has at any time what the agent has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.agent.routes import AgentRoutes
from monitor.agent.versions import SnapshotVersions
from monitor.cluster.agents.client import AgentError
from monitor.cluster.agents.snapshot import NO_VERSION, SnapshotFollower
from monitor.facts.node import PARTS, CollectorFact, NodeSnapshot, changed_parts
from tests.support.snapshots import AT, full_snapshot

FULL = full_snapshot()
SMALL = NodeSnapshot(node="gpu-01", at=AT, agent_version="0")
OTHER = {"host": None, "gpu_processes": (), "disk": FULL.disk and FULL.disk[:1], "boot_id": "another", "images": ()}


def _body(snapshot: NodeSnapshot = FULL, **more: Any) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(snapshot) | more)


def _delta(since: str, version: str = "v2", **more: Any) -> bytes:
    return _body(SMALL, since=since, version=version, **more)


class _Script:
    """Answers in turn, and remembers which versions it was asked for."""

    def __init__(self, *bodies: bytes) -> None:
        self.bodies = list(bodies)
        self.asked: list[str] = []

    def __call__(self, since: str) -> bytes:
        self.asked.append(since)
        return self.bodies.pop(0)


def _agent(snapshot: Callable[[], NodeSnapshot]) -> Callable[[str], bytes]:
    """An agent of this version."""
    routes = AgentRoutes(snapshot, None)
    return lambda since: routes.answer("/v1/snapshot", "", f"since={since}").body


# Any sequence of changes

collectors = st.lists(
    st.builds(
        CollectorFact,
        name=st.sampled_from(("gpu", "disk", "host")),
        outcome=st.sampled_from(("ok", "failed")),
        interval_seconds=st.just(5.0),
        runs=st.integers(0, 2),
    ),
    max_size=3,
    unique_by=lambda fact: fact.name,
).map(tuple)
changes = st.fixed_dictionaries(
    {"at": st.floats(AT, AT + 1e6), "collectors": collectors},
    optional={name: st.sampled_from((getattr(FULL, name), OTHER.get(name))) for name in PARTS if name != "collectors"},
)
steps = st.lists(
    st.one_of(
        changes,
        st.sampled_from(("agent starts", "daemon starts", "answer is lost")),
        st.integers(0, 1),  # this daemon polls
    ),
    max_size=30,
)


@given(steps)
def test_any_sequence_of_changes_ends_with_the_agents_snapshot(steps: list[Any]) -> None:
    """Two daemons poll an agent; both processes start anew and answers get lost."""
    now = FULL

    def start_agent() -> SnapshotVersions:
        return SnapshotVersions(lambda: now)

    versions = start_agent()
    daemons = [SnapshotFollower(), SnapshotFollower()]

    def fetch(since: str) -> bytes:
        return msgspec.json.encode(versions.update(since))

    def fetch_in_vain(since: str) -> bytes:
        fetch(since)
        raise AgentError("lost")

    for step in [*steps, 0, 1]:
        if isinstance(step, dict):
            now = msgspec.structs.replace(now, **step)
        elif step == "agent starts":
            versions = start_agent()
        elif step == "daemon starts":
            daemons[0] = SnapshotFollower()
        elif step == "answer is lost":
            with pytest.raises(AgentError):
                daemons[0].read(fetch_in_vain)
        else:
            assert daemons[step].read(fetch) == now


# What stays the same is the same object


@pytest.mark.parametrize("versioned", [True, False], ids=["this version", "an agent without versions"])
def test_unchanged_parts_are_the_same_objects(versioned: bool) -> None:
    now = FULL
    fetch = _agent(lambda: now) if versioned else (lambda _since: _body(now))
    daemon = SnapshotFollower()
    first = daemon.read(fetch)
    now = msgspec.structs.replace(now, at=AT + 1)
    second = daemon.read(fetch)
    assert second.at == AT + 1
    assert all(getattr(first, name) is getattr(second, name) for name in PARTS)
    assert changed_parts(first, second) == frozenset()
    now = msgspec.structs.replace(now, disk=(), images=None)
    third = daemon.read(fetch)
    assert third == now
    assert changed_parts(second, third) == changed_parts(first, third) == {"disk", "images"}
    assert changed_parts(None, first) == frozenset(PARTS)


def test_the_times_of_a_collector_are_no_change_but_its_outcome_is() -> None:
    now = FULL
    daemon = SnapshotFollower()
    first = daemon.read(_agent(lambda: now))
    ran, *others = now.collectors
    now = msgspec.structs.replace(now, collectors=(msgspec.structs.replace(ran, runs=99, succeeded_at=AT), *others))
    second = daemon.read(_agent(lambda: now))
    assert second.collectors == now.collectors
    assert changed_parts(first, second) == frozenset()
    now = msgspec.structs.replace(now, collectors=(msgspec.structs.replace(ran, outcome="failed?"), *others))
    assert changed_parts(second, daemon.read(_agent(lambda: now))) == {"collectors"}


# Answers that do not fit


@pytest.mark.parametrize(
    "delta",
    [
        _delta("v0", changed=["host"]),
        _delta(NO_VERSION, changed=["host"]),
        _delta("v1", collectors=[{"name": "unheard-of", "outcome": "ok", "interval_seconds": 5}]),
    ],
    ids=["another version", "no version", "another collector"],
)
def test_changes_that_do_not_fit_are_dropped_for_the_whole(delta: bytes) -> None:
    script = _Script(_body(version="v1"), delta, _body(version="v9"), _delta("v9", "v10"))
    daemon = SnapshotFollower()
    for _ in range(3):
        assert msgspec.structs.replace(daemon.read(script), node=FULL.node, at=FULL.at, agent_version="x") == (
            msgspec.structs.replace(FULL, agent_version="x")
        )
    assert script.asked == [NO_VERSION, "v1", NO_VERSION, "v9"]


@pytest.mark.parametrize("known", [b"", _body(version="v1")], ids=["at first", "later"])
def test_who_sends_only_changes_sends_no_snapshot(known: bytes) -> None:
    script = _Script(*([known] if known else []), *[_delta(NO_VERSION)] * 2, _body())
    daemon = SnapshotFollower()
    if known:
        daemon.read(script)
    with pytest.raises(AgentError, match="sent changes instead of a snapshot"):
        daemon.read(script)
    assert daemon.read(script) == FULL
    assert script.asked[-1] == NO_VERSION


def test_a_part_that_a_later_agent_knows_is_ignored() -> None:
    script = _Script(_body(version="v1"), _delta("v1", changed=["quantum", "at", "version", "xid"], quantum=[1]))
    daemon = SnapshotFollower()
    daemon.read(script)
    assert daemon.read(script) == msgspec.structs.replace(FULL, agent_version="0", xid=None)


def test_a_later_answer_that_is_no_snapshot_leaves_what_is_known() -> None:
    script = _Script(_body(version="v1"), b"{", _delta("v1"))
    daemon = SnapshotFollower()
    first = daemon.read(script)
    with pytest.raises(AgentError):
        daemon.read(script)
    assert changed_parts(first, daemon.read(script)) == frozenset()
    assert script.asked == [NO_VERSION, "v1", "v1"]
