"""Daemons and agents of different versions, over real connections: each pair agrees on the snapshot."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest

from monitor.agent.routes import AgentRoutes
from monitor.agent.server import AgentServer
from monitor.cluster.agents.client import SnapshotClient
from monitor.cluster.agents.snapshot import NO_VERSION, decode_snapshot
from monitor.facts import NodeSnapshot
from monitor.facts.node import changed_parts
from tests.cluster.agents.polling import SOON, only, poll, polling, until
from tests.support import wait_until
from tests.support.fake_agents import Behaviour, FakeAgent, answers
from tests.support.snapshots import full_snapshot

MAX_UNCHANGED_BYTES = 2048


class Node:
    """A node whose snapshot a test changes, with agents of several versions."""

    def __init__(self) -> None:
        self.now = full_snapshot()
        self.sent: list[int] = []  # bytes of each response

    def change(self, **fields: Any) -> None:
        self.now = msgspec.structs.replace(self.now, at=self.now.at + 1, **fields)

    def old_agent(self) -> Behaviour:
        """An agent that knows no versions: it ignores the query."""
        return lambda handler: self._send(handler, msgspec.json.encode(self.now))

    def new_agent(self) -> Behaviour:
        """A newly started agent of this version."""
        routes = AgentRoutes(lambda: self.now, None)
        return lambda handler: self._send(handler, routes.answer(*_request(handler.path)).body)

    def _send(self, handler: Any, body: bytes) -> None:
        self.sent.append(len(body))
        answers(body)(handler)


def _was_asked(agent: FakeAgent, times: int) -> bool:
    return len(agent.asked) >= times


def _request(path: str) -> tuple[str, str, str]:
    name, _, query = path.partition("?")
    return name, "", query


@pytest.mark.parametrize("age", ["old_agent", "new_agent"])
def test_a_daemon_of_this_version_with_any_agent(age: str) -> None:
    node = Node()
    with FakeAgent(getattr(node, age)()) as agent, polling(poll(agent)) as poller:
        first = until(poller, lambda fact: fact.snapshot == node.now, "it has answered").snapshot
        node.change()
        second = until(poller, lambda fact: fact.snapshot == node.now, "its time advances").snapshot
        assert second is not None
        assert changed_parts(first, second) == frozenset()
        node.change(disk=(), images=None)
        third = until(poller, lambda fact: fact.snapshot == node.now, "the change arrives").snapshot
        assert third is not None
        assert changed_parts(second, third) == {"disk", "images"}
        assert only(poller).failures == 0


def test_an_unchanged_node_sends_little() -> None:
    node = Node()
    with FakeAgent(node.new_agent()) as agent, polling(poll(agent)) as poller:
        until(poller, lambda fact: fact.snapshot, "it has answered")
        node.change(collectors=tuple(msgspec.structs.replace(fact, runs=9) for fact in node.now.collectors))
        until(poller, lambda fact: fact.snapshot == node.now, "the runs are seen")
        assert len(node.sent) >= 2
        assert max(node.sent[1:]) < MAX_UNCHANGED_BYTES < node.sent[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [("old_agent", "new_agent"), ("new_agent", "old_agent"), ("new_agent", "new_agent")],
    ids=["upgrade", "downgrade", "restart"],
)
def test_an_agent_is_replaced_while_the_daemon_runs(before: str, after: str) -> None:
    node = Node()
    with FakeAgent(getattr(node, before)()) as agent, polling(poll(agent)) as poller:
        until(poller, lambda fact: fact.snapshot == node.now, "the first agent has answered")
        agent.behave = getattr(node, after)()
        node.change(host=None)
        until(poller, lambda fact: fact.snapshot == node.now, "the second agent has answered")
        node.change(xid=None)
        until(poller, lambda fact: fact.snapshot == node.now, "a change of the second agent arrives")
        assert only(poller).failures == 0


def test_a_daemon_that_starts_again_has_the_whole_snapshot() -> None:
    node = Node()
    with FakeAgent(node.new_agent()) as agent:
        for polls in (2, 4):
            with polling(poll(agent)) as poller:
                until(poller, lambda fact: fact.snapshot == node.now, "it has answered")
                wait_until(partial(_was_asked, agent, polls), SOON, "it is asked again")


def test_a_daemon_of_an_earlier_version_gets_the_snapshot_as_ever() -> None:
    server = AgentServer("127.0.0.1", 0, None, full_snapshot)
    server.start()
    try:
        fetch = SnapshotClient(60, None)
        target = "{}:{}".format(*server.address)
        fetch(target, NO_VERSION)  # a daemon of this version polls it too
        body = fetch(target)
    finally:
        server.stop()
    assert body == msgspec.json.encode(full_snapshot())
    assert decode_snapshot(body) == full_snapshot()
    assert set(msgspec.json.decode(body)) <= set(NodeSnapshot.__struct_fields__)
