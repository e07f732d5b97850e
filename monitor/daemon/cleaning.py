"""Cleanup of the daemon, put together: what the configuration says, what is followed, and whom to tell."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from monitor.alert.model import Notification
from monitor.base.sqlite import DatabaseError
from monitor.cleanup.execute.agent_client import Access, ActionClient
from monitor.cleanup.execute.disk_level import DiskLevel, ReadDisk
from monitor.cleanup.execute.executor import ExecutorDeps, RemoteItemExecutor
from monitor.cleanup.execute.harbor import Harbor
from monitor.cleanup.execute.recheck import Recheck
from monitor.cleanup.execute.references_reader import ReferencesReader
from monitor.cleanup.execute.run_plan import PlanRunner
from monitor.cleanup.execute.scanner import RootScan, ScanError, Scanner, ScannerDeps, ScanProgress
from monitor.cleanup.inputs import Planner, PlannerDeps, other_mounts
from monitor.cleanup.journal import FILE, CleanupJournal, ItemState, JournalEntry
from monitor.cleanup.model import CleanupPlan, Item
from monitor.cleanup.notices import NoticeRouting
from monitor.cleanup.on_demand import release_policy
from monitor.cleanup.policy import CleanupPolicy, DatasetPolicy, RegistryPolicy
from monitor.cleanup.relay import NoticeOutbox, Relay
from monitor.cleanup.runner import ASKED, PolicyRunner, RunInProgressError, RunnerDeps, RunResult
from monitor.cleanup.service import CleanupDeps, CleanupService
from monitor.cleanup.totals import CleanupTotals
from monitor.cluster.live import LiveCluster
from monitor.daemon.alerting import AlertingService
from monitor.detect.base import CleanupDeletion
from monitor.facts.actions import PruneBuildCache, PurgeTrash, RemoveImage
from monitor.facts.datasets import ScanFact
from monitor.kube.pod_writes import PodWrites
from monitor.leader.elector import LeaderElector, SingleReplica
from monitor.present.cleanup import ShownPlan, ShownRun, show_plan

log = logging.getLogger(__name__)
MAX_RUNS = 500  # of our own, among which a run is looked for
OWN_DELETION_SECONDS = 2 * 3600.0  # for how long what was deleted may still explain what is missing


class AlertOutbox:
    """The outbox of alerts, as cleanup needs it."""

    def __init__(self, alerting: AlertingService) -> None:
        self._alerting = alerting

    def routing(self) -> NoticeRouting:
        """Return who may be told."""
        policy = self._alerting.policy()
        return NoticeRouting(policy.routes, tuple(each.name for each in self._alerting.settings), policy.cluster)

    def note(self, name: str) -> bytes | None:
        """Return what was remembered together with messages."""
        return self._alerting.store.note(name)

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes]) -> None:
        """Put messages into the outbox."""
        self._alerting.desk.send(notifications, notes)


class CleanupController:
    """Everything about cleanup, between start() and stop(), and what can be asked of it."""

    def __init__(
        self,
        policies: tuple[CleanupPolicy, ...],
        access: Access,
        state: str,
        cluster: LiveCluster,
        outgoing: NoticeOutbox,
        now: Callable[[], float] = time.time,
        look: float | None = None,
        leading: LeaderElector | None = None,
    ) -> None:
        """Raise ValueError, in words for a user, if a file that is needed is gone or a receiver is not known."""
        self._policies = {policy.name: policy for policy in policies}
        self._now = now
        self._leading = leading = leading or SingleReplica()
        self._cluster = cluster
        self._stopping = stopping = threading.Event()
        _check_receivers(policies, outgoing.routing())
        harbors = {each.name: Harbor(each, stopping) for each in policies if isinstance(each, RegistryPolicy)}
        client = ActionClient(access, stopping)
        self._journal = journal = CleanupJournal(os.path.join(state, FILE))
        api, seen, tried = cluster.api, dict[str, RootScan](), dict[str, tuple[Item, ...]]()
        needs = ReferencesReader(api) if api is not None else None
        self._gatherer = gatherer = Planner(PlannerDeps(cluster, journal, needs, seen.get, tried.get), now)
        self._scanner = Scanner(client, self._surroundings(), seen, now)
        recheck = Recheck(gatherer, self._policies, release_policy(policies))
        pods = PodWrites(api) if api is not None else None
        reach = ExecutorDeps(self._target, gatherer.references, recheck, pods, harbors, leading.holds)
        executor = PlanRunner(
            journal, RemoteItemExecutor(client, reach, journal, stopping, now), stopping, now, leading
        )
        postbox = Relay(journal, outgoing)
        crew = RunnerDeps(journal, gatherer, executor, self._scanner, postbox, self._level, harbors)
        self._runner = PolicyRunner(policies, crew, tried, now, leading)
        parts = CleanupDeps(journal, gatherer, executor, self._runner, cluster.answered_once, leading)
        self._service = CleanupService(policies, parts, stopping, now, *([look] if look is not None else []))

    def start(self) -> None:
        self._service.start()

    def stop(self) -> None:
        self._service.stop()

    def plans(self, policy: str | None, lang: str) -> tuple[ShownPlan, ...]:
        """Return what each policy, or one, would do now. Raise ValueError if there is no such policy."""
        chosen = self._policies.values() if policy is None else (self._named(policy),)
        return tuple(
            show_plan(self._gatherer.plan(each, node), lang) for each in chosen for node in self._gatherer.nodes(each)
        )

    def history(self, limit: int, policy: str | None) -> tuple[ShownRun, ...]:
        """Return the latest runs, the last one first."""
        runs = self._journal.runs(limit, policy)
        return tuple(ShownRun(run=run, items=self._journal.entries(run.id)) for run in runs)

    def run(self, policy: str, node: str | None, by: str) -> tuple[str, ...]:
        """Have a policy run now, on one node or wherever it applies; return where. Raise ValueError.

        Like everything here that acts, raise NotLeadingError if another replica does.
        """
        chosen = self._named(policy)
        nodes = self._gatherer.nodes(chosen)
        if node is not None:
            if node not in nodes:
                raise ValueError(f"{policy} does not apply to {node}, or no agent of it is known")
            nodes = (node,)
        self._service.begin(chosen, nodes, ASKED, by)
        return tuple(each or "cluster" for each in nodes)

    def release_plan(self, node: str, gpu: str) -> CleanupPlan:
        """Return what a release of a card would do now. Raise ValueError in plain words."""
        return self._runner.release_plan(node, gpu)

    def release(self, node: str, gpu: str, by: str, only: frozenset[str] | None = None) -> ShownRun:
        """Release a card at once; `only` these items, if they are given. Raise ValueError in plain words."""
        self._leading.check()
        return _shown(lambda: self._runner.release(node, gpu, by, only))

    def restore(self, trash: str, by: str) -> ShownRun:
        """Put something back from the trash. Raise ValueError in plain words."""
        self._leading.check()
        return _shown(lambda: self._runner.restore(trash, by))

    def begin_scan(self, policy: str) -> ScanProgress:
        """Have the root of a policy scanned, and return how far that is. Raise ValueError."""
        chosen = self._dataset(policy)

        def scan() -> None:
            try:
                self._scanner.scan(chosen)
            except ScanError:  # its progress says why
                return

        running = self._scanner.progress(policy)
        if running is None or running.finished_at is not None:
            started = self._now()
            threading.Thread(target=scan, name="cleanup-scan", daemon=True).start()
            while (found := self._scanner.progress(policy)) is None or found.started_at < started:
                time.sleep(0.005)
        return self.scan(policy)

    def scan(self, policy: str) -> ScanProgress:
        """Return how far the scan of a policy's root is. Raise ValueError."""
        found = self._scanner.progress(self._dataset(policy).name)
        if found is None:
            raise ValueError(f"{policy} has not been scanned since the daemon started")
        return found

    def stop_scan(self, policy: str) -> bool:
        """Have a scan end early; return whether there is one. Raise ValueError."""
        return self._scanner.stop(self._dataset(policy).name)

    def ended_since(self, at: float) -> tuple[JournalEntry, ...]:
        """Return the items that ended after a time, and those that are under way."""
        return self._journal.ended_since(at)

    def kept_since(self) -> float | None:
        """Return from when on it is known what was cleaned up; None if that is always."""
        return self._journal.kept_since()

    def cleaned(self) -> CleanupTotals:
        """Return how much was done since this process began."""
        return self._journal.counters.totals(self._policies, self._journal.last_runs())

    def scans(self) -> tuple[tuple[str, ScanFact], ...]:
        """Return the last scan of each root of datasets, with its node."""
        datasets = [each for each in self._policies.values() if isinstance(each, DatasetPolicy)]
        found = ((each.node, self._scanner.last(each.name)) for each in datasets)
        return tuple((node, scanned.scan) for node, scanned in found if scanned is not None)

    def own_deletions(self) -> tuple[CleanupDeletion, ...]:
        """Return what was deleted lately, or is being deleted, so that nobody takes it for a loss."""
        try:
            entries = self._journal.ended_since(self._now() - OWN_DELETION_SECONDS)
        except DatabaseError as error:  # whoever looks for losses goes on looking
            log.error("what was deleted lately is not known: %s", error)
            return ()
        own = [each for entry in entries if (each := _deletion(entry)) is not None]
        return (*own, *self._deleted_by_others())

    def _deleted_by_others(self) -> tuple[CleanupDeletion, ...]:
        """Return what other replicas deleted lately, or are deleting."""
        since = self._now() - OWN_DELETION_SECONDS
        runs = [(node, ran) for _, node, ran in self._leading.record().all_runs() if node and ran.id and ran.bytes]
        lately = [(node, ran) for node, ran in runs if (ran.ended_at or ran.at) >= since]
        known = {run.id for run in self._journal.runs(MAX_RUNS)} if lately else frozenset()
        return tuple(
            CleanupDeletion(node, ran.path, ran.bytes, ran.at, ran.ended_at)
            for node, ran in lately
            if ran.id not in known
        )

    def _surroundings(self) -> ScannerDeps:
        gatherer = self._gatherer
        return ScannerDeps(self._target, lambda policy: other_mounts(policy, gatherer.agents()), gatherer.volumes)

    def _level(self, read: ReadDisk, waiting: int) -> DiskLevel:
        return DiskLevel(read, self._stopping, waiting, self._now)

    def _target(self, node: str) -> str | None:
        fact = self._gatherer.agents().get(node)
        return fact.target if fact is not None else None

    def _named(self, policy: str) -> CleanupPolicy:
        if policy not in self._policies:
            known = ", ".join(self._policies) or "none"
            raise ValueError(f"there is no policy {policy!r}; there are {known}")
        return self._policies[policy]

    def _dataset(self, policy: str) -> DatasetPolicy:
        chosen = self._named(policy)
        if not isinstance(chosen, DatasetPolicy):
            raise ValueError(f"{policy} is about {chosen.kind}; only datasets are scanned")  # noqa: TRY004  # shown to a user
        return chosen


def _shown(do: Callable[[], RunResult]) -> ShownRun:
    try:
        result = do()
    except RunInProgressError as error:
        raise ValueError(str(error)) from None
    return ShownRun(run=result.run, items=result.entries)


def _check_receivers(policies: tuple[CleanupPolicy, ...], address: NoticeRouting) -> None:
    for policy in policies:
        for name in policy.receivers:
            if name not in address.receivers:
                known = ", ".join(address.receivers) or "none"
                raise ValueError(f"{policy.name}: there is no receiver {name!r}; there are {known}")


def _deletion(entry: JournalEntry) -> CleanupDeletion | None:
    """Given an item, return what it deleted, or deletes; None if it deletes nothing. While it runs, all may be gone."""
    act, began = entry.item.act, entry.intended_at
    if not isinstance(act, (RemoveImage, PruneBuildCache, PurgeTrash)) or began is None or entry.item.node is None:
        return None
    if entry.state is ItemState.REFUSED:
        return None
    planned = entry.item.frees_bytes or 0
    size = planned if entry.ended_at is None or entry.freed_bytes is None else entry.freed_bytes
    root = act.root if isinstance(act, PurgeTrash) else None
    return CleanupDeletion(entry.item.node, root, size, began, entry.ended_at)
