"""Pod explanations for a scrape are computed in the background; a scrape never waits for a long round."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from monitor.daemon.metrics import collect
from monitor.daemon.metrics.collect import PodHealthCollector
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import make_cluster_facts
from tests.explain.builders import NOW, node, pod
from tests.support import wait_until

WAITING = make_cluster_facts(pods=[pod()], nodes=[node("n1", unschedulable=True)])


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "ROUND_INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(collect, "IDLE_TIMEOUT_SECONDS", 0.3)


def test_a_scrape_does_not_wait_for_a_long_round() -> None:
    go_on = threading.Event()

    def slow() -> ClusterFacts:
        go_on.wait(120)
        return WAITING

    explaining = PodHealthCollector(slow, lambda: NOW)
    began = time.monotonic()
    assert explaining.latest() is None
    assert time.monotonic() - began < 30
    go_on.set()
    wait_until(lambda: explaining.latest() is not None, 5, "the round is over")


def test_what_nobody_asks_for_is_not_made() -> None:
    made = []

    def world() -> ClusterFacts:
        made.append(1)
        return WAITING

    explaining = PodHealthCollector(world, lambda: NOW)
    assert made == []
    found = explaining.latest()
    assert found is not None
    assert [each.pod.name for each in found.pods] == ["bert-0"]
    wait_until(lambda: "explain pods" not in [each.name for each in threading.enumerate()], 10, "it ends")
    before = len(made)
    assert explaining.latest() is not None  # the thread starts again
    assert len(made) > before


def test_a_round_that_fails_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    worlds = iter([None, WAITING])

    def world() -> ClusterFacts:
        found = next(worlds, WAITING)
        if found is None:
            raise RuntimeError("odd")
        return found

    explaining = PodHealthCollector(world, lambda: NOW)
    with caplog.at_level(logging.CRITICAL):
        wait_until(lambda: explaining.latest() is not None, 5, "the next round succeeds")


def test_without_kubernetes_nothing_is_known_of_pods() -> None:
    assert PodHealthCollector(lambda: None).latest() is None
