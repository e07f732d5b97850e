"""Asking many agents over real connections: none holds up another, and none is believed blindly."""

from __future__ import annotations

import contextlib
import json
import logging
import time

import msgspec
import pytest

from monitor.agent.server import AgentServer
from monitor.cluster.agents.poller import MAX_SKIPPED_INTERVALS, AgentPoller
from tests.cluster.agents.polling import only, poll, polling, settings, until
from tests.support import wait_until
from tests.support.fake_agents import (
    Behaviour,
    FakeAgent,
    answers,
    reports,
    says,
    says_nothing,
    trickles,
    trickles_headers,
)
from tests.support.snapshots import full_snapshot

SECRET = "s3cret-t0ken"
LEAST = b'{"node": "n", "at": 1, "agent_version": "0"}'
BODY = msgspec.json.encode(full_snapshot())


# What is known of an agent


def test_an_agent_that_answers() -> None:
    with FakeAgent(answers(BODY)) as agent, polling(poll(agent, interval=10)) as poller:
        fact = until(poller, lambda fact: fact.snapshot, "it has answered")
        assert fact.snapshot == full_snapshot()
        assert (fact.target, fact.node) == (agent.target, "gpu-01")
        assert (fact.silent_since, fact.error, fact.failures) == (None, None, 0)
        assert fact.received_at == pytest.approx(time.time(), abs=2)
        assert 0 < (fact.latency_seconds or 0) < 0.5


@pytest.mark.parametrize("seconds", [7200.0, -7200.0])
def test_an_agent_is_not_silent_for_as_long_as_the_clock_was_set(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    with FakeAgent(answers(BODY)) as agent, polling(poll(agent, interval=60)) as poller:
        until(poller, lambda fact: fact.snapshot, "it has answered")
        monkeypatch.setattr(time, "time", lambda: real() + seconds)
        assert only(poller).received_at == pytest.approx(time.time(), abs=5)
        assert only(poller).silent_since is None
    with polling(poll(agent)) as poller:  # nobody is there any more
        since = until(poller, lambda fact: fact.failures, "it has failed").silent_since
        monkeypatch.setattr(time, "time", real)
        failures = only(poller).failures
        fact = until(poller, lambda fact: fact.failures > failures, "it has failed again")
        assert fact.silent_since == pytest.approx((since or 0.0) - seconds, abs=0.5)


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
        ("more than it", answers(LEAST + b"}"), f"JSON is malformed: trailing characters (byte {len(LEAST) + 1})"),
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
        assert fact.silent_since == pytest.approx(time.time(), abs=2)


def test_an_answer_of_a_later_version_is_understood() -> None:
    later = {"node": "gpu-01", "at": 1, "agent_version": "9", "schema": 7, "quantum": [{"entangled": True}]}
    later |= {"shm": [{"size_bytes": 1, "used_bytes": 2, "device": 3, "colour": "blue"}]}
    with FakeAgent(answers(json.dumps(later).encode())) as agent, polling(poll(agent)) as poller:
        snapshot = until(poller, lambda fact: fact.snapshot, "it is understood").snapshot
        assert snapshot is not None
        assert (snapshot.schema, [shm.used_bytes for shm in snapshot.shm or ()]) == (7, [2])


def test_silent_since_the_first_attempt_that_failed_after_the_last_answer() -> None:
    with FakeAgent(reports("gpu-01")) as agent, polling(poll(agent, interval=0.05, limit=0.1)) as poller:
        last = until(poller, lambda fact: fact.snapshot, "it has answered")
        agent.behave = says_nothing
        silent = until(poller, lambda fact: fact.failures, "it is silent").silent_since or 0
        assert silent >= (last.received_at or 0)
        fact = until(poller, lambda fact: fact.failures >= 3, "it stays silent")
        first_failed = time.time() - time.monotonic() + agent.asked[-3]
        assert fact.silent_since == silent == pytest.approx(first_failed, abs=0.1)
        assert (fact.node, fact.error) == ("gpu-01", "no whole answer within 0.1 s")
        assert fact.snapshot is not None, "what it last said is kept, with its time"
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
    how = settings(limit=0.3, token=SECRET)
    with FakeAgent(behave) as agent, polling(AgentPoller(how, lambda: {agent.target: None})) as poller:
        fact = until(poller, lambda fact: fact.failures, "it has failed")
    assert SECRET not in f"{fact!r} {how!r} {poller!r} {caplog.text}"


# The schedule


def test_a_slow_agent_costs_nobody_else() -> None:
    interval, slow = 0.2, (says_nothing, trickles, trickles_headers)
    with contextlib.ExitStack() as stack:
        bad = {stack.enter_context(FakeAgent(behave)).target for behave in slow}
        good = {stack.enter_context(FakeAgent(reports(f"n{number}"))).target for number in range(17)}
        how = settings(interval=interval, limit=0.6, crew=2)
        poller = stack.enter_context(polling(AgentPoller(how, lambda: dict.fromkeys(good | bad))))

        def heard() -> dict[str, float]:
            return {fact.target: fact.received_at for fact in poller.facts() if fact.received_at is not None}

        wait_until(lambda: heard().keys() == good, 5, "the 17 were heard")
        oldest = 0.0
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            oldest = max(oldest, *(time.time() - at for at in heard().values()))
            time.sleep(0.02)
        assert oldest < interval + 0.3, "three slow ones at 0.6 s each would have held both threads"
        assert {fact.target for fact in poller.facts() if fact.failures} == bad


def test_a_silent_agent_is_asked_less_often_but_never_forgotten() -> None:
    interval = 0.04
    with FakeAgent(answers(b"", 500)) as agent, polling(poll(agent, interval=interval)):
        time.sleep(interval * 64)
        gaps = [later - earlier for earlier, later in zip(agent.asked, agent.asked[1:], strict=False)]
    assert 6 <= len(gaps) <= 20, "and not 64"
    assert max(gaps[:2]) < 3 * interval, "one lost answer is no reason to look away"
    assert gaps[-1] > (MAX_SKIPPED_INTERVALS - 2) * interval
    assert max(gaps) < (MAX_SKIPPED_INTERVALS + 1) * interval + 0.2


def test_polls_are_spread_over_the_interval() -> None:
    """A herd that starts together must not stay together."""
    asked: dict[str, list[float]] = {f"n{number}:1": [] for number in range(60)}

    def fetch(target: str) -> bytes:
        asked[target].append(time.monotonic())
        return LEAST

    interval = 3.0
    with polling(AgentPoller(settings(interval), lambda: dict.fromkeys(asked), fetch)):
        wait_until(lambda: all(asked.values()), 1.3, "all were asked within the first second")
        wait_until(lambda: all(len(times) > 1 for times in asked.values()), interval + 0.3, "and once an interval")
    tenths = {int(times[1] % interval / interval * 10) for times in asked.values()}
    assert len(tenths) >= 8, f"60 polls are in these tenths of an interval: {tenths}"
