"""Node facts from a scripted metrics store: their nodes, their age, and outages of the store."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import msgspec
import pytest

from monitor.cluster.agents.poller import PollSettings
from monitor.cluster.prometheus import source as prometheus
from monitor.cluster.prometheus.client import StoreSettings
from monitor.cluster.prometheus.direct import DirectAgentReader
from monitor.cluster.prometheus.source import PrometheusNodes, PrometheusSettings
from monitor.cluster.prometheus.targets import DOWN, DROPPED, NEVER, TOO_OLD
from monitor.cluster.sources import agent_sources
from monitor.facts.agents import AgentFact
from monitor.facts.node import NodeSnapshot
from tests.cluster.agents.polling import threads
from tests.cluster.prometheus.fake_store import FakeStore, fake_store
from tests.cluster.prometheus.series.test_rebuild import in_any_order, lost
from tests.support import free_port, wait_until
from tests.support.fake_agents import FakeAgent, answers, reports
from tests.support.snapshots import full_snapshot


@pytest.fixture
def store() -> Iterator[FakeStore]:
    with fake_store() as made:
        yield made


class ManualSource:
    """PrometheusNodes that queries when the test says so, with a manual clock."""

    def __init__(self, store: FakeStore, limit: float = 2.0, **more: object) -> None:
        self.clock = time.time()
        self.targets: dict[str, str | None] = {}
        self.notified: list[AgentFact] = []
        settings = PrometheusSettings(StoreSettings(store.url, limit, **more), interval=0.05)  # type: ignore[arg-type]  # settings of several types
        self.nodes = PrometheusNodes(settings, lambda: self.targets, self.notified.append, lambda: self.clock)

    def query(self, later: float = 1.0) -> dict[str | None, AgentFact]:
        self.clock += later
        self.nodes.query()
        return {fact.node: fact for fact in self.nodes.facts()}


def node(name: str, at: float = 0.0) -> NodeSnapshot:
    return msgspec.structs.replace(full_snapshot(), node=name, at=at or time.time())


def bare(name: str) -> NodeSnapshot:
    return NodeSnapshot(node=name, at=time.time(), agent_version="1", collectors=())


def test_a_scrape_becomes_the_snapshot_with_the_time_of_the_scrape(store: FakeStore) -> None:
    manual = ManualSource(store)
    snapshot = node("gpu-01")
    store.scrape(snapshot, manual.clock - 7)
    fact = manual.query()["gpu-01"]
    assert fact.snapshot is not None
    assert in_any_order(fact.snapshot) == in_any_order(lost(snapshot))
    assert (fact.target, fact.received_at, fact.silent_since) == ("gpu-01:9835", manual.clock - 8, None)
    assert manual.notified == [fact]
    assert manual.nodes.source().ok


def test_only_agents_with_news_are_read_again(store: FakeStore) -> None:
    manual = ManualSource(store)
    for name in ("gpu-01", "gpu-02"):
        store.scrape(bare(name), manual.clock)
    before = manual.query()
    store.asked.clear()
    manual.notified.clear()
    store.scrape(bare("gpu-02"), manual.clock + 1)
    after = manual.query()
    read = [query for query in store.asked if query.startswith("{")]
    assert len(read) == 1
    assert "gpu-02:9835" in read[0]
    assert "gpu-01:9835" not in read[0]
    assert after["gpu-01"] is before["gpu-01"]
    assert [fact.node for fact in manual.notified] == ["gpu-02"]


def test_images_are_asked_for_once_a_minute(store: FakeStore) -> None:
    manual = ManualSource(store)
    for moment in range(4):
        store.scrape(node("gpu-01"), manual.clock + moment * 25)
        fact = manual.query(25)["gpu-01"]
        assert fact.snapshot is not None
        assert fact.snapshot.images
    assert sum("gpuwarden_image_size_bytes" in query for query in store.asked) == 2
    assert sum("gpuwarden_gpu_info" in query for query in store.asked) == 4


def test_agents_are_asked_for_some_at_a_time(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MAX_BATCH_NODES", 3)
    for number in range(8):
        store.scrape(bare(f"gpu-{number}"))
    assert len(ManualSource(store).query()) == 8
    sizes = [query.count(":9835") for query in store.asked if "gpuwarden_gpu_info" in query]
    assert sizes == [3, 3, 2]


def test_less_is_asked_for_when_it_was_too_much(store: FakeStore) -> None:
    def refuse(query: str) -> tuple[int, bytes] | None:
        return (422, TOO_MANY) if query.count(":9835") > 2 else None

    store.behave = refuse
    for number in range(8):
        store.scrape(bare(f"gpu-{number}"))
    manual = ManualSource(store)
    assert len(manual.query()) == 8
    assert manual.nodes.source().ok


TOO_MANY = b'{"status":"error","errorType":"execution","error":"query processing would load too many samples"}'


@pytest.mark.parametrize("newer_first", [True, False])
def test_of_two_replicas_the_newer_scrape_counts(store: FakeStore, newer_first: bool) -> None:
    manual = ManualSource(store)
    old, new = node("gpu-01"), msgspec.structs.replace(node("gpu-01"), boot_id="new", containers=(), mounts=())
    scrapes = [(old, manual.clock - 20, "a"), (new, manual.clock - 5, "b")]
    for snapshot, at, replica in reversed(scrapes) if newer_first else scrapes:
        store.scrape(snapshot, at, prometheus_replica=replica)
    (fact,) = manual.query().values()
    assert fact.received_at == manual.clock - 6
    assert in_any_order(fact.snapshot) == in_any_order(lost(new))


def test_labels_that_the_target_has_too_are_told_apart(store: FakeStore) -> None:
    """A scrape renames labels of the agent that the target has too, and adds the target's where they are empty."""
    manual = ManualSource(store)
    snapshot = node("gpu-01")
    store.scrape(snapshot, manual.clock, namespace="ops", pod="agent-x", container="agent", node="gpu-01")
    fact = manual.query()["gpu-01"]
    assert in_any_order(fact.snapshot) == in_any_order(lost(snapshot))


def test_an_agent_that_cannot_be_scraped_is_silent_and_keeps_its_last_word(store: FakeStore) -> None:
    manual = ManualSource(store)
    store.scrape(bare("gpu-01"), manual.clock)
    before = manual.query()["gpu-01"]
    store.fail_to_scrape("gpu-01")
    first, second = manual.query()["gpu-01"], manual.query()["gpu-01"]
    assert (first.error, first.silent_since, first.received_at) == (DOWN, manual.clock - 1, before.received_at)
    assert (second.silent_since, second.failures, second.snapshot) == (first.silent_since, 2, before.snapshot)
    store.agents = []
    store.scrape(bare("gpu-01"), manual.clock)
    again = manual.query()["gpu-01"]
    assert (again.error, again.silent_since, again.failures) == (None, None, 0)


def test_an_agent_that_is_no_target_any_more_is_silent_until_the_store_forgets_it(store: FakeStore) -> None:
    manual = ManualSource(store)
    store.scrape(bare("gpu-01"), manual.clock)
    manual.query()
    store.agents = []
    assert manual.query()["gpu-01"].error == DROPPED
    assert manual.query(61) == {}  # not among the agents of the last hour


def test_kubernetes_knows_better_who_is_gone_and_where_agents_are(store: FakeStore) -> None:
    manual = ManualSource(store)
    for name in ("gpu-01", "gpu-02"):
        store.scrape(bare(name), manual.clock)
    manual.targets = {"10.0.0.1:9835": "gpu-01", "10.0.0.3:9835": "gpu-03"}
    found = manual.query()
    assert found["gpu-01"].target == "10.0.0.1:9835"
    assert found["gpu-02"].target == "gpu-02:9835"
    assert (found["gpu-03"].error, found["gpu-03"].received_at) == (NEVER, None)
    store.agents = []
    assert manual.query().keys() == {"gpu-01", "gpu-03"}


def test_an_agent_that_was_started_again_elsewhere_is_one_agent(store: FakeStore) -> None:
    manual = ManualSource(store)
    store.scrape(bare("gpu-01"), manual.clock, instance="10.0.0.1:9835")
    manual.query()
    store.fail_to_scrape("gpu-01")
    store.scrape(bare("gpu-01"), manual.clock, instance="10.0.0.2:9835")
    (fact,) = manual.query().values()
    assert (fact.target, fact.silent_since) == ("10.0.0.2:9835", None)


def test_an_agent_of_before_says_so(store: FakeStore) -> None:
    store.scrape(bare("gpu-01"))
    store.behave = lambda query: (200, EMPTY) if query.startswith("timestamp") else None
    assert ManualSource(store).query()["gpu-01"].error == TOO_OLD


EMPTY = b'{"status":"success","data":{"resultType":"vector","result":[]}}'


def test_series_that_make_no_snapshot_are_told_of_that_agent_only(store: FakeStore) -> None:
    manual = ManualSource(store)
    store.scrape(bare("gpu-01"), manual.clock)
    store.scrape(bare("gpu-02"), manual.clock)
    answer = store.answer

    def lossy(query: str) -> tuple[int, bytes] | None:
        if not query.startswith("{"):
            return None
        store.behave = lambda _: None
        status, body = answer(query)
        store.behave = lossy
        return status, re.sub(rb'"__name__": "gpuwarden_snapshot[^}]*gpu-01[^}]*', b'"a": "b"', body)

    store.behave = lossy
    found = manual.query()
    assert "its series make no snapshot" in (found["gpu-01"].error or "")
    assert found["gpu-02"].error is None
    assert manual.nodes.source().ok


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"Unauthorized", "wants other credentials (status 401)"),
        (403, b"{}", "wants other credentials (status 403)"),
        (400, b'{"status":"error","error":"parse error: x"}', "does not understand the question"),
        (422, TOO_MANY, "it may be too much at once: query processing would load too many samples"),
        (503, b"starting", "is overloaded or not ready (status 503)"),
        (404, b"<html>", "is no Prometheus: /api/v1/query gives status 404"),
        (200, b"<html>", "is no Prometheus: /api/v1/query gives another kind of answer"),
        (302, b"", "is no Prometheus"),
        (500, b'{"status":"error","error":"disk"}', "answers 500: disk"),
        (200, b'{"status":"success","isPartial":true,"data":{"result":[]}}', "answers in part"),
    ],
)
def test_a_store_that_does_not_answer_says_why_and_nothing_is_frozen(
    store: FakeStore, status: int, body: bytes, said: str
) -> None:
    manual = ManualSource(store)
    store.scrape(bare("gpu-01"), manual.clock)
    before = manual.query()["gpu-01"]
    store.behave = lambda _: (status, body)
    fact = manual.query()["gpu-01"]
    source = manual.nodes.source()
    assert said in (source.why or "")
    assert not source.ok
    assert source.since == manual.clock
    assert (fact.snapshot, fact.received_at) == (before.snapshot, before.received_at)
    assert (fact.silent_since, fact.error) == (manual.clock, source.why)
    assert agent_sources(manual.nodes.facts(), source) == (source,)
    manual.query()
    assert manual.nodes.source().since == manual.clock - 1
    store.behave = lambda _: None
    assert manual.query()["gpu-01"].silent_since is None
    assert agent_sources(manual.nodes.facts(), manual.nodes.source())[0].ok


def test_what_a_store_could_not_see_itself_is_not_gone(store: FakeStore) -> None:
    """Thanos answers without its stores that are down, which proves nothing about their agents."""
    manual = ManualSource(store)
    for name in ("gpu-01", "gpu-02"):
        store.scrape(bare(name), manual.clock)
    manual.query()
    store.agents = [each for each in store.agents if each[0]["instance"] == "gpu-02:9835"]
    store.more = {"warnings": ["receive store 10.0.0.9: down"]}
    store.scrape(bare("gpu-02"), manual.clock + 1)
    found = manual.query(61)
    assert found["gpu-01"].error == "receive store 10.0.0.9: down"
    assert found["gpu-02"].error is None
    assert not manual.nodes.source().ok
    assert manual.query(61)["gpu-01"].snapshot is not None


def test_a_store_that_nobody_answers_for_and_one_that_takes_too_long(store: FakeStore) -> None:
    manual = ManualSource(store, limit=0.2)
    store.behave = lambda _: time.sleep(0.5) or None  # type: ignore[func-returns-value]  # None, after the limit
    manual.query()
    assert "does not answer within 0.2 s" in (manual.nodes.source().why or "")
    store.url = f"http://127.0.0.1:{free_port()}"
    unreachable = ManualSource(store)
    unreachable.targets = {"10.0.0.1:9835": "gpu-01"}
    assert "cannot be reached: Connection refused" in (unreachable.query()["gpu-01"].error or "")


def test_who_asks_is_told_and_a_token_is_read_each_time(store: FakeStore) -> None:
    tokens = iter(["first", "second", "third", "fourth", "fifth", "sixth"])
    manual = ManualSource(store, token=lambda: next(tokens))
    manual.query()
    assert [headers["authorization"] for headers in store.headers] == ["Bearer first", "Bearer second", "Bearer third"]
    manual = ManualSource(store, username="reader", password=lambda: "s3cret")
    manual.query()
    assert store.headers[-1]["authorization"] == "Basic cmVhZGVyOnMzY3JldA=="
    assert "s3cret" not in repr(manual.nodes._settings)

    def gone() -> str:
        raise ValueError("cannot read '/run/token': No such file or directory")

    manual = ManualSource(store, token=gone)
    manual.query()
    assert (
        manual.nodes.source().why == "daemon.prometheus.token_file: cannot read '/run/token': No such file or directory"
    )


def test_it_asks_again_and_again_until_it_is_stopped(store: FakeStore) -> None:
    store.scrape(bare("gpu-01"))
    manual = ManualSource(store)
    manual.nodes.start()
    manual.nodes.update_targets()
    assert [fact.node for fact in manual.nodes.facts()] == ["gpu-01"]
    wait_until(lambda: len(store.asked) > 8, 30, "several queries were made")
    manual.nodes.stop()
    wait_until(lambda: not threads(), 30, "every thread has ended")


def test_an_agent_is_asked_itself_where_it_matters() -> None:
    settings = PollSettings(interval=1, limit=1, crew=1, token=None)
    with FakeAgent(reports("gpu-01")) as agent:
        known = (AgentFact(target=agent.target, node="gpu-01"), AgentFact(target=agent.target, node="gpu-02"))
        reader = DirectAgentReader(settings, lambda: known)
        told = reader.read("gpu-01")
        assert told is not None
        assert told.snapshot is not None
        assert told.silent_since is None
        other = reader.read("gpu-02")
        assert other is not None
        assert (other.error, other.snapshot) == ("is the agent of another node", None)
        agent.behave = answers(b"[]")
        odd = reader.read("gpu-01")
        assert odd is not None
        assert (odd.error, odd.snapshot) == ("sent no snapshot: Expected `object`, got `array`", None)
        assert reader.read("gpu-03") is None
