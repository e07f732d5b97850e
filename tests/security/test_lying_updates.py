"""A malicious agent gains nothing by sending changes instead of complete snapshots."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from monitor.cluster.agents.poller import AgentPoller
from monitor.facts.agents import AgentFact
from tests.cluster.agents.polling import only, polling, settings
from tests.support import wait_until
from tests.support.fake_agents import FakeAgent, answers
from tests.support.snapshots import full_snapshot

COMPLETE: dict[str, Any] = msgspec.to_builtins(full_snapshot())
HEAD = {"node": "n1", "at": 1.0, "agent_version": "0"}
Answer = Callable[[str], dict[str, Any]]  # the requested version -> the response


def hear(answer: Answer, polls: int) -> tuple[AgentFact, FakeAgent]:
    """Fact of an agent that responds like this, after some polls."""

    def behave(handler: Any) -> None:
        answers(json.dumps(answer(handler.path.partition("?since=")[2])).encode())(handler)

    with FakeAgent(behave) as liar, polling(AgentPoller(settings(0.05, 5.0), lambda: {liar.target: "n1"})) as poller:
        wait_until(lambda: len(liar.asked) >= polls, 10, "it was polled")
        return only(poller), liar


def test_changes_do_not_add_up_to_more_than_a_snapshot_holds() -> None:
    """Each response adds collectors to those before: a snapshot holds 256."""
    sent = 0

    def grow(since: str) -> dict[str, Any]:
        nonlocal sent
        if since == "0":
            return COMPLETE | {"version": "v"}
        sent += 1
        added = [{"name": f"{sent}-{n}", "outcome": "ok", "interval_seconds": 5} for n in range(100)]
        return HEAD | {"version": "v", "since": "v", "collectors": added}

    fact, _ = hear(grow, 12)
    assert sent > 3
    assert fact.snapshot is not None
    assert len(fact.snapshot.collectors) == len(COMPLETE["collectors"])


@pytest.mark.parametrize(
    "lie",
    [
        {"disk": [{"mount": "/", "device": "a", "fstype": "b"}] * 50_001},
        {"host": {"cpus": 10**30, "memory_total_bytes": 1, "memory_available_bytes": 1, "cpu_seconds_total": {}}},
        {"boot_id": "x" * 300},
        {"changed": ["disk"] * 300},
        {"version": "v" * 300},
    ],
    ids=["items", "number", "identifier", "names", "version"],
)
def test_changes_have_the_limits_of_a_snapshot(lie: dict[str, Any]) -> None:
    update = HEAD | {"version": "v", "since": "v", "changed": list(lie)} | lie
    fact, _ = hear(lambda since: COMPLETE | {"version": "v"} if since == "0" else update, 3)
    assert (fact.error or "").startswith("sent no snapshot: ")
    assert fact.snapshot is None or fact.snapshot.disk == full_snapshot().disk


def test_a_version_is_never_more_than_a_version() -> None:
    """The daemon repeats the version to the agent: it stays in its place, whatever it contains."""
    version = "v&x=1 HTTP/1.1\r\nAuthorization: Bearer stolen\r\n\r\nDELETE /\u4e2d#?%00"
    fact, liar = hear(lambda _since: COMPLETE | {"version": version}, 3)
    assert (fact.failures, fact.error) == (0, None)
    quoted = (
        "v%26x%3D1%20HTTP%2F1.1%0D%0AAuthorization%3A%20Bearer%20stolen%0D%0A%0D%0ADELETE%20%2F%E4%B8%AD%23%3F%2500"
    )
    assert set(liar.paths[1:]) == {f"/v1/snapshot?since={quoted}"}
    assert all("authorization" not in headers for headers in liar.headers)


def test_changes_without_end_are_no_snapshot() -> None:
    """It never sends a complete snapshot: its node counts as silent, and is polled less and less often."""
    fact, liar = hear(lambda since: HEAD | {"version": "v", "since": since, "changed": ["host"]}, 6)
    assert fact.error == "sent changes instead of a snapshot"
    assert fact.snapshot is None
    assert set(liar.paths) == {"/v1/snapshot?since=0"}
