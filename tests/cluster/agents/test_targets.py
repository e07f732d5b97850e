"""Targets appear and disappear, and the poller stops: nothing is left behind."""

from __future__ import annotations

import time

import pytest

from monitor.cluster.agents.poller import AgentPoller, Targets
from monitor.facts.agents import AgentFact
from tests.cluster.agents.polling import SOON, only, poll, polling, settings, threads, until
from tests.support import wait_until
from tests.support.fake_agents import (
    Behaviour,
    FakeAgent,
    full_house,
    reports,
    says_nothing,
    trickles,
    trickles_headers,
)


def test_targets_come_and_go() -> None:
    with FakeAgent(reports("a")) as a, FakeAgent(reports("b")) as b:
        targets: dict[str, str | None] = {a.target: None}
        with polling(AgentPoller(settings(), lambda: targets)) as poller:
            wait_until(lambda: [fact.node for fact in poller.facts()] == ["a"], SOON, "a is heard")
            targets[b.target] = "b"
            wait_until(lambda: {fact.node for fact in poller.facts()} == {"a", "b"}, SOON, "b is taken up")
            del targets[a.target]
            wait_until(lambda: [fact.node for fact in poller.facts()] == ["b"], SOON, "a is forgotten")
            asked = len(a.asked)
            time.sleep(0.3)
            assert len(a.asked) == asked, "and is no longer polled"


def test_an_answer_that_comes_too_late_is_nobodys() -> None:
    """Even if its target exists again: that is a new agent, polled once per interval and not twice."""
    answers: list[AgentFact] = []
    with FakeAgent(reports("old", after=0.5)) as agent:
        targets: dict[str, str | None] = {agent.target: None}
        poller = AgentPoller(settings(limit=2, interval=0.2), lambda: targets, on_answer=answers.append)
        with polling(poller):
            wait_until(lambda: agent.asked, SOON, "it is being asked")
            targets.clear()
            poller.update_targets()
            assert poller.facts() == ()
            time.sleep(0.7)
            assert (answers, poller.facts()) == ([], ())
            targets[agent.target] = None
            poller.update_targets()
            wait_until(lambda: len(agent.asked) == 2, SOON, "it is asked again")
            targets.clear()
            poller.update_targets()
            agent.behave = reports("new")
            targets[agent.target] = None
            poller.update_targets()
            wait_until(lambda: answers, SOON, "the new one has answered")
            time.sleep(1)
            assert {fact.node for fact in answers} == {"new"}
            assert len(agent.asked) <= 2 + 7, "five intervals, and not twice five"


def test_an_address_that_becomes_another_nodes_starts_anew() -> None:
    with FakeAgent(reports("whatever")) as agent:
        targets: dict[str, str | None] = {agent.target: "a"}
        with polling(AgentPoller(settings(), lambda: targets)) as poller:
            until(poller, lambda fact: fact.snapshot, "a has answered")
            agent.behave = says_nothing
            targets[agent.target] = "b"
            poller.update_targets()
            assert (only(poller).node, only(poller).snapshot) == ("b", None)


def test_when_targets_cannot_be_found_the_known_ones_stay(caplog: pytest.LogCaptureFixture) -> None:
    found: list[Targets] = []
    with FakeAgent(reports("a")) as agent:
        found.append({agent.target: None})
        with polling(AgentPoller(settings(interval=0.05), lambda: found.pop())) as poller:
            until(poller, lambda fact: fact.snapshot, "it has answered")
            wait_until(
                lambda: "cannot determine the agents to poll" in caplog.text, SOON, "the source of targets has failed"
            )
            asked = len(agent.asked)
            wait_until(lambda: len(agent.asked) > asked + 2, SOON, "it is still asked")


def test_a_listener_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def listen(_: AgentFact) -> None:
        raise RuntimeError("a bug")

    with (
        FakeAgent(reports("a")) as agent,
        polling(AgentPoller(settings(), lambda: {agent.target: None}, on_answer=listen)),
    ):
        wait_until(lambda: len(agent.asked) > 5, SOON, "it is asked again and again, by every thread")
    assert "a listener failed" in caplog.text


# Stopping


@pytest.mark.parametrize("behave", [says_nothing, trickles, trickles_headers, reports("n")])
def test_it_stops_at_once_whatever_is_being_asked(behave: Behaviour) -> None:
    with FakeAgent(behave) as agent:
        poller = poll(agent, limit=600)
        poller.start()
        wait_until(lambda: agent.asked, SOON, "it is being asked")
        assert all(thread.daemon for thread in threads())
        poller.stop()
        wait_until(lambda: not threads(), SOON, "every thread has ended")


def test_it_stops_at_once_while_it_connects() -> None:
    with full_house() as target:
        poller = AgentPoller(settings(limit=600), lambda: {target: None})
        poller.start()
        time.sleep(0.4)
        poller.stop()
        wait_until(lambda: not threads(), SOON, "every thread has ended")
