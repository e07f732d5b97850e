"""The past of the demo: seven days for every chart, a report, and alerts that are over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from monitor.alert.model import NotificationReason
from monitor.alert.store import AlertEventKind, AlertStore
from monitor.history.model import METRICS, SPAN_SECONDS, HistoryMetric, HistorySubject
from monitor.history.reader import HistoryReader
from monitor.history.recorder import HistoryRecorder
from monitor.history.store import HistoryStore
from monitor.i18n import LANGUAGES, say
from monitor.report.buckets import HOUR
from monitor.report.store import UsageStore
from monitor.sim.cluster import SimCluster
from monitor.sim.everyday import fill_cluster
from monitor.sim.objects import SimObjects
from monitor.sim.past import ClusterPast, is_working_time, make_past
from monitor.sim.past_figures import PastFigures
from monitor.sim.past_outages import past_outages
from monitor.sim.seed import Seeding

NOW = 1_795_000_000.0
NODES, GPUS = 3, 8
DAY = 86400.0


@dataclass
class Seeded:
    """A seeded state directory."""

    past: ClusterPast
    state: Path
    history: HistoryReader

    def known(self, subject: HistorySubject, name: str, metric: HistoryMetric, span: float) -> list[float]:
        found = self.history.read(subject, name, span)
        return [value for _, value in found.points(metric) if value is not None]


def cluster() -> SimCluster:
    made = SimCluster(SimObjects(), lambda: NOW)
    for number in range(1, NODES + 1):
        made.add_node(f"gpu{number:02d}", GPUS)
    fill_cluster(made)
    return made


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeded]:
    state, past = tmp_path_factory.mktemp("seeded") / "state", make_past(cluster())
    seeding = Seeding(past, state)
    seeding.write_recent()
    seeding.write_older()
    recorder = HistoryRecorder(HistoryStore(str(state / "history.db")), now=lambda: NOW)
    yield Seeded(past, state, HistoryReader(recorder, now=lambda: NOW))
    recorder.close()


def entities(past: ClusterPast) -> Iterator[tuple[HistorySubject, str]]:
    """What can be seen on the first page: everything of the cluster that has existed for seven days."""
    yield HistorySubject.CLUSTER, "cluster"
    for node, gpus in past.gpus.items():
        yield HistorySubject.NODE, node
        yield from ((HistorySubject.GPU, f"{node}/{index}") for index in range(len(gpus)))
        yield from ((HistorySubject.DISK, f"{node}:{mount}") for mount in past.disks[node])
    jobs = {job for gpus in past.gpus.values() for gpu in gpus for job in gpu.jobs if job.pod is not None}
    for job in jobs:
        yield HistorySubject.QUEUE, job.queue
        if job.begin < past.now - SPAN_SECONDS and job.pod is not None:
            yield HistorySubject.POD, job.pod
            yield HistorySubject.JOB, job.pod


def test_every_chart_has_seven_days(seeded: Seeded) -> None:
    everything = set(entities(seeded.past))
    assert {subject for subject, _ in everything} == set(HistorySubject) - {HistorySubject.USER}
    for subject, name in everything:
        for metric in METRICS[subject]:
            count = len(seeded.known(subject, name, metric, SPAN_SECONDS))
            least = 200 if subject is HistorySubject.QUEUE else 990  # a queue without GPUs has no utilization
            assert count >= least, (subject, name, metric)


@pytest.mark.parametrize("user", ["zhang", "li", "wang", "zhao", "chen"])
def test_every_user_has_worked_on_most_days(seeded: Seeded, user: str) -> None:
    assert len(seeded.known(HistorySubject.USER, user, HistoryMetric.GPUS, SPAN_SECONDS)) > 144


def test_the_last_day_and_the_last_hour_are_complete(seeded: Seeded) -> None:
    for span, least in ((DAY, 715), (3600.0, 58)):
        assert len(seeded.known(HistorySubject.CLUSTER, "cluster", HistoryMetric.GPUS, span)) >= least


def test_figures_are_possible_and_agree_with_each_other(seeded: Seeded) -> None:
    figures = PastFigures(seeded.past, past_outages(seeded.past))
    for hours in range(0, 168, 5):
        found = {(subject, name): values for subject, name, values in figures.samples(NOW - hours * 3600.0)}
        load, held, free, _ = found[HistorySubject.CLUSTER, "cluster"]
        assert held is not None
        assert held == sum(values[1] or 0 for (subject, _), values in found.items() if subject is HistorySubject.USER)
        assert free == sum(values[1] or 0 for (subject, _), values in found.items() if subject is HistorySubject.NODE)
        ratios = [load, *(values[0] for (subject, _), values in found.items() if subject is not HistorySubject.CLUSTER)]
        assert all(ratio is None or 0.0 <= ratio <= 1.0 for ratio in ratios)


def test_disks_end_at_what_they_are_now(seeded: Seeded) -> None:
    for node, disks in seeded.past.disks.items():
        for mount, used in disks.items():
            last = seeded.known(HistorySubject.DISK, f"{node}:{mount}", HistoryMetric.USED, 3600.0)[-1]
            assert last == pytest.approx(used, abs=0.005)


def test_nights_are_quieter_than_working_hours(seeded: Seeded) -> None:
    points = seeded.history.read(HistorySubject.CLUSTER, "cluster", SPAN_SECONDS).points(HistoryMetric.GPUS)
    day = [value for at, value in points if value is not None and is_working_time(at)]
    night = [value for at, value in points if value is not None and not is_working_time(at)]
    assert sum(day) / len(day) > sum(night) / len(night)


def test_the_report_accounts_for_every_gpu_second(seeded: Seeded) -> None:
    usage = UsageStore(str(seeded.state / "record.db"))
    since = NOW // HOUR * HOUR - SPAN_SECONDS
    buckets = usage.buckets(since, NOW, "user")
    usage.close()
    seconds = sum(each.allocated + each.zombie + each.faulty + each.free + each.unknown for each in buckets)
    assert seconds == pytest.approx((NOW - since) * NODES * GPUS)
    idle = {each.user for each in buckets if each.idle > 0}
    assert idle == {"wang"}  # who forgets notebooks
    assert any(each.unknown > 0 for each in buckets)


def test_past_alerts_are_over_and_have_a_timeline(seeded: Seeded) -> None:
    store = AlertStore(str(seeded.state / "alerts.db"))
    events = store.history(NOW - SPAN_SECONDS)
    assert store.load().alerts == {}
    deliveries = store.deliveries(100, NOW)
    mentions = {
        event.alert.fingerprint: [mention.reason for mention in store.mentions(event.alert, 0.0, 10)]
        for event in events
    }
    store.close()
    assert {delivery.state for delivery in deliveries} == {"sent"}
    assert [delivery.at for delivery in deliveries] == sorted((each.at for each in deliveries), reverse=True)
    assert set(map(tuple, mentions.values())) == {(NotificationReason.RESOLVED, NotificationReason.NEW)}
    kinds = [event.what for event in events]
    assert kinds.count(AlertEventKind.FIRED) == kinds.count(AlertEventKind.RESOLVED) == len(past_outages(seeded.past))
    assert AlertEventKind.ACKNOWLEDGED in kinds
    for event in events:
        finding = event.alert.finding
        for lang in LANGUAGES:
            for text in (finding.headline, *finding.evidence, *finding.advice):
                assert say(lang, text.key, text.values)


def test_the_same_seed_makes_the_same_past() -> None:
    made = [make_past(cluster()) for _ in range(2)]
    assert made[0] == made[1]
    samples = [list(PastFigures(past, past_outages(past)).samples(NOW - DAY)) for past in made]
    assert samples[0] == samples[1]


def test_writing_stops_on_request(tmp_path: Path) -> None:
    seeding = Seeding(make_past(cluster()), tmp_path / "state")
    seeding.write_recent()
    seeding.start()
    seeding.stop()
    began = time.monotonic()
    seeding.write_older()  # does nothing after stop()
    assert time.monotonic() - began < 60


def test_pods_of_the_past_are_those_that_run(seeded: Seeded) -> None:
    running = {f"{pod.work.namespace}/{pod.work.name}" for pod in cluster().pods.values()}
    known = {job.pod for gpus in seeded.past.gpus.values() for gpu in gpus for job in gpu.jobs if job.pod is not None}
    assert known == running
