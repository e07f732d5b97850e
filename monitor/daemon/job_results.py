"""Sends owners a message about the end of their jobs: once, across restarts and replicas.

The state of a job and the messages about its end are stored in one transaction. Of several replicas, each follows all
jobs and only the leader sends; it first records the ends on the Lease, from which the others know that they are sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Protocol

import msgspec

from monitor.alert.dispatcher import Dispatcher
from monitor.alert.model import Notification
from monitor.alert.store import AlertStore
from monitor.base.sqlite import DatabaseError
from monitor.base.threads import Periodic
from monitor.facts.changes import Changes
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import OwnerFact, PodFact
from monitor.history.model import MINUTE_SECONDS, SPAN_SECONDS, HistoryMetric, HistorySubject
from monitor.history.reader import HistoryReader
from monitor.job_results.model import JobEnding, TrackedJob
from monitor.job_results.notices import result_notifications
from monitor.job_results.settings import JobResultSettings
from monitor.job_results.tracker import MAX_LATE_SECONDS, JobTracker
from monitor.leader.elector import LeaderElector, NotLeaderError

log = logging.getLogger(__name__)
PREFIX, SINCE_KEY = "job/", "job-results-since"
SAVE_INTERVAL_SECONDS = 5.0
STOP_TIMEOUT_SECONDS = 1.0


class JobSources(Protocol):
    """What the live cluster knows besides the facts."""

    def take_gone_pods(self) -> Mapping[str, PodFact]:
        """Last versions of the pods that have gone since the last call, by uid."""
        ...

    def owner(self, uid: str, /) -> OwnerFact | None:
        """The Job with this uid."""
        ...


def forget_jobs(store: AlertStore) -> None:
    """Forget all jobs where their ends are not reported: ends of today are no news if that is switched on later."""
    notes = store.notes(PREFIX)
    if notes or store.note(SINCE_KEY) is not None:
        store.send((), dict.fromkeys((*notes, SINCE_KEY)))


class JobResultService:
    """Follows jobs on the thread that evaluates the facts, and sends on its own between start() and stop()."""

    def __init__(
        self,
        settings: JobResultSettings,
        cluster: JobSources,
        store: AlertStore,
        dispatcher: Dispatcher,
        leading: LeaderElector,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._receivers = settings.receivers
        self._cluster = cluster
        self._store = store
        self._dispatcher = dispatcher
        self._leading = leading
        self._now = now
        self._history: HistoryReader | None = None
        self._lock = threading.Lock()  # guards the tracker and what it has found
        self._tracker = JobTracker(settings, _stored_jobs(store), self._since())
        self._endings: dict[str, JobEnding] = {}  # that are not sent, by id
        self._recorded: set[str] = set()  # ids of those that the Lease has from this replica
        self._changed: set[str] = set()  # keys of jobs that are not saved
        self._loop = Periodic("job-results", self.save, SAVE_INTERVAL_SECONDS)

    def start(self, history: HistoryReader) -> None:
        """Start sending; `history` knows how jobs used their GPUs."""
        self._history = history
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop(STOP_TIMEOUT_SECONDS)
        self.save()

    def follow(self, facts: ClusterFacts, changes: Changes, now: float) -> None:
        """Take over changes of the facts. A job that cannot be judged must not stop the rules."""
        try:
            self._follow(facts, changes, now)
        except Exception:
            log.exception("cannot follow jobs")

    def _follow(self, facts: ClusterFacts, changes: Changes, now: float) -> None:
        with self._lock:
            found = self._tracker.follow(facts, changes, self._cluster.take_gone_pods(), self._cluster.owner, now)
            self._endings |= {ending.id: ending for ending in found.endings}
            self._changed |= found.changed
        if found.endings:
            self._loop.wake()

    def save(self) -> None:
        """Send the ends, and save the jobs that have changed. What fails is tried again."""
        try:
            self._save()
        except NotLeaderError as error:
            log.warning("another replica sends the job results: %s", error)
        except DatabaseError as error:
            log.error("cannot write job results, will retry: %s", error)

    def _save(self) -> None:
        with self._lock:
            self._drop_sent(self._leading.results())
            leads = self._leading.holds()
            endings = tuple(self._endings.values()) if leads else ()
            # A job whose end is not sent yet keeps its former state, in which the end is found again after a restart.
            waiting = set() if leads else {ending.key for ending in self._endings.values()}
            notes = {key: self._note_of(key) for key in self._changed - waiting}
        new = [ending.id for ending in endings if ending.id not in self._recorded]
        if new and self._leading.shared:
            self._leading.add_results(new)
            self._recorded |= set(new)
        if endings or notes:
            notifications = [notification for ending in endings for notification in self._notifications(ending)]
            self._dispatcher.send(notifications, {PREFIX + key: body for key, body in notes.items()})
        with self._lock:
            for ending in endings:
                self._endings.pop(ending.id, None)
                self._recorded.discard(ending.id)
            for key, body in notes.items():
                if self._note_of(key) == body:
                    self._changed.discard(key)

    def _note_of(self, key: str) -> bytes | None:
        job = self._tracker.jobs.get(key)
        return msgspec.json.encode(job) if job is not None else None

    def _drop_sent(self, sent: frozenset[str]) -> None:
        """Forget ends that another replica has sent, and those that are no news any longer."""
        now = self._now()
        for ending in tuple(self._endings.values()):
            if ending.id in sent - self._recorded or now - ending.ended_at > MAX_LATE_SECONDS:
                del self._endings[ending.id]

    def _notifications(self, ending: JobEnding) -> Sequence[Notification]:
        return result_notifications(ending, self._utilization(ending), self._receivers, self._now())

    def _utilization(self, ending: JobEnding) -> float | None:
        """Mean utilisation of the GPUs of a job while it ran, as far as the history knows it."""
        if self._history is None or ending.started_at is None or not ending.gpu_seconds:
            return None
        span = min(max(ending.ended_at - ending.started_at, MINUTE_SECONDS), SPAN_SECONDS)
        try:
            found = self._history.read(HistorySubject.JOB, f"{ending.namespace}/{ending.job}", span, ending.ended_at)
        except (DatabaseError, ValueError) as error:
            log.warning("the utilisation of job %s/%s is not known: %s", ending.namespace, ending.job, error)
            return None
        known = [value for _, value in found.points(HistoryMetric.UTILIZATION) if value is not None]
        return fmean(known) if known else None

    def _since(self) -> float:
        """When job results were switched on."""
        stored = self._store.note(SINCE_KEY)
        if stored is not None:
            return float(stored)
        now = self._now()
        self._store.send((), {SINCE_KEY: repr(now).encode()})
        return now


def _stored_jobs(store: AlertStore) -> Iterable[TrackedJob]:
    for name, body in store.notes(PREFIX).items():
        try:
            yield msgspec.json.decode(body, type=TrackedJob)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            log.error("forgetting %s, which cannot be decoded: %s", name, error)
