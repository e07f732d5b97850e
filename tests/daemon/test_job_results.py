"""Messages about the ends of jobs: stored with the state of the jobs, sent once by one replica."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from monitor.alert.store import AlertStore, Delivery
from monitor.daemon.alerting import AlertingService
from monitor.daemon.job_results import JobResultService, forget_jobs
from monitor.facts.changes import Changes
from monitor.facts.cluster import ClusterView, Identity, PodView, UsageView
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import OwnerFact, PodFact
from monitor.history.reader import HistoryReader
from monitor.history.recorder import HistoryRecorder
from monitor.history.store import FILE as HISTORY_FILE
from monitor.history.store import HistoryStore
from monitor.job_results.endings import QUICK_SETTLE_SECONDS
from monitor.job_results.settings import JobResultSettings
from monitor.leader.elector import LeaderElector, SingleReplica
from monitor.sim.simulation import Simulation
from tests.cleanup.running import SOON, simulated
from tests.explain.builders import NOW, node
from tests.job_results.test_tracker import ends, runs
from tests.leader.test_elector import two
from tests.leader.test_elector_notifications import ManualClock, alerting
from tests.support import wait_until

SETTINGS = JobResultSettings(receivers=("ops",), users=("zhang",))
ZHANG = Identity(user="zhang", job="bert", workload_kind="Pod")


@pytest.fixture
def story() -> Iterator[Simulation]:
    with simulated() as made:
        yield made


class Cluster:
    """The pods of a cluster, and those that are gone."""

    def __init__(self, *pods: PodFact) -> None:
        self.pods = list(pods)
        self.gone: dict[str, PodFact] = {}

    def take_gone_pods(self) -> dict[str, PodFact]:
        return self.gone

    def owner(self, _uid: str) -> OwnerFact | None:
        return None


class Replica:
    """The service of one replica with its state; the thread that sends is not started."""

    def __init__(self, alerts: AlertingService, cluster: Cluster, leading: LeaderElector | None = None) -> None:
        self.alerts, self.cluster = alerts, cluster
        self.clock = ManualClock()
        self.clock.now = NOW - 100
        self.service = JobResultService(
            SETTINGS, cluster, alerts.store, alerts.dispatcher, leading or SingleReplica(), self.clock.time
        )

    def look(self, now: float) -> None:
        """Follow the facts, and send what is to be sent."""
        self.clock.now = now
        identities = {pod.uid: ZHANG for pod in self.cluster.pods}
        facts = make_cluster_facts(pods=self.cluster.pods, nodes=[node("n1")], identities=identities)
        self.service.follow(facts, Changes(complete=True), now)
        self.service.save()

    def sent(self) -> tuple[Delivery, ...]:
        return self.alerts.store.deliveries(100, NOW)


@contextmanager
def replica(state: Path, cluster: Cluster, leading: LeaderElector | None = None, **settings: Any) -> Iterator[Replica]:
    chosen: Any = leading or SingleReplica()
    with alerting(state, chosen, **settings) as alerts:
        yield Replica(alerts, cluster, leading)


def test_an_end_is_sent_once_across_restarts(tmp_path: Path) -> None:
    cluster = Cluster(runs())
    with replica(tmp_path, cluster) as made:
        made.look(NOW - 50)
        cluster.pods = [ends()]
        made.look(NOW)
        made.look(NOW + QUICK_SETTLE_SECONDS)
        (sent,) = made.sent()
    assert sent.receiver == "ops"
    for _ in range(2):
        with replica(tmp_path, cluster) as made:
            made.look(NOW + 60)
            made.look(NOW + 120)
            assert [each.id for each in made.sent()] == [sent.id]
    cluster.pods = []
    with replica(tmp_path, cluster) as made:
        made.look(NOW + 180)
        assert made.alerts.store.notes("job/") == {}


def test_an_end_that_was_decided_but_not_stored_before_a_kill_is_sent_after_the_restart(tmp_path: Path) -> None:
    cluster = Cluster(runs())
    with replica(tmp_path, cluster) as made:
        made.look(NOW - 50)
        cluster.pods = [ends()]
        made.look(NOW)
        identities = {"uid-bert-0": ZHANG}
        facts = make_cluster_facts(pods=cluster.pods, identities=identities)
        made.service.follow(facts, Changes(), NOW + QUICK_SETTLE_SECONDS)  # and killed before it is saved
        assert made.sent() == ()
    with replica(tmp_path, cluster) as made:
        made.look(NOW + 60)
        made.look(NOW + 60 + QUICK_SETTLE_SECONDS)
        assert len(made.sent()) == 1


def test_a_job_deleted_while_the_daemon_was_down_is_reported(tmp_path: Path) -> None:
    cluster = Cluster(runs())
    with replica(tmp_path, cluster) as made:
        made.look(NOW - 50)
    cluster.pods = []
    with replica(tmp_path, cluster) as made:
        made.look(NOW)
        made.look(NOW + QUICK_SETTLE_SECONDS)
        assert len(made.sent()) == 1


def test_what_ended_before_it_was_switched_on_is_not_reported_nor_what_ended_while_it_was_off(tmp_path: Path) -> None:
    with replica(tmp_path, Cluster(ends(at=NOW - 200))) as made:
        made.look(NOW)
        made.look(NOW + 60)
        assert made.sent() == ()
        forget_jobs(made.alerts.store)
        made.clock.now = NOW + 100
    with alerting(tmp_path, SingleReplica()) as alerts:  # type: ignore[arg-type]
        forget_jobs(alerts.store)
        assert alerts.store.note("job-results-since") is None


def test_the_leader_sends_and_its_successor_does_not_repeat_it(story: Simulation, tmp_path: Path) -> None:
    cluster = Cluster(runs())
    with (
        two(story, tmp_path) as (first, second),
        replica(tmp_path / "1", cluster, first) as one,
        replica(tmp_path / "2", cluster, second) as other,
    ):
        for each in (one, other):
            each.look(NOW - 50)
        cluster.pods = [ends()]
        for each in (one, other, one, other):
            each.look(NOW if each.clock.now < NOW else NOW + QUICK_SETTLE_SECONDS)
        assert (len(one.sent()), len(other.sent())) == (1, 0)
        first.stop()
        wait_until(second.holds, SOON, "the second takes over")
        other.look(NOW + 60)
        assert other.sent() == ()
        cluster.pods = [ends(), ends("second", uid="uid-2", created_at=NOW + 61, at=NOW + 65)]
        other.look(NOW + 70)
        other.look(NOW + 70 + QUICK_SETTLE_SECONDS)
        assert len(other.sent()) == 1


def test_an_end_that_the_leader_did_not_send_is_sent_by_its_successor(story: Simulation, tmp_path: Path) -> None:
    cluster = Cluster(runs())
    with two(story, tmp_path) as (first, second), replica(tmp_path / "2", cluster, second) as other:
        other.look(NOW - 50)
        cluster.pods = [ends()]
        other.look(NOW)
        other.look(NOW + QUICK_SETTLE_SECONDS)
        assert other.sent() == ()
    with two(story, tmp_path) as (first, second), replica(tmp_path / "2", cluster, second) as other:
        first.stop()
        wait_until(second.holds, SOON, "the second takes over")
        other.look(NOW + 20)
        other.look(NOW + 20 + QUICK_SETTLE_SECONDS)
        assert len(other.sent()) == 1


def test_the_average_utilisation_is_that_of_the_recorded_history(tmp_path: Path) -> None:
    cluster = Cluster(runs())
    now = [NOW - 3600.0]
    recorder = HistoryRecorder(HistoryStore(str(tmp_path / HISTORY_FILE)), lambda: now[0])
    for minute in range(60):
        now[0] = NOW - 3600 + 60 * minute
        ratio = 0.25 if minute < 30 else 0.75
        usage = UsageView(gpu_utilization_ratio=ratio)
        pod = PodView(
            uid="uid-bert-0", name="bert-0", namespace="team-a", phase="Running", identity=ZHANG, node="n1",
            requested_gpus=1, usage=usage,
        )  # fmt: skip
        recorder.record(ClusterView(at=now[0], pods=(pod,)), ())
    with replica(tmp_path, cluster) as made:
        made.service._history = HistoryReader(recorder, now=lambda: NOW + 10)
        made.look(NOW - 50)
        cluster.pods = [ends()]
        made.look(NOW)
        made.look(NOW + QUICK_SETTLE_SECONDS)
        (body,) = bodies(made.alerts.store)
    assert b'"job-result.gpu-hours-used"' in body
    assert b'"ratio":0.5' in body


def test_results_wait_for_the_digest_of_their_owner_as_one_message(tmp_path: Path) -> None:
    cluster = Cluster(runs())
    with replica(tmp_path, cluster, owners={"zhang": {"digest": "18:00"}}) as made:
        for number in range(3):
            at = NOW + 100 * number
            cluster.pods = [ends(uid=f"uid-{number}", created_at=at, at=at)]
            made.look(at)
            made.look(at + QUICK_SETTLE_SECONDS)
        (body,) = bodies(made.alerts.store)
        waiting = made.alerts.store.outbox.queue("ops", 60.0, NOW + 300)
    assert waiting.waiting == ()
    assert waiting.later_at is not None
    assert NOW < waiting.later_at <= NOW + 86400
    assert body.count(b'"rule":"job-finished"') == 3


def bodies(store: AlertStore) -> list[bytes]:
    return [row[0] for row in store._database.select("SELECT body FROM outbox")]
