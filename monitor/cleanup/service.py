"""Cleanup of the daemon: runs policies when they are due, and tells of it.

By crontab or at a high-water mark; a run that was missed while nobody ran is made up once, and one that was interrupted
is closed and begun anew, once. Nothing is done by a policy that is in a dry run, or not announced for long enough.
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
from monitor.base.threads import WorkerPool
from monitor.cleanup.execute.run_plan import PlanRunner, ShutdownError
from monitor.cleanup.inputs import Planner
from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.policy import CleanupPolicy
from monitor.cleanup.runner import HIGH_WATER, PolicyRunner
from monitor.cleanup.schedule import PreviousRuns, due_runs, previous_runs
from monitor.facts.node import NodeSnapshot
from monitor.leader.elector import Leading, NotLeadingError
from monitor.leader.ledger import Ran

log = logging.getLogger(__name__)
MAX_WORKERS = 9  # runs at the same time, on different nodes, and one that looks around
STOP_TIMEOUT_SECONDS = 0.7  # seconds that the end waits for what is under way: the next process finds what became of it
CHECK_INTERVAL_SECONDS = 15.0  # seconds between two looks at the disks
MISFIRE_GRACE_SECONDS = 3600  # seconds by which a run may be late
MAX_SETTLE_SECONDS = 30.0  # the longest that the first look waits until every agent was asked
CRON, MADE_UP, RESUMED = "cron", "made-up", "resumed"
MAX_PREVIOUS_RUNS = 6  # so many runs in vain, in a row, are told apart
FIRED_KEY = "fired"
LEADER_POLL_SECONDS = 0.25  # seconds between two looks at whether this replica has become the one that acts


@dataclass(frozen=True)
class CleanupDeps:
    """What the service is made of."""

    journal: CleanupJournal
    gatherer: Planner
    executor: PlanRunner
    runner: PolicyRunner
    settled: Callable[[], bool]  # whether every agent and the API server were asked once
    leading: Leading


class CleanupService:
    """Works between start() and stop()."""

    def __init__(
        self,
        policies: tuple[CleanupPolicy, ...],
        parts: CleanupDeps,
        stopping: threading.Event,
        now: Callable[[], float] = time.time,
        look: float = CHECK_INTERVAL_SECONDS,
    ) -> None:
        self._policies = {policy.name: policy for policy in policies}
        self._parts = parts
        self._stopping = stopping
        self._now = now
        self._look_every = look
        self._crew = WorkerPool(MAX_WORKERS, "cleanup")
        self._scheduler = BackgroundScheduler(timezone="UTC", daemon=True)
        self._looking = threading.Lock()
        self._thread = threading.Thread(target=self._begin, name="cleanup", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End. A run that is under way stays open in the journal, and is closed by the next process."""
        self._stopping.set()
        self._thread.join(STOP_TIMEOUT_SECONDS)
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        self._crew.stop(STOP_TIMEOUT_SECONDS)
        self._parts.journal.close()

    def submit(self, policy: CleanupPolicy, node: str | None, trigger: str, by: str | None = None) -> None:
        """Have a policy run on a node, on another thread, unless this replica's time of acting is over by then."""
        leading = self._parts.leading
        term = leading.term()

        def run() -> None:
            if leading.term() == term:  # else whoever acts now has begun it anew
                self._run_safely(policy, node, trigger, by)

        self._crew.submit(run)

    def begin(self, policy: CleanupPolicy, nodes: Sequence[str | None], trigger: str, by: str | None = None) -> None:
        """Have a policy run on these nodes. Raise NotLeadingError if this replica may not.

        All of it is known to other replicas before any of it begins.
        """
        now, by_crontab = self._now(), trigger in (CRON, MADE_UP)
        self._parts.leading.begin(policy.name, nodes, Ran(now, trigger), _cron_key(policy) if by_crontab else None)
        if by_crontab:
            self._parts.journal.put_note(_cron_key(policy), repr(now))
        for node in nodes:
            self.submit(policy, node, trigger, by)

    def look(self) -> None:
        """Look whether a disk is too full, and whether a policy has yet to be announced; pass on messages."""
        if self._parts.leading.holds():
            snapshots = self._parts.gatherer.snapshots()
            for run in self._due(snapshots):
                self.submit(self._policies[run[0]], run[1], HIGH_WATER)
            for policy in self._policies.values():
                self._parts.runner.announce_early(policy)
        self._parts.runner.forward()

    def _due(self, snapshots: dict[str, NodeSnapshot]) -> list[tuple[str, str]]:
        journal = self._parts.journal
        known = journal.note(FIRED_KEY)
        fired = {(each[0], each[1]): each[2] for each in _decoded_fired(known)}
        pasts = {key: self._past(*key, at) for key, at in fired.items()}
        found = due_runs(self._policies.values(), fired, snapshots, self._now(), pasts)
        after = [(*key, at) for key, at in sorted((found.fired or {}).items())]
        if after != [(*key, at) for key, at in sorted(fired.items())]:
            journal.put_note(FIRED_KEY, msgspec.json.encode(after).decode())
        return [(each.policy, each.node) for each in found.due]

    def _past(self, policy: str, node: str, fired_at: float) -> PreviousRuns:
        """Return what became of the run of a policy on a node that was last due."""
        journal = self._parts.journal
        runs = ((run, journal.entries(run.id)) for run in journal.runs(MAX_PREVIOUS_RUNS, policy, node))
        return previous_runs(runs, fired_at, self._now())

    def _begin(self) -> None:
        """Close what the last process left open, make up what was missed, then keep to the schedule."""
        deadline = time.monotonic() + MAX_SETTLE_SECONDS
        while not self._parts.settled() and time.monotonic() < deadline and not self._stopping.wait(0.1):
            pass
        if self._stopping.is_set():
            return
        try:
            self._recover()
            for policy in self._policies.values():
                if self._parts.leading.shared:
                    self._count_from_now(policy)
                else:
                    self._make_up(policy)
        except ShutdownError:
            return
        except Exception:  # whatever is odd about the past, the schedule is kept
            log.exception("closing what the last process left open")
        self._schedule()
        if self._parts.leading.shared:
            self._wait_for_our_turn()

    def _wait_for_our_turn(self) -> None:
        """Each time that this replica becomes the one that acts, go on where the last one ended."""
        known: int | None = None
        while not self._stopping.wait(LEADER_POLL_SECONDS):
            term = self._parts.leading.term()
            if term is None or term == known:
                continue
            known = term
            try:
                self._take_over()
            except NotLeadingError as error:
                log.warning("cleanup waits: %s", error)
            except Exception:  # whatever is odd about the past, the schedule is kept
                log.exception("taking over from another replica")

    def _take_over(self) -> None:
        """Begin anew what was under way, keep to pauses, and make up what no replica has begun."""
        begun = tuple(self._parts.leading.record().all_runs())
        pauses = [(policy, node, ran.at) for policy, node, ran in begun if ran.trigger in (HIGH_WATER, RESUMED)]
        self._parts.journal.put_note(FIRED_KEY, msgspec.json.encode([each for each in pauses if each[1]]).decode())
        for name, node, ran in begun:
            policy = self._policies.get(name)
            if ran.is_open and policy is not None and ran.trigger != RESUMED:
                log.warning(
                    "%s on %s was interrupted in another replica and is begun anew", name, node or "the cluster"
                )
                self.submit(policy, node, RESUMED)
        for policy in self._policies.values():
            self._make_up(policy)
        self._look_safely()

    def _recover(self) -> None:
        for run in self._parts.executor.recover():
            self._parts.runner.close(run)
            log.warning("the run %s of %s was interrupted and is closed", run.id, run.policy)
            policy = self._policies.get(run.policy)
            # One that ends the process each time is not begun again; and where there are replicas, one of them has.
            if policy is not None and run.trigger != RESUMED and not self._parts.leading.shared:
                self.submit(policy, run.node, RESUMED, run.by)
        self._parts.runner.forward()

    def _count_from_now(self, policy: CleanupPolicy) -> None:
        """The first time that a policy is met, what it would have done before is no business of anybody."""
        if self._parts.journal.note(_cron_key(policy)) is None:
            self._parts.journal.put_note(_cron_key(policy), repr(self._now()))

    def _make_up(self, policy: CleanupPolicy) -> None:
        if policy.when.cron is None:
            return
        now = self._now()
        noted = self._parts.journal.note(_cron_key(policy))
        begun = self._parts.leading.record().marks.get(_cron_key(policy), 0.0)
        last = min(max(float(noted), begun), now) if noted is not None else now
        if fires_in(policy.when.cron, policy.when.timezone, last, now):
            self.begin(policy, self._parts.gatherer.nodes(policy), MADE_UP)
        else:
            self._parts.journal.put_note(_cron_key(policy), repr(now))

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
        self._scheduler.add_job(
            self._crew.submit, "interval", (self._look_safely,), seconds=self._look_every, coalesce=True
        )
        if not self._stopping.is_set():
            self._scheduler.start()
            self._look_safely()

    def _fire(self, policy: CleanupPolicy) -> None:
        if self._stopping.is_set() or not self._parts.leading.holds():
            return
        try:
            self.begin(policy, self._parts.gatherer.nodes(policy), CRON)
        except NotLeadingError as error:  # whoever acts next makes it up
            log.warning("%s does not run: %s", policy.name, error)

    def _look_safely(self) -> None:
        if self._stopping.is_set() or not self._looking.acquire(blocking=False):
            return
        try:
            self.look()
        except Exception:  # whatever one odd fact provokes, the next look may succeed
            log.exception("looking whether a cleanup is due")
        finally:
            self._looking.release()

    def _run_safely(self, policy: CleanupPolicy, node: str | None, trigger: str, by: str | None) -> None:
        try:
            self._parts.runner.run(policy, node, trigger, by)
        except ShutdownError:
            return
        except NotLeadingError as error:
            log.warning("%s does not run: %s", policy.name, error)
        except DatabaseError as error:
            log.error("%s: the journal cannot be written, so nothing is done: %s", policy.name, error)
        except Exception:  # one policy that breaks must not keep the others from running
            log.exception("cleanup %s on %s", policy.name, node)


def _cron_key(policy: CleanupPolicy) -> str:
    """Return under which name it is remembered up to when the crontab of a policy was kept to."""
    return f"cron {policy.name}"


def _decoded_fired(known: str | None) -> list[tuple[str, str, float]]:
    try:
        return msgspec.json.decode(known or "[]", type=list[tuple[str, str, float]])
    except msgspec.MsgspecError:
        return []
