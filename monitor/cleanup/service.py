"""Cleanup in the daemon: runs policies on their cron schedule and at high-water marks.

A cron run that was missed while the daemon was down is made up once; an interrupted run is closed and resumed once. A
policy in dry-run mode, or one that was not announced long enough ago, touches nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
from apscheduler.schedulers.background import BackgroundScheduler

from monitor.base.cron import cron_trigger, fires_in
from monitor.base.sqlite import DatabaseError
from monitor.base.threads import Periodic, WorkerPool, spawn
from monitor.cleanup.execute.run_plan import PlanRunner, ShutdownError
from monitor.cleanup.inputs import Planner
from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.policy import CleanupPolicy
from monitor.cleanup.runner import HIGH_WATER, PolicyRunner
from monitor.cleanup.schedule import PreviousRuns, due_runs, previous_runs
from monitor.facts.node import NodeSnapshot
from monitor.leader.elector import LeaderElector, NotLeaderError
from monitor.leader.ledger import RecordedRun

log = logging.getLogger(__name__)
MAX_WORKERS = 8  # parallel runs, on different nodes
STOP_TIMEOUT_SECONDS = 0.7  # the next process recovers runs that take longer
CHECK_INTERVAL_SECONDS = 15.0
MISFIRE_GRACE_SECONDS = 3600
MAX_SETTLE_SECONDS = 30.0  # wait for the first answer of every agent and of the API server
CRON, MADE_UP, RESUMED = "cron", "made-up", "resumed"
MAX_PREVIOUS_RUNS = 6  # hindered runs in a row that lengthen the pause
FIRED_KEY = "fired"
LEADER_POLL_SECONDS = 0.25


@dataclass(frozen=True)
class CleanupDeps:
    """Components of the service."""

    journal: CleanupJournal
    planner: Planner
    plan_runner: PlanRunner
    runner: PolicyRunner
    settled: Callable[[], bool]  # whether every agent and the API server answered or failed once
    leading: LeaderElector


class CleanupService:
    """Runs policies between start() and stop()."""

    def __init__(
        self,
        policies: tuple[CleanupPolicy, ...],
        deps: CleanupDeps,
        stopping: threading.Event,
        now: Callable[[], float] = time.time,
        check_interval: float = CHECK_INTERVAL_SECONDS,
    ) -> None:
        self._policies = {policy.name: policy for policy in policies}
        self._deps = deps
        self._stopping = stopping
        self._now = now
        self._pool = WorkerPool(MAX_WORKERS, "cleanup")
        self._scheduler = BackgroundScheduler(timezone="UTC", daemon=True)
        self._checks = Periodic("cleanup-check", self.check, check_interval)
        self._leadership = Periodic(
            "cleanup-leader", self._follow_leadership, LEADER_POLL_SECONDS, initial_delay=LEADER_POLL_SECONDS
        )
        self._term: int | None = None
        self._startup: threading.Thread | None = None

    def start(self) -> None:
        self._startup = spawn("cleanup", self._begin)

    def stop(self) -> None:
        """Stop. A run in progress stays open in the journal; the next process closes it."""
        self._stopping.set()
        self._leadership.stop()
        if self._startup is not None:
            self._startup.join(STOP_TIMEOUT_SECONDS)
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        self._checks.stop(STOP_TIMEOUT_SECONDS)
        self._pool.stop(STOP_TIMEOUT_SECONDS)
        self._deps.journal.close()

    def submit(self, policy: CleanupPolicy, node: str | None, trigger: str, by: str | None = None) -> None:
        """Run a policy on a node in the background, unless the leader term has ended by then."""
        leading = self._deps.leading
        term = leading.term()

        def run() -> None:
            if leading.term() == term:  # otherwise the new leader has resumed it
                self._run_safely(policy, node, trigger, by)

        self._pool.submit(run)

    def begin(self, policy: CleanupPolicy, nodes: Sequence[str | None], trigger: str, by: str | None = None) -> None:
        """Run a policy on these nodes. Raise NotLeadingError if another replica leads.

        All runs are published to the other replicas before the first one starts.
        """
        now, by_cron = self._now(), trigger in (CRON, MADE_UP)
        self._deps.leading.begin(policy.name, nodes, RecordedRun(now, trigger), _cron_key(policy) if by_cron else None)
        if by_cron:
            self._deps.journal.put_metadata(_cron_key(policy), repr(now))
        for node in nodes:
            self.submit(policy, node, trigger, by)

    def check(self) -> None:
        """Start runs for full disks, announce policies that were not announced yet, forward notifications."""
        if self._stopping.is_set():
            return
        if self._deps.leading.holds():
            for policy, node in self._due(self._deps.planner.snapshots()):
                self.submit(self._policies[policy], node, HIGH_WATER)
            for configured in self._policies.values():
                self._deps.runner.announce_early(configured)
        self._deps.runner.forward()

    def _due(self, snapshots: dict[str, NodeSnapshot]) -> list[tuple[str, str]]:
        journal = self._deps.journal
        fired = {(policy, node): at for policy, node, at in _decoded_fired(journal.metadata(FIRED_KEY))}
        previous = {key: self._previous_runs(*key, at) for key, at in fired.items()}
        runs = due_runs(self._policies.values(), fired, snapshots, self._now(), previous)
        after = [(*key, at) for key, at in sorted((runs.fired or {}).items())]
        if after != [(*key, at) for key, at in sorted(fired.items())]:
            journal.put_metadata(FIRED_KEY, msgspec.json.encode(after).decode())
        return [(run.policy, run.node) for run in runs.due]

    def _previous_runs(self, policy: str, node: str, fired_at: float) -> PreviousRuns:
        journal = self._deps.journal
        runs = ((run, journal.entries(run.id)) for run in journal.runs(MAX_PREVIOUS_RUNS, policy, node))
        return previous_runs(runs, fired_at, self._now())

    def _begin(self) -> None:
        """Close the runs that the last process left open, make up missed runs, then follow the schedule."""
        deadline = time.monotonic() + MAX_SETTLE_SECONDS
        while not self._deps.settled() and time.monotonic() < deadline and not self._stopping.wait(0.1):
            pass
        if self._stopping.is_set():
            return
        try:
            self._recover()
            for policy in self._policies.values():
                if self._deps.leading.shared:
                    self._count_from_now(policy)
                else:
                    self._make_up(policy)
        except ShutdownError:
            return
        except Exception:  # recovery must not keep the schedule from running
            log.exception("recovering interrupted cleanup runs failed")
        self._schedule()

    def _follow_leadership(self) -> None:
        """Continue where the last leader ended, each time that this replica becomes the leader."""
        term = self._deps.leading.term()
        if term is None or term == self._term:
            return
        self._term = term
        try:
            self._take_over()
        except NotLeaderError as error:
            log.warning("cleanup is waiting for leadership: %s", error)

    def _take_over(self) -> None:
        """Resume interrupted runs, adopt pauses, and make up cron runs that no replica has started."""
        started = tuple(self._deps.leading.record().all_runs())
        pauses = [
            (policy, node, ran.at) for policy, node, ran in started if node and ran.trigger in (HIGH_WATER, RESUMED)
        ]
        self._deps.journal.put_metadata(FIRED_KEY, msgspec.json.encode(pauses).decode())
        for name, node, ran in started:
            policy = self._policies.get(name)
            if ran.is_open and policy is not None and ran.trigger != RESUMED:
                log.warning("resuming %s on %s, which was interrupted in another replica", name, node or "the cluster")
                self.submit(policy, node, RESUMED)
        for policy in self._policies.values():
            self._make_up(policy)
        self._checks.wake()

    def _recover(self) -> None:
        for run in self._deps.plan_runner.recover():
            self._deps.runner.close(run)
            log.warning("closed the interrupted run %s of %s", run.id, run.policy)
            policy = self._policies.get(run.policy)
            # A resumed run is not resumed again: it may be what ends the process. With replicas, the leader resumes it.
            if policy is not None and run.trigger != RESUMED and not self._deps.leading.shared:
                self.submit(policy, run.node, RESUMED, run.by)
        self._deps.runner.forward()

    def _count_from_now(self, policy: CleanupPolicy) -> None:
        """Do not make up cron runs from before a policy was first seen."""
        if self._deps.journal.metadata(_cron_key(policy)) is None:
            self._deps.journal.put_metadata(_cron_key(policy), repr(self._now()))

    def _make_up(self, policy: CleanupPolicy) -> None:
        if policy.when.cron is None:
            return
        now = self._now()
        stored = self._deps.journal.metadata(_cron_key(policy))
        elsewhere = self._deps.leading.record().marks.get(_cron_key(policy), 0.0)
        last = min(max(float(stored), elsewhere), now) if stored is not None else now
        if fires_in(policy.when.cron, policy.when.timezone, last, now):
            self.begin(policy, self._deps.planner.nodes(policy), MADE_UP)
        else:
            self._deps.journal.put_metadata(_cron_key(policy), repr(now))

    def _schedule(self) -> None:
        for policy in self._policies.values():
            if policy.when.cron is not None:
                self._scheduler.add_job(
                    self._fire,
                    cron_trigger(policy.when.cron, policy.when.timezone),
                    args=(policy,),
                    id=policy.name,
                    coalesce=True,
                    max_instances=1,
                    misfire_grace_time=MISFIRE_GRACE_SECONDS,
                )
        if self._stopping.is_set():
            return
        self._scheduler.start()
        self._checks.start()
        if self._deps.leading.shared:
            self._leadership.start()

    def _fire(self, policy: CleanupPolicy) -> None:
        if self._stopping.is_set() or not self._deps.leading.holds():
            return
        try:
            self.begin(policy, self._deps.planner.nodes(policy), CRON)
        except NotLeaderError as error:  # the next leader makes it up
            log.warning("%s does not run: %s", policy.name, error)

    def _run_safely(self, policy: CleanupPolicy, node: str | None, trigger: str, by: str | None) -> None:
        try:
            self._deps.runner.run(policy, node, trigger, by)
        except ShutdownError:
            return
        except NotLeaderError as error:
            log.warning("%s does not run: %s", policy.name, error)
        except DatabaseError as error:
            log.error("%s: nothing is done because the journal cannot be written: %s", policy.name, error)
        except Exception:  # a failing policy must not keep the others from running
            log.exception("cleanup %s on %s failed", policy.name, node)


def _cron_key(policy: CleanupPolicy) -> str:
    """Metadata key of the time up to which a policy's cron schedule was followed."""
    return f"cron {policy.name}"


def _decoded_fired(stored: str | None) -> list[tuple[str, str, float]]:
    try:
        return msgspec.json.decode(stored or "[]", type=list[tuple[str, str, float]])
    except msgspec.MsgspecError:
        return []
