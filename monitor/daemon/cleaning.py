"""Wires cleanup from the configuration, the live cluster and the outbox of alerts, and runs it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from monitor.access.owner_links import load_signer
from monitor.base.sqlite import DatabaseError
from monitor.base.state_problems import StateProblem
from monitor.base.threads import spawn
from monitor.cleanup.alert_links import AlertLinks
from monitor.cleanup.execute.agent_client import Access, ActionClient, AgentTarget
from monitor.cleanup.execute.disk_level import DiskLevel, ReadDisk
from monitor.cleanup.execute.executor import ExecutorDeps, RemoteItemExecutor
from monitor.cleanup.execute.harbor import Harbor
from monitor.cleanup.execute.recheck import Recheck
from monitor.cleanup.execute.references_reader import ReferencesReader
from monitor.cleanup.execute.run_plan import PlanRunner
from monitor.cleanup.execute.scanner import RootScan, ScanError, Scanner, ScannerDeps, ScanProgress
from monitor.cleanup.inputs import Planner, PlannerDeps, other_mounts
from monitor.cleanup.journal import FILE, CleanupJournal
from monitor.cleanup.journal_records import ItemState, JournalEntry
from monitor.cleanup.model import CleanupPlan, Item
from monitor.cleanup.notices import NoticeRouting
from monitor.cleanup.on_demand import release_policy
from monitor.cleanup.owner_answers import OwnerAnswers, link_maker
from monitor.cleanup.plan.keeps import Keep
from monitor.cleanup.policy import CleanupPolicy, DatasetPolicy, RegistryPolicy
from monitor.cleanup.relay import NoticeOutbox, Relay
from monitor.cleanup.runner import ASKED, PolicyRunner, RunInProgressError, RunnerDeps, RunResult
from monitor.cleanup.service import CHECK_INTERVAL_SECONDS, CleanupDeps, CleanupService
from monitor.cleanup.totals import CleanupTotals
from monitor.cluster.live import LiveCluster
from monitor.detect.base import CleanupDeletion
from monitor.facts.actions import PruneBuildCache, PurgeTrash, RemoveImage
from monitor.facts.datasets import ScanFact
from monitor.kube.pod_writes import PodWrites
from monitor.leader.elector import LeaderElector, SingleReplica
from monitor.present.cleanup import ShownPlan, ShownRun, show_plan

log = logging.getLogger(__name__)
MAX_RUNS = 500  # own runs searched for one recorded on the lease
OWN_DELETION_SECONDS = 2 * 3600.0  # how long a deletion by cleanup explains missing data
SCAN_START_POLL_SECONDS = 0.005


class CleanupController:
    """Cleanup between start() and stop(), and its API for the web server and the report."""

    def __init__(
        self,
        policies: tuple[CleanupPolicy, ...],
        access: Access,
        state: str,
        cluster: LiveCluster,
        outgoing: NoticeOutbox,
        now: Callable[[], float] = time.time,
        check_interval: float = CHECK_INTERVAL_SECONDS,
        leading: LeaderElector | None = None,
        max_keep: float = 0.0,
        links_need_login: bool = False,
    ) -> None:
        """Raise ValueError, with a message for the user, if a required file is missing or a receiver is unknown.

        Owners may keep what a notice announces for `max_keep` seconds, 0 for not at all; `links_need_login` as well.
        """
        self._policies = {policy.name: policy for policy in policies}
        self._now = now
        self._leading = leading = leading or SingleReplica()
        self._cluster = cluster
        self._stopping = stopping = threading.Event()
        _check_receivers(policies, outgoing.routing())
        harbors = {policy.name: Harbor(policy, stopping) for policy in policies if isinstance(policy, RegistryPolicy)}
        client = ActionClient(access, stopping)
        self.journal = journal = CleanupJournal(os.path.join(state, FILE))
        api, scans, tried = cluster.api, dict[str, RootScan](), dict[str, tuple[Item, ...]]()
        references = ReferencesReader(api) if api is not None else None
        self._planner = planner = Planner(PlannerDeps(cluster, journal, references, scans.get, tried.get), now)
        self._scanner = Scanner(client, self._scanner_deps(), scans, now)
        recheck = Recheck(planner, self._policies, release_policy(policies))
        pods = PodWrites(api) if api is not None else None
        executor_deps = ExecutorDeps(self._target, planner.references, recheck, pods, harbors, leading.holds)
        executor = RemoteItemExecutor(client, executor_deps, journal, stopping, now)
        plan_runner = PlanRunner(journal, executor, stopping, now, leading)
        relay = Relay(journal, outgoing)
        # With several replicas, all of them would have to know the key and the answers.
        signer = load_signer(state) if max_keep > 0 and not leading.shared else None
        links = link_maker(signer, now) if signer is not None else None
        runner_deps = RunnerDeps(journal, planner, plan_runner, self._scanner, relay, self._disk_level, harbors, links)
        self._runner = PolicyRunner(policies, runner_deps, tried, now, leading)
        self.answers: OwnerAnswers | None = None  # None if owners may not keep anything
        self.alert_links: AlertLinks | None = None
        if signer is not None and links is not None:
            self.alert_links = AlertLinks(planner, policies, journal.keeps, links, outgoing.routing, now)
            self.answers = OwnerAnswers(
                signer, journal.keeps, planner, self._runner, self._policies, max_keep, leading, now, links_need_login
            )  # fmt: skip
        deps = CleanupDeps(journal, planner, plan_runner, self._runner, cluster.answered_once, leading)
        self._service = CleanupService(policies, deps, stopping, now, check_interval)

    def start(self) -> None:
        self._service.start()

    def stop(self) -> None:
        self._service.stop()

    def plans(self, policy: str | None, lang: str) -> tuple[ShownPlan, ...]:
        """Plan of each policy, or of one. Raise ValueError if there is no such policy."""
        policies = self._policies.values() if policy is None else (self._policy(policy),)
        planner, now = self._planner, self._now()
        return tuple(
            show_plan(planner.plan(each, node), lang, each.when.next_run(now))
            for each in policies
            for node in planner.nodes(each)
        )

    def policies_on(self, node: str, kind: str) -> tuple[str, ...]:
        """Names of the policies of a kind that apply to a node."""
        policies = (policy for policy in self._policies.values() if policy.kind == kind)
        return tuple(policy.name for policy in policies if node in self._planner.nodes(policy))

    def history(self, limit: int, policy: str | None) -> tuple[ShownRun, ...]:
        """Latest runs, newest first."""
        runs = self.journal.runs(limit, policy)
        return tuple(ShownRun(run=run, items=self.journal.entries(run.id)) for run in runs)

    def run(self, policy: str, node: str | None, by: str) -> tuple[str, ...]:
        """Start a policy on one node or wherever it applies; return where. Raise ValueError.

        Like every action here, raise NotLeaderError if another replica is the leader.
        """
        chosen = self._policy(policy)
        nodes = self._planner.nodes(chosen)
        if node is not None:
            if node not in nodes:
                raise ValueError(f"{policy} does not apply to {node}, or {node} has no known agent")
            nodes = (node,)
        self._service.begin(chosen, nodes, ASKED, by)
        return tuple(name or "cluster" for name in nodes)

    def release_plan(self, node: str, gpu: str) -> CleanupPlan:
        """Plan of a GPU release. Raise ValueError with a message for the user."""
        return self._runner.release_plan(node, gpu)

    def release(self, node: str, gpu: str, by: str, only: frozenset[str] | None = None) -> ShownRun:
        """Release a GPU now; `only` limits it to these items. Raise ValueError with a message for the user."""
        self._leading.check()
        return _run_now(lambda: self._runner.release(node, gpu, by, only))

    def restore(self, trash: str, by: str) -> ShownRun:
        """Restore an item from the trash. Raise ValueError with a message for the user."""
        self._leading.check()
        return _run_now(lambda: self._runner.restore(trash, by))

    def begin_scan(self, policy: str) -> ScanProgress:
        """Start scanning the root of a policy, unless a scan is running; return its progress. Raise ValueError."""
        dataset = self._dataset_policy(policy)

        def scan() -> None:
            with suppress(ScanError):  # recorded in its progress
                self._scanner.scan(dataset)

        running = self._scanner.progress(policy)
        if running is None or running.finished_at is not None:
            started = self._now()
            spawn("cleanup-scan", scan)
            while (progress := self._scanner.progress(policy)) is None or progress.started_at < started:
                time.sleep(SCAN_START_POLL_SECONDS)
        return self.scan(policy)

    def scan(self, policy: str) -> ScanProgress:
        """Progress of the scan of a policy's root. Raise ValueError."""
        progress = self._scanner.progress(self._dataset_policy(policy).name)
        if progress is None:
            raise ValueError(f"{policy} has not been scanned since the daemon started")
        return progress

    def stop_scan(self, policy: str) -> bool:
        """Stop a scan early; return whether there is one. Raise ValueError."""
        return self._scanner.stop(self._dataset_policy(policy).name)

    def ended_since(self, at: float) -> tuple[JournalEntry, ...]:
        """Journal entries that ended after `at` or are still in progress."""
        return self.journal.ended_since(at)

    def kept_since(self) -> float | None:
        """Start of the retained journal; None if it is complete."""
        return self.journal.kept_since()

    def keeps(self) -> tuple[Keep, ...]:
        """What owners asked to keep, also in the past."""
        return tuple(self.journal.keeps.all().values())

    @property
    def state_problem(self) -> StateProblem | None:
        """Why the journal is not written; None if it is."""
        return self.journal.problem

    def totals(self) -> CleanupTotals:
        """Runs, items and bytes since this process started."""
        return self.journal.counters.totals(self._policies, self.journal.last_runs())

    def scans(self) -> tuple[tuple[str, ScanFact], ...]:
        """Node and last scan of each dataset root."""
        datasets = [policy for policy in self._policies.values() if isinstance(policy, DatasetPolicy)]
        scans = ((policy.node, self._scanner.last(policy.name)) for policy in datasets)
        return tuple((node, last.scan) for node, last in scans if last is not None)

    def own_deletions(self) -> tuple[CleanupDeletion, ...]:
        """Recent and running deletions by cleanup, which must not be reported as data loss."""
        try:
            entries = self.journal.ended_since(self._now() - OWN_DELETION_SECONDS)
        except DatabaseError as error:  # detection of data loss goes on
            log.error("cannot read recent deletions by cleanup: %s", error)
            return ()
        own = [deletion for entry in entries if (deletion := _deletion(entry)) is not None]
        return (*own, *self._deletions_of_other_replicas())

    def _deletions_of_other_replicas(self) -> tuple[CleanupDeletion, ...]:
        since = self._now() - OWN_DELETION_SECONDS
        runs = [(node, run) for _, node, run in self._leading.record().all_runs() if node and run.id and run.bytes]
        recent = [(node, run) for node, run in runs if (run.ended_at or run.at) >= since]
        own_runs = {run.id for run in self.journal.runs(MAX_RUNS)} if recent else frozenset()
        return tuple(
            CleanupDeletion(node, run.path, run.bytes, run.at, run.ended_at)
            for node, run in recent
            if run.id not in own_runs
        )

    def _scanner_deps(self) -> ScannerDeps:
        planner = self._planner
        return ScannerDeps(self._target, lambda policy: other_mounts(policy, planner.agents()), planner.volumes)

    def _disk_level(self, read: ReadDisk, waiting: int) -> DiskLevel:
        return DiskLevel(read, self._stopping, waiting, self._now)

    def _target(self, node: str) -> AgentTarget | None:
        fact = self._planner.agents().get(node)
        return AgentTarget(node, fact.target) if fact is not None else None

    def _policy(self, name: str) -> CleanupPolicy:
        if name not in self._policies:
            known = ", ".join(self._policies) or "none"
            raise ValueError(f"there is no policy {name!r}; there are {known}")
        return self._policies[name]

    def _dataset_policy(self, name: str) -> DatasetPolicy:
        policy = self._policy(name)
        if not isinstance(policy, DatasetPolicy):
            raise ValueError(f"{name} is about {policy.kind}; only datasets are scanned")  # noqa: TRY004  # shown to a user
        return policy


def _run_now(run: Callable[[], RunResult]) -> ShownRun:
    try:
        result = run()
    except RunInProgressError as error:
        raise ValueError(str(error)) from None
    return ShownRun(run=result.run, items=result.entries)


def _check_receivers(policies: tuple[CleanupPolicy, ...], routing: NoticeRouting) -> None:
    for policy in policies:
        for name in policy.receivers:
            if name not in routing.receivers:
                known = ", ".join(routing.receivers) or "none"
                raise ValueError(f"{policy.name}: there is no receiver {name!r}; there are {known}")


def _deletion(entry: JournalEntry) -> CleanupDeletion | None:
    """What an item deletes, or None. Until it ends, the planned size counts: all of it may already be gone."""
    act, began = entry.item.act, entry.intended_at
    if not isinstance(act, (RemoveImage, PruneBuildCache, PurgeTrash)) or began is None or entry.item.node is None:
        return None
    if entry.state is ItemState.REFUSED:
        return None
    planned = entry.item.frees_bytes or 0
    size = planned if entry.ended_at is None or entry.freed_bytes is None else entry.freed_bytes
    root = act.root if isinstance(act, PurgeTrash) else None
    return CleanupDeletion(entry.item.node, root, size, began, entry.ended_at)
