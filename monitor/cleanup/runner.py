"""One run of a policy on a node: plan, check the permission, notify, execute, report; journaled throughout."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from monitor.cleanup.announcer import Announcer, LinkMaker
from monitor.cleanup.execute.disk_level import DiskLevel, ReadDisk
from monitor.cleanup.execute.harbor import Harbor, HarborError
from monitor.cleanup.execute.registry_plan import dry_run_items
from monitor.cleanup.execute.run_plan import LEASE_LOST, PlanRunner
from monitor.cleanup.execute.scanner import ScanError, Scanner
from monitor.cleanup.inputs import Planner
from monitor.cleanup.journal import CleanupJournal, new_id
from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry, RunState
from monitor.cleanup.model import CleanupPlan, Item, Mode
from monitor.cleanup.notices import dry_run_report, refusal_report, report
from monitor.cleanup.on_demand import (
    RELEASE,
    RESTORE,
    find_gpu,
    only_item,
    release_plan,
    release_policy,
    releasing_policy,
    restore_plan,
)
from monitor.cleanup.plan.select import PlanSubject, refuse
from monitor.cleanup.policy import Caps, CleanupPolicy, DatasetPolicy, ImagePolicy, RegistryPolicy
from monitor.cleanup.relay import Relay
from monitor.cleanup.schedule import Permission, was_hindered
from monitor.facts.actions import PruneBuildCache, PurgeTrash, RemoveImage, TrashUnit
from monitor.leader.elector import LeaderElector, NotLeaderError, SingleReplica
from monitor.leader.ledger import RecordedRun

log = logging.getLogger(__name__)
HIGH_WATER = "high-water"
ASKED = "asked"  # by a user
CLAIM_TIMEOUT_SECONDS = 5.0  # a user's request waits for a run that is about to end
SCAN_VALID_SECONDS = 600.0  # a younger scan is reused
DELETING_ACTIONS = (RemoveImage, PruneBuildCache, PurgeTrash)
_END_REASONS = {Permission.DRY_RUN: "dry-run", Permission.ANNOUNCE: "announced", Permission.WAIT: "waiting"}


class RunInProgressError(Exception):
    """The same policy is running on the same node."""


class RunResult(NamedTuple):
    """A run that ended, and its items."""

    run: CleanupRun
    entries: tuple[JournalEntry, ...]


@dataclass(frozen=True)
class RunnerDeps:
    """Components of a run. `level` creates the DiskLevel from a disk reader and the bytes in the trash."""

    journal: CleanupJournal
    planner: Planner
    plan_runner: PlanRunner
    scanner: Scanner
    relay: Relay
    level: Callable[[ReadDisk, int], DiskLevel]
    harbors: Mapping[str, Harbor]  # by policy
    links: LinkMaker | None = None  # to the page where owners answer


class PolicyRunner:
    """Runs policies. Thread-safe."""

    def __init__(
        self,
        policies: tuple[CleanupPolicy, ...],
        deps: RunnerDeps,
        registry_items: dict[str, tuple[Item, ...]],  # by policy: updated by each dry run of its Harbor
        now: Callable[[], float] = time.time,
        leading: LeaderElector | None = None,
    ) -> None:
        self._leading = leading or SingleReplica()
        self._policies = policies
        self._deps = deps
        self._registry_items = registry_items
        self._now = now
        self._announcer = Announcer(deps.journal, deps.planner, deps.relay, now, self._leading, deps.links)

    def forward(self) -> None:
        """Forward pending notifications."""
        self._deps.relay.forward()

    def announce_early(self, policy: CleanupPolicy) -> None:
        """Announce an enforced policy before it is first due."""
        self._announcer.announce_early(policy)

    def run(self, policy: CleanupPolicy, node: str | None, trigger: str, by: str | None) -> CleanupRun | None:
        """Run a policy on a node; None if it is already running there.

        Raise ShutdownError, DatabaseError or NotLeadingError.
        """
        deps = self._deps
        if not deps.plan_runner.claim(policy.name, node, CLAIM_TIMEOUT_SECONDS if trigger == ASKED else 0.0):
            log.info("%s is already running on %s", policy.name, node or "the cluster")
            return None
        try:
            term = self._leading.begin(policy.name, (node,), RecordedRun(self._now(), trigger))
            plan = self._prepare(policy) or deps.planner.plan(policy, node)
            run = self._new(policy.name, policy.kind, policy.mode, trigger, node, by)
            run = self._run_plan(policy, run, plan, term)
            self._publish_end(run)
            return run
        finally:
            deps.plan_runner.release(policy.name, node)
            self.forward()

    def _run_plan(self, policy: CleanupPolicy, run: CleanupRun, plan: CleanupPlan, term: int) -> CleanupRun:
        """Execute a plan as far as the policy may act."""
        may = self._announcer.permission(policy)
        if plan.refused is not None:
            return self._record(policy, run, plan, "refused")
        if may is Permission.ANNOUNCE:
            self._announcer.announce(policy)
        if may is not Permission.ACT:
            return self._record(policy, run, plan, _END_REASONS[may])
        self._announcer.notify_owners(policy, plan)
        return self._execute(policy, run, plan, term)

    def close(self, run: CleanupRun) -> None:
        """Close and report an interrupted run."""
        policy = next((policy for policy in self._policies if policy.name == run.policy), None)
        entries = [entry for entry in self._deps.journal.entries(run.id) if entry.request is not None]
        self._deps.journal.end(run, report(policy, run, entries, self._deps.relay.routing()))

    def release_plan(self, node: str, gpu: str) -> CleanupPlan:
        """Plan to release a GPU now. Raise ValueError with a message for the user."""
        context = self._deps.planner.gpu_context(release_policy(self._policies))
        return release_plan(context, find_gpu(context, node, gpu))

    def release(self, node: str, gpu: str, by: str, only: frozenset[str] | None = None) -> RunResult:
        """Release a GPU now, with all protections; `only` restricts it to items that were shown to the user.

        Raise ValueError with a message for the user, or RunInProgressError.
        """
        policy, plan = release_policy(self._policies), self.release_plan(node, gpu)
        if only is not None:
            plan = msgspec.structs.replace(plan, items=tuple(item for item in plan.items if item.id in only))
        return self._run_requested(self._new(RELEASE, policy.kind, Mode.ENFORCE, RELEASE, node, by), plan, policy.caps)

    def item_plan(self, policy: str, item: str) -> CleanupPlan | None:
        """Plan to release one item of a policy now, as its owner asks; None if it may not be released."""
        chosen = releasing_policy(policy, self._policies)
        return None if chosen is None else only_item(self._deps.planner.plan(chosen, None), item, self._now())

    def release_item(self, plan: CleanupPlan, by: str) -> RunResult:
        """Execute the plan of an item. Raise RunInProgressError or NotLeadingError."""
        trigger = RELEASE if plan.policy == RELEASE else ASKED
        run = self._new(plan.policy, plan.kind, Mode.ENFORCE, trigger, plan.items[0].node, by)
        return self._run_requested(run, plan, Caps())

    def restore(self, trash: str, by: str) -> RunResult:
        """Restore a unit from the trash. Raise ValueError with a message for the user, or RunInProgressError."""
        location = self._journaled_trash(trash) or self._scanned_trash(trash)
        if location is None:
            raise ValueError(f"no trash entry has the id {trash}; see gpuwarden cleanup history")
        root, node, name = location
        plan = restore_plan(trash, root, node, name, by, self._now())
        return self._run_requested(self._new(RESTORE, plan.kind, Mode.ENFORCE, ASKED, node, by), plan, Caps())

    def _journaled_trash(self, trash: str) -> tuple[str, str, str] | None:
        """Root, node and name of a unit that this replica moved into the trash."""
        entry = self._deps.journal.trashed(trash)
        if entry is None or not isinstance(entry.item.act, TrashUnit) or entry.item.node is None:
            return None
        return entry.item.act.root, entry.item.node, entry.item.name

    def _scanned_trash(self, trash_id: str) -> tuple[str, str, str] | None:
        """Root, node and name of a unit that a scan found in the trash: another replica may have moved it there."""
        for policy in self._policies:
            last = self._deps.scanner.last(policy.name) if isinstance(policy, DatasetPolicy) else None
            for trash in last.trash if last is not None else ():
                if trash.id == trash_id and trash.state == "trashed" and isinstance(policy, DatasetPolicy):
                    return trash.root, policy.node, trash.path
        return None

    def _run_requested(self, run: CleanupRun, plan: CleanupPlan, caps: Caps) -> RunResult:
        deps = self._deps
        if plan.refused is not None:
            return RunResult(deps.plan_runner.record(run, plan, "refused"), ())
        log.info("%s on %s requested by %s", run.policy, run.node, run.by)
        if not deps.plan_runner.claim(run.policy, run.node):
            raise RunInProgressError(f"a {run.policy} is already in progress on {run.node}")
        try:
            term = self._leading.begin(run.policy, (run.node,), RecordedRun(run.started_at, run.trigger))
            run = deps.plan_runner.run(run, plan, caps, None, term)
            entries = deps.journal.entries(run.id)
            deps.journal.end(run, report(None, run, entries, deps.relay.routing()))
            self._publish_end(run)
            return RunResult(run, entries)
        finally:
            deps.plan_runner.release(run.policy, run.node)
            self.forward()

    def _execute(self, policy: CleanupPolicy, run: CleanupRun, plan: CleanupPlan, term: int) -> CleanupRun:
        deps = self._deps
        self._publish_deletions(policy, run, plan)
        level = None
        if policy.when.low is not None and isinstance(policy, (ImagePolicy, DatasetPolicy)):
            trash_bytes = self._trash_bytes(policy) if isinstance(policy, DatasetPolicy) else 0
            level = deps.level(lambda: deps.planner.disk_reading(policy, run.node), trash_bytes)
        run = deps.plan_runner.run(run, plan, policy.caps, level, term)
        entries = [entry for entry in deps.journal.entries(run.id) if entry.ended_at is not None]
        messages = report(policy, run, entries, deps.relay.routing())
        key = _last_notice_key(policy.name, run.node)
        if run.trigger == HIGH_WATER and was_hindered(run, entries):  # retried soon, but reported once
            deps.journal.send_if_changed(key, f"in-vain {run.end}", messages)
            deps.journal.end(run)
        else:
            deps.journal.end(run, messages)
            deps.journal.put_metadata(key, "")
        return run

    def _publish_deletions(self, policy: CleanupPolicy, run: CleanupRun, plan: CleanupPlan) -> None:
        """Publish what is about to be deleted, so that other replicas do not report it as data loss."""
        deleted = [item for item in plan.items if isinstance(item.act, DELETING_ACTIONS)]
        if deleted:
            path = policy.root if isinstance(policy, DatasetPolicy) else None
            size = sum(item.frees_bytes or 0 for item in deleted)
            ran = RecordedRun(run.started_at, run.trigger, is_open=True, id=run.id, bytes=size, path=path)
            with suppress(NotLeaderError):  # then nothing is executed, and each item records that
                self._leading.begin(policy.name, (run.node,), ran)

    def _publish_end(self, run: CleanupRun) -> None:
        """Publish the end of a run to other replicas, unless it lost the lease: then it is theirs to resume."""
        if run.end != LEASE_LOST:
            self._leading.end(run.policy, run.node, self._now(), _deleted_bytes(self._deps.journal.entries(run.id)))

    def _trash_bytes(self, policy: DatasetPolicy) -> int:
        last = self._deps.scanner.last(policy.name)
        return sum(trash.allocated_bytes for trash in last.trash if trash.state != "empty") if last else 0

    def _record(self, policy: CleanupPolicy, run: CleanupRun, plan: CleanupPlan, end: str) -> CleanupRun:
        """Record a plan that is not executed, and report it unless the last report was the same."""
        deps, routing = self._deps, self._deps.relay.routing()
        run = deps.plan_runner.record(run, plan, end)
        if end == "refused":
            messages = refusal_report(policy, run, plan, routing)
        else:
            messages = dry_run_report(policy, run, plan, routing) if end == "dry-run" else ()
        text = f"{end} {plan.refused.key if plan.refused else ''} " + " ".join(sorted(item.id for item in plan.items))
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if messages:
            deps.journal.send_if_changed(_last_notice_key(policy.name, run.node), digest, messages)
        return run

    def _prepare(self, policy: CleanupPolicy) -> CleanupPlan | None:
        """Run the scan or dry run that a plan requires; if it fails, return an empty plan with the reason."""
        now = self._now()
        if isinstance(policy, DatasetPolicy):
            last = self._deps.scanner.last(policy.name)
            if last is not None and 0 <= now - last.scan.finished_at < SCAN_VALID_SECONDS:
                return None
            try:
                self._deps.scanner.scan(policy)
            except ScanError as error:
                where = {"root": policy.root, "node": policy.node}
                return refuse(PlanSubject(policy, now, policy.node), "scan-failed", **where, error=str(error))
        elif isinstance(policy, RegistryPolicy):
            try:
                self._registry_items[policy.name] = dry_run_items(policy, self._deps.harbors[policy.name], now)
            except HarborError as error:
                return refuse(PlanSubject(policy, now), "registry-failed", registry=policy.url, error=str(error))
        return None

    def _new(self, policy: str, kind: str, mode: str, trigger: str, node: str | None, by: str | None) -> CleanupRun:
        return CleanupRun(
            id=new_id("run"), policy=policy, kind=kind, mode=mode, trigger=trigger, node=node, by=by,
            started_at=self._now(), state=RunState.RUNNING,
        )  # fmt: skip


def _deleted_bytes(entries: Iterable[JournalEntry]) -> int:
    """Bytes that items deleted; units in the trash still exist."""
    done = (
        entry for entry in entries if entry.state is ItemState.DONE and isinstance(entry.item.act, DELETING_ACTIONS)
    )
    return sum(entry.freed_bytes or 0 for entry in done)


def _last_notice_key(policy: str, node: str | None) -> str:
    return f"told {policy} {node or ''}"
