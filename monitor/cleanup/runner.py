"""One run of one policy on one node: plan, ask whether it may act, tell, act, report. All of it in the journal."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from monitor.cleanup.execute.disk_level import DiskLevel, ReadDisk
from monitor.cleanup.execute.harbor import Harbor, HarborError
from monitor.cleanup.execute.registry_plan import dry_run_items
from monitor.cleanup.execute.run_plan import LEASE_LOST, PlanRunner
from monitor.cleanup.execute.scanner import ScanError, Scanner
from monitor.cleanup.inputs import Planner
from monitor.cleanup.journal import CleanupJournal, CleanupRun, ItemState, JournalEntry, RunState, new_id
from monitor.cleanup.model import CleanupPlan, Item, Mode
from monitor.cleanup.notices import announcement, dry_run_report, notices, refusal_report, report
from monitor.cleanup.on_demand import RELEASE, RESTORE, find_gpu, release_plan, release_policy, restore_plan
from monitor.cleanup.plan.select import PlanSubject, refuse
from monitor.cleanup.policy import Caps, CleanupPolicy, DatasetPolicy, GpuPolicy, ImagePolicy, RegistryPolicy
from monitor.cleanup.relay import Relay
from monitor.cleanup.schedule import Permission, permission, was_hindered
from monitor.facts.actions import PruneBuildCache, PurgeTrash, RemoveImage, TrashUnit
from monitor.leader.elector import Alone, Leading, NotLeadingError
from monitor.leader.ledger import Ran

log = logging.getLogger(__name__)
HIGH_WATER = "high-water"
ASKED = "asked"  # by a person, who must not be ignored because of a run that is as good as over
CLAIM_TIMEOUT_SECONDS = 5.0  # seconds
SCAN_VALID_SECONDS = 600.0  # seconds for which a run takes a scan that somebody has just made
DELETING_ACTIONS = (RemoveImage, PruneBuildCache, PurgeTrash)
_END_REASONS = {Permission.DRY_RUN: "dry-run", Permission.ANNOUNCE: "announced", Permission.WAIT: "waiting"}


class RunInProgressError(Exception):
    """The same is being done already."""


class RunResult(NamedTuple):
    """A run that is over, and what became of each item."""

    run: CleanupRun
    entries: tuple[JournalEntry, ...]


@dataclass(frozen=True)
class RunnerDeps:
    """Who does what for a run. `level` makes the measure of its disk, given how to read it and what is in its trash."""

    journal: CleanupJournal
    gatherer: Planner
    executor: PlanRunner
    scanner: Scanner
    postbox: Relay
    level: Callable[[ReadDisk, int], DiskLevel]
    harbors: Mapping[str, Harbor]


class PolicyRunner:
    """Runs policies. For use from any thread."""

    def __init__(
        self,
        policies: tuple[CleanupPolicy, ...],
        crew: RunnerDeps,
        tried: dict[str, tuple[Item, ...]],  # what the last dry run of each policy's Harbor would do is kept here
        now: Callable[[], float] = time.time,
        leading: Leading | None = None,
    ) -> None:
        self._leading = leading or Alone()
        self._policies = policies
        self._crew = crew
        self._tried = tried
        self._now = now

    def forward(self) -> None:
        """Pass on messages that wait."""
        self._crew.postbox.forward()

    def run(self, policy: CleanupPolicy, node: str | None, trigger: str, by: str | None) -> CleanupRun | None:
        """Run a policy on a node; None if it runs there already.

        Raise StoppedError, DatabaseError or NotLeadingError.
        """
        crew = self._crew
        if not crew.executor.claim(policy.name, node, CLAIM_TIMEOUT_SECONDS if trigger == ASKED else 0.0):
            log.info("%s is under way on %s already", policy.name, node or "the cluster")
            return None
        try:
            term = self._leading.begin(policy.name, (node,), Ran(self._now(), trigger))
            plan = self._refused_look(policy) or crew.gatherer.plan(policy, node)
            run = self._new(policy.name, policy.kind, policy.mode, trigger, node, by)
            run = self._carried_out(policy, run, plan, term)
            self._over(run)
            return run
        finally:
            crew.executor.release(policy.name, node)
            self.forward()

    def _carried_out(self, policy: CleanupPolicy, run: CleanupRun, plan: CleanupPlan, term: int) -> CleanupRun:
        """Do with a plan what may be done with it, and return how that went."""
        may = permission(policy, self._announced_at(policy), self._now())
        if plan.refused is not None:
            return self._only_noted(policy, run, plan, "refused")
        if may is Permission.ANNOUNCE:
            self._announce(policy)
        if may is not Permission.ACT:
            return self._only_noted(policy, run, plan, _END_REASONS[may])
        self._tell_owners(policy, plan)
        return self._act(policy, run, plan, term)

    def close(self, run: CleanupRun) -> None:
        """Close a run that was interrupted, and tell of it."""
        policy = next((each for each in self._policies if each.name == run.policy), None)
        entries = [entry for entry in self._crew.journal.entries(run.id) if entry.request is not None]
        self._crew.journal.end(run, report(policy, run, entries, self._crew.postbox.address()))

    def announce_early(self, policy: CleanupPolicy) -> None:
        """Announce a policy that will act, as soon as it can say what: not only when it would have to act.

        One whose plan takes a scan or a dry run is announced when it first runs.
        """
        if isinstance(policy, (DatasetPolicy, RegistryPolicy)) or policy.mode is not Mode.ENFORCE:
            return
        if permission(policy, self._announced_at(policy), self._now()) is Permission.ANNOUNCE:
            self._announce(policy)

    def release_plan(self, node: str, gpu: str) -> CleanupPlan:
        """Return what a release of a card would do now. Raise ValueError in plain words."""
        scene = self._crew.gatherer.scene(release_policy(self._policies))
        return release_plan(scene, find_gpu(scene, node, gpu))

    def release(self, node: str, gpu: str, by: str, only: frozenset[str] | None = None) -> RunResult:
        """Release a card at once, as guarded as by policy; `only` what somebody was shown, if that is given.

        Raise ValueError in plain words, or BusyError.
        """
        policy, plan = release_policy(self._policies), self.release_plan(node, gpu)
        if only is not None:
            shown = tuple(item for item in plan.items if item.id in only)
            plan = msgspec.structs.replace(plan, items=shown)
        return self._asked(self._new(RELEASE, policy.kind, Mode.ENFORCE, RELEASE, node, by), plan, policy.caps)

    def restore(self, trash: str, by: str) -> RunResult:
        """Put something back from the trash. Raise ValueError in plain words, or BusyError."""
        found = self._put_there(trash) or self._seen_there(trash)
        if found is None:
            raise ValueError(f"nothing was put into a trash under the id {trash}; see gpuwarden cleanup history")
        root, node, name = found
        plan = restore_plan(trash, root, node, name, by, self._now())
        return self._asked(self._new(RESTORE, plan.kind, Mode.ENFORCE, ASKED, node, by), plan, Caps())

    def _put_there(self, trash: str) -> tuple[str, str, str] | None:
        """Return root, node and name of what this replica has put into a trash."""
        entry = self._crew.journal.trashed(trash)
        if entry is None or not isinstance(entry.item.act, TrashUnit) or entry.item.node is None:
            return None
        return entry.item.act.root, entry.item.node, entry.item.name

    def _seen_there(self, trash: str) -> tuple[str, str, str] | None:
        """Return root, node and name of what a scan saw in a trash: another replica may have put it there."""
        for policy in self._policies:
            scanned = self._crew.scanner.last(policy.name) if isinstance(policy, DatasetPolicy) else None
            for each in scanned.trash if scanned is not None else ():
                if each.id == trash and each.state == "trashed" and isinstance(policy, DatasetPolicy):
                    return each.root, policy.node, each.path
        return None

    def _asked(self, run: CleanupRun, plan: CleanupPlan, caps: Caps) -> RunResult:
        crew = self._crew
        if plan.refused is not None:
            return RunResult(crew.executor.note(run, plan, "refused"), ())
        log.info("%s on %s is asked for by %s", run.policy, run.node, run.by)
        if not crew.executor.claim(run.policy, run.node):
            raise RunInProgressError(f"a {run.policy} is under way on {run.node}")
        try:
            term = self._leading.begin(run.policy, (run.node,), Ran(run.started_at, run.trigger))
            run = crew.executor.run(run, plan, caps, None, term)
            entries = crew.journal.entries(run.id)
            crew.journal.end(run, report(None, run, entries, crew.postbox.address()))
            self._over(run)
            return RunResult(run, entries)
        finally:
            crew.executor.release(run.policy, run.node)
            self.forward()

    def _act(self, policy: CleanupPolicy, run: CleanupRun, plan: CleanupPlan, term: int) -> CleanupRun:
        crew = self._crew
        self._warn(policy, run, plan)
        level = None
        if policy.when.low is not None and isinstance(policy, (ImagePolicy, DatasetPolicy)):
            waiting = self._in_trash(policy) if isinstance(policy, DatasetPolicy) else 0
            level = crew.level(lambda: crew.gatherer.reading(policy, run.node), waiting)
        run = crew.executor.run(run, plan, policy.caps, level, term)
        entries = [entry for entry in crew.journal.entries(run.id) if entry.ended_at is not None]
        messages = report(policy, run, entries, crew.postbox.address())
        told = _last_notice_key(policy.name, run.node)
        if run.trigger == HIGH_WATER and was_hindered(run, entries):  # and tried again soon: that is told once
            crew.journal.say_once(told, f"in-vain {run.end}", messages)
            crew.journal.end(run)
        else:
            crew.journal.end(run, messages)
            crew.journal.put_note(told, "")
        return run

    def _warn(self, policy: CleanupPolicy, run: CleanupRun, plan: CleanupPlan) -> None:
        """Let other replicas know what is about to be deleted, so that they do not take it for a loss."""
        deleted = [item for item in plan.items if isinstance(item.act, DELETING_ACTIONS)]
        if deleted:
            path = policy.root if isinstance(policy, DatasetPolicy) else None
            size = sum(item.frees_bytes or 0 for item in deleted)
            ran = Ran(run.started_at, run.trigger, is_open=True, id=run.id, bytes=size, path=path)
            with suppress(NotLeadingError):  # then nothing is done, and that is written down with each item
                self._leading.begin(policy.name, (run.node,), ran)

    def _over(self, run: CleanupRun) -> None:
        """Let other replicas know that a run is over; one that lost the lease is left to them."""
        if run.end != LEASE_LOST:
            self._leading.end(run.policy, run.node, self._now(), _deleted_bytes(self._crew.journal.entries(run.id)))

    def _announced_at(self, policy: CleanupPolicy) -> float | None:
        """Return when a policy, as it is now, was first announced by any replica."""
        own = self._crew.journal.announced_at(policy.name, policy.fingerprint)
        others = self._leading.record().marks.get(_announced_mark(policy))
        return min((each for each in (own, others) if each is not None), default=None)

    def _in_trash(self, policy: DatasetPolicy) -> int:
        scanned = self._crew.scanner.last(policy.name)
        return sum(each.allocated_bytes for each in scanned.trash if each.state != "empty") if scanned else 0

    def _only_noted(self, policy: CleanupPolicy, run: CleanupRun, plan: CleanupPlan, end: str) -> CleanupRun:
        """Write down a plan of which nothing is done, and tell of it unless that was told the last time."""
        crew, address = self._crew, self._crew.postbox.address()
        run = crew.executor.note(run, plan, end)
        if end == "refused":
            messages = refusal_report(policy, run, plan, address)
        else:
            messages = dry_run_report(policy, run, plan, address) if end == "dry-run" else ()
        told = f"{end} {plan.refused.key if plan.refused else ''} " + " ".join(sorted(item.id for item in plan.items))
        mark = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if messages:
            crew.journal.say_once(_last_notice_key(policy.name, run.node), mark, messages)
        return run

    def _announce(self, policy: CleanupPolicy) -> None:
        """Announce a policy with what it would do everywhere now."""
        crew, now = self._crew, self._now()
        plans = [crew.gatherer.plan(policy, node) for node in crew.gatherer.nodes(policy)]
        known = [plan for plan in plans if plan.refused is None]
        if not known:
            return
        whole = msgspec.structs.replace(
            known[0],
            items=tuple(item for plan in known for item in plan.items),
            warnings=tuple(note for plan in known for note in plan.warnings),
            node=known[0].node if len(known) == 1 else None,
        )
        messages = announcement(policy, whole, crew.postbox.address(), now)
        if not messages:
            log.warning("%s will act, and there is nobody to announce that to: no receiver is configured", policy.name)
        crew.journal.announce(policy.name, policy.fingerprint, messages, now)
        with suppress(NotLeadingError):  # then it is announced again, by another replica
            self._leading.mark(_announced_mark(policy), now)

    def _tell_owners(self, policy: CleanupPolicy, plan: CleanupPlan) -> None:
        """Tell owners of what will be done to what is theirs. What nobody could be told of stays untouched."""
        if not isinstance(policy, (DatasetPolicy, GpuPolicy)):
            return
        untold = [item for item in plan.items if item.not_before is None]
        told, messages = notices(policy, untold, self._crew.postbox.address(), self._now())
        if len(told) < len(untold):
            log.warning(
                "%s: nobody can be told of %d items, so they are left alone; configure a receiver, or set notice: 0s",
                policy.name, len(untold) - len(told),
            )  # fmt: skip
        if told:
            self._crew.journal.tell(policy.name, told, messages, self._now())

    def _refused_look(self, policy: CleanupPolicy) -> CleanupPlan | None:
        """Have a look taken that the plan needs; return why there can be no plan, if that fails."""
        now = self._now()
        if isinstance(policy, DatasetPolicy):
            last = self._crew.scanner.last(policy.name)
            if last is not None and 0 <= now - last.scan.finished_at < SCAN_VALID_SECONDS:
                return None
            try:
                self._crew.scanner.scan(policy)
            except ScanError as error:
                where = {"root": policy.root, "node": policy.node}
                return refuse(PlanSubject(policy, now, policy.node), "scan-failed", **where, error=str(error))
        elif isinstance(policy, RegistryPolicy):
            try:
                self._tried[policy.name] = dry_run_items(policy, self._crew.harbors[policy.name], now)
            except HarborError as error:
                return refuse(PlanSubject(policy, now), "registry-failed", registry=policy.url, error=str(error))
        return None

    def _new(self, policy: str, kind: str, mode: str, trigger: str, node: str | None, by: str | None) -> CleanupRun:
        return CleanupRun(
            id=new_id("run"), policy=policy, kind=kind, mode=mode, trigger=trigger, node=node, by=by,
            started_at=self._now(), state=RunState.RUNNING,
        )  # fmt: skip


def _announced_mark(policy: CleanupPolicy) -> str:
    return f"announced {policy.name} {policy.fingerprint}"


def _deleted_bytes(entries: Iterable[JournalEntry]) -> int:
    """Return how many bytes these items have deleted: what went into a trash is still there."""
    done = (each for each in entries if each.state is ItemState.DONE and isinstance(each.item.act, DELETING_ACTIONS))
    return sum(each.freed_bytes or 0 for each in done)


def _last_notice_key(policy: str, node: str | None) -> str:
    return f"told {policy} {node or ''}"
