"""Polling of many agents over real connections: no agent delays another, and none is trusted blindly."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter

import msgspec
import pytest

from monitor.agent.server import AgentServer
from monitor.cluster.agents.poller import MAX_SKIPPED_INTERVALS, AgentPoller, _PolledTarget
from monitor.facts.agents import AgentFact
from tests.cluster.agents.polling import SOON, only, poll, polling, settings, until
from tests.support import wait_until
from tests.support.fake_agents import (
    Behaviour,
    FakeAgent,
    answers,
    reports,
    says,
    says_nothing,
)
from tests.support.snapshots import full_snapshot

SECRET = "s3cret-t0ken"
MINIMAL = b'{"node": "n", "at": 1, "agent_version": "0"}'
BODY = msgspec.json.encode(full_snapshot())


# Facts of an agent


def test_an_agent_that_answers() -> None:
    with FakeAgent(answers(BODY)) as agent, polling(poll(agent, interval=10)) as poller:
        fact = until(poller, lambda fact: fact.snapshot, "it has answered")
        assert fact.snapshot == full_snapshot()
        assert (fact.target, fact.node) == (agent.target, "gpu-01")
        assert (fact.silent_since, fact.error, fact.failures) == (None, None, 0)
        assert fact.received_at == pytest.approx(time.time(), abs=SOON)
        assert (fact.latency_seconds or 0) > 0


@pytest.mark.parametrize("seconds", [7200.0, -7200.0])
def test_an_agent_is_not_silent_for_as_long_as_the_clock_was_set(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    with FakeAgent(answers(BODY)) as agent, polling(poll(agent, interval=60)) as poller:
        until(poller, lambda fact: fact.snapshot, "it has answered")
        monkeypatch.setattr(time, "time", lambda: real() + seconds)
        assert only(poller).received_at == pytest.approx(time.time(), abs=SOON)
        assert only(poller).silent_since is None
    with polling(poll(agent)) as poller:  # the agent has been stopped
        since = until(poller, lambda fact: fact.failures, "it has failed").silent_since
        monkeypatch.setattr(time, "time", real)
        failures = only(poller).failures
        fact = until(poller, lambda fact: fact.failures > failures, "it has failed again")
        assert fact.silent_since == pytest.approx((since or 0.0) - seconds, abs=SOON)


def test_the_agent_that_we_build_is_understood() -> None:
    server = AgentServer("127.0.0.1", 0, SECRET, full_snapshot)
    server.start()
    try:
        target = "{}:{}".format(*server.address)
        with polling(AgentPoller(settings(token=SECRET), lambda: {target: None})) as poller:
            assert until(poller, lambda fact: fact.snapshot, "it has answered").snapshot == full_snapshot()
        with polling(AgentPoller(settings(token="another"), lambda: {target: None})) as poller:
            assert until(poller, lambda f: f.failures, "it has refused").error == "answered 401 Unauthorized"
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("name", "behave", "words"),
    [
        ("garbage", answers(b"\x00\xff\xfe"), "JSON is malformed: invalid character (byte 0)"),
        ("nothing", answers(b""), "Input data was truncated"),
        ("half of it", answers(BODY[:500]), "Input data was truncated"),
        ("not even headers", says(b"HTTP/1.1 200 OK\r\nContent-Le"), "Input data was truncated"),
        ("more than it", answers(MINIMAL + b"}"), f"JSON is malformed: trailing characters (byte {len(MINIMAL) + 1})"),
        ("a list", answers(b"[]"), "Expected `object`, got `array`"),
        ("no node", answers(b'{"at": 1, "agent_version": "0"}'), "Object missing required field `node`"),
        ("text for a number", answers(b'{"node": "n", "at": "soon"}'), "Expected `float`, got `str` - at `$.at`"),
        ("broken text", answers(b'{"node": "\xff"}'), "the text is not UTF-8"),
        ("a deep hole", answers(b'{"new": ' + b"[" * 200_000),
         "maximum recursion depth exceeded while deserializing an object"),
    ],
)  # fmt: skip
def test_an_answer_that_is_not_understood(name: str, behave: Behaviour, words: str) -> None:
    with FakeAgent(behave) as agent, polling(poll(agent)) as poller:
        fact = until(poller, lambda fact: fact.failures, "it has failed")
        assert fact.error == f"sent no snapshot: {words}"
        assert (fact.snapshot, fact.received_at) == (None, None)
        assert fact.silent_since == pytest.approx(time.time(), abs=SOON)


def test_an_answer_of_a_later_version_is_understood() -> None:
    later = {"node": "gpu-01", "at": 1, "agent_version": "9", "schema": 7, "quantum": [{"entangled": True}]}
    later |= {"shm": [{"size_bytes": 1, "used_bytes": 2, "device": 3, "colour": "blue"}]}
    with FakeAgent(answers(json.dumps(later).encode())) as agent, polling(poll(agent)) as poller:
        snapshot = until(poller, lambda fact: fact.snapshot, "it is understood").snapshot
        assert snapshot is not None
        assert (snapshot.schema, [shm.used_bytes for shm in snapshot.shm or ()]) == (7, [2])


def test_silent_since_the_first_attempt_that_failed_after_the_last_answer() -> None:
    with FakeAgent(reports("gpu-01")) as agent, polling(poll(agent, interval=0.1, limit=1.0)) as poller:
        last = until(poller, lambda fact: fact.snapshot, "it has answered")
        agent.behave = says_nothing
        silent = until(poller, lambda fact: fact.failures, "it is silent").silent_since or 0
        assert silent >= (last.received_at or 0)
        fact = until(poller, lambda fact: fact.failures >= 3, "it stays silent")
        first_failed = time.time() - time.monotonic() + agent.asked[-3]
        assert fact.silent_since == silent == pytest.approx(first_failed, abs=SOON)
        assert (fact.node, fact.error) == ("gpu-01", "no complete answer within 1 s")
        assert fact.snapshot is not None, "the last snapshot is kept, with its time"
        assert (fact.received_at or 0) <= silent
        agent.behave = reports("gpu-01")
        back = until(poller, lambda fact: not fact.failures, "it is back")
        assert (back.silent_since, back.error) == (None, None)
        assert (back.received_at or 0) > silent


def test_a_node_is_called_what_kubernetes_calls_it_else_what_it_calls_itself() -> None:
    with FakeAgent(reports("its-own-name")) as agent:
        with polling(AgentPoller(settings(), lambda: {agent.target: "gpu-01"})) as poller:
            assert until(poller, lambda fact: fact.snapshot, "it has answered").node == "gpu-01"
        with polling(AgentPoller(settings(), lambda: {agent.target: None})) as poller:
            assert until(poller, lambda fact: fact.snapshot, "it has answered").node == "its-own-name"
            agent.behave = reports("renamed")
            until(poller, lambda fact: fact.node == "renamed", "it goes by its new name")


@pytest.mark.parametrize(
    "behave",
    [
        answers(SECRET.encode(), 401, f"who is {SECRET}"),
        answers(json.dumps({"node": "n", "at": SECRET, "agent_version": SECRET}).encode()),
        answers(SECRET.encode()),
        says(f"{SECRET} {SECRET}\r\n\r\n".encode()),
        says(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{SECRET}\r\n".encode()),
        says_nothing,
    ],
)
def test_the_token_is_in_no_error_no_log_and_no_fact(behave: Behaviour, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    options = settings(limit=0.3, token=SECRET)
    with FakeAgent(behave) as agent, polling(AgentPoller(options, lambda: {agent.target: None})) as poller:
        fact = until(poller, lambda fact: fact.failures, "it has failed")
    assert SECRET not in f"{fact!r} {options!r} {poller!r} {caplog.text}"


# The schedule


def test_a_slow_agent_delays_no_other() -> None:
    release, polls = threading.Event(), Counter[str]()
    good: dict[str, str | None] = {f"good-{number}:1": f"n{number}" for number in range(17)}
    targets = dict(good)

    def fetch(target: str, _since: str) -> bytes:
        polls[target] += 1
        if target not in good:
            release.wait(4 * SOON)
        return MINIMAL

    with polling(AgentPoller(settings(interval=0.1, crew=2), lambda: targets, fetch)) as poller:
        try:
            wait_until(lambda: all(fact.snapshot for fact in poller.facts()) and polls, SOON, "all have answered")
            targets |= {f"slow-{number}:1": f"s{number}" for number in range(3)}
            wait_until(lambda: polls.keys() - good.keys(), SOON, "a slow agent is being polled")
            before = dict(polls)
            wait_until(lambda: all(polls[target] > before[target] + 5 for target in good), SOON, "others are polled")
        finally:
            release.set()


@pytest.mark.parametrize(("failures", "intervals"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3), (9, 8), (10, 8), (100, 8)])
def test_a_silent_agent_is_polled_less_often_but_never_forgotten(failures: int, intervals: int) -> None:
    poller = AgentPoller(settings(interval=10.0), dict)
    polled = _PolledTarget("a:1", None, 0.25, AgentFact(target="a:1", failures=failures), 0.0)
    assert poller._next_poll(polled, 1002.5) == 1002.5 + intervals * 10.0
    assert intervals <= MAX_SKIPPED_INTERVALS


def test_an_agent_that_is_about_to_report_something_is_polled_soon_and_once() -> None:
    with FakeAgent(answers(BODY)) as agent, polling(poll(agent, interval=3600)) as poller:
        first = until(poller, lambda fact: fact.snapshot, "it has answered").received_at
        poller.hasten({"another"})
        assert only(poller).received_at == first
        for _ in range(3):
            poller.hasten({"gpu-01"})
        until(poller, lambda fact: fact.received_at != first, "it has been polled again")
        waiting = [due for due, _, polled in poller._due if due == polled.due]
        assert len(waiting) <= 1


def test_a_silent_agent_is_not_polled_sooner() -> None:
    poller = AgentPoller(settings(interval=3600), lambda: {"a:1": "n"})
    poller.update_targets()
    (polled,) = poller._polled.values()
    polled.fact = AgentFact(target="a:1", node="n", failures=1)
    poller.hasten({"n"})
    assert len(poller._due) == 1


def test_polls_are_spread_over_the_interval() -> None:
    """Agents that start together must not be polled together."""
    interval = 600.0
    targets = dict.fromkeys(f"n{number}:1" for number in range(60))
    polled: set[str] = set()

    def fetch(target: str, _since: str) -> bytes:
        polled.add(target)
        return MINIMAL

    with polling(AgentPoller(settings(interval), lambda: targets, fetch)) as poller:
        wait_until(lambda: len(polled) == 60, SOON, "all were polled")
        wait_until(lambda: len(poller._due) == 60, SOON, "all are scheduled again")
        scheduled = list(poller._due)
    tenths = {int(due % interval / interval * 10) for due, _, _ in scheduled}
    assert len(tenths) >= 8, f"60 polls are in these tenths of an interval: {tenths}"
