"""Executes items through the agent of a node, the API server, or Harbor; each is re-checked immediately before.

An agent checks the state of its node itself. The image references of pods and templates, which only the cluster knows,
are read at that moment and sent along.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace as changed

from monitor.cleanup.execute.agent_client import ActionClient, AgentRefusesError, AgentSilentError, AgentTarget
from monitor.cleanup.execute.harbor import GcResult, Harbor, HarborError, RetentionResult
from monitor.cleanup.execute.run_plan import LEASE_LOST, STARTING, ItemOutcome, ShutdownError
from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry
from monitor.cleanup.model import Item, PodWrite, RegistryWrite
from monitor.cleanup.plan.references import References
from monitor.facts.actions import (
    ActionFact,
    ActionRequest,
    ActionState,
    AnyAction,
    KillProcess,
    PruneBuildCache,
    PurgeTrash,
    RemoveImage,
    RestoreUnit,
    ScanDatasets,
    TrashUnit,
)
from monitor.facts.datasets import TrashFact
from monitor.facts.image_names import reference_keys
from monitor.kube.client import ApiConnectionError, ApiError
from monitor.kube.pod_writes import PodWrites, WriteResult, WriteState

log = logging.getLogger(__name__)
REQUEST_VALID_SECONDS = 120.0  # an agent has to start within this time
HOUR = 3600.0
TIMEOUTS_SECONDS: dict[type, float] = {
    RemoveImage: 300.0,
    PruneBuildCache: 900.0,
    KillProcess: 300.0,
    TrashUnit: 900.0,
    RestoreUnit: 900.0,
    PurgeTrash: 24 * HOUR,
    ScanDatasets: 24 * HOUR,
}
MAX_ATTEMPTS, MAX_RETRY_SECONDS = 5, 60.0
NOT_LEADING = ItemOutcome(ItemState.LATER, LEASE_LOST)
_STATES = {
    ActionState.DONE: ItemState.DONE,
    ActionState.REFUSED: ItemState.REFUSED,
    ActionState.FAILED: ItemState.FAILED,
}
_WRITE_STATES = {
    WriteState.DONE: ItemState.DONE,
    WriteState.REFUSED: ItemState.REFUSED,
    WriteState.LATER: ItemState.LATER,
    WriteState.FAILED: ItemState.FAILED,
}


@dataclass(frozen=True)
class ExecutorDeps:
    """Clients and lookups of the executor.

    `target` is the agent of a node, None if unknown. `references` reads the image references on a node.
    `recheck` returns the protection that applies to an item now.
    """

    target: Callable[[str], AgentTarget | None]
    references: Callable[[str], References]
    recheck: Callable[[CleanupRun, Item], str | None]
    pods: PodWrites | None = None
    harbors: Mapping[str, Harbor] = field(default_factory=dict)  # by policy
    holds: Callable[[], bool] = lambda: True  # whether this replica leads


class RemoteItemExecutor:
    """Executes items for real."""

    def __init__(
        self,
        client: ActionClient,
        deps: ExecutorDeps,
        journal: CleanupJournal,
        stopping: threading.Event,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._deps = deps
        self._journal = journal
        self._stopping = stopping
        self._now = now

    def execute(self, run: CleanupRun, item: Item, request: str) -> ItemOutcome:
        """Execute an item; failures are outcomes. Raise ShutdownError."""
        try:
            protection = self._deps.recheck(run, item)
            if protection is not None:
                return ItemOutcome(ItemState.REFUSED, protection)
            act = item.act
            if not self._deps.holds():
                return NOT_LEADING
            if isinstance(act, PodWrite):
                return self._pod(item, act)
            if isinstance(act, RegistryWrite):
                return self._registry(run, act)
            return self._agent(run, item, act, request)
        except ShutdownError:
            raise
        except Exception as error:  # a failing item must not end the run
            log.exception("%s: %s", run.policy, item.name)
            return ItemOutcome(ItemState.FAILED, "failed", f"{type(error).__name__}: {error}")

    def recover(self, entry: JournalEntry) -> ItemOutcome:
        """Outcome of an item that was in progress."""
        act = entry.item.act
        try:
            if isinstance(act, PodWrite):
                return self._recover_pod(act)
            if isinstance(act, RegistryWrite):
                return self._recover_registry(act, entry)
            target = self._deps.target(entry.item.node or "")
            if target is None:
                return _lost("its agent is unknown")
            return self._await(target, entry.request or "", act)
        except ShutdownError:
            raise
        except Exception as error:  # the outcome stays unknown
            return _lost(f"{type(error).__name__}: {error}")

    # Agents

    def _agent(self, run: CleanupRun, item: Item, act: AnyAction, request: str) -> ItemOutcome:
        target = self._deps.target(item.node or "")
        if target is None:
            return ItemOutcome(ItemState.FAILED, "no-agent", f"the agent of {item.node} is unknown")
        if isinstance(act, RemoveImage):
            references = self._deps.references(item.node or "")
            if references.unknown:
                return ItemOutcome(ItemState.REFUSED, "unknown", f"the cluster cannot list {references.unknown[0]}")
            forms = reference_keys(act.image_id, *act.names)
            referrer = references.referrer(sorted(forms))
            if referrer is not None:
                return ItemOutcome(ItemState.REFUSED, "needed", referrer)
            act = changed(act, keep_names=names_to_keep(references, forms))
        return self._submit(target, run, act, request)

    def _submit(self, target: AgentTarget, run: CleanupRun, act: AnyAction, request: str) -> ItemOutcome:
        """Submit an action and await it. A busy agent did not accept it, so the same id is submitted again."""
        for _ in range(MAX_ATTEMPTS):
            now = self._now()
            if not self._deps.holds():  # reading the references may have taken long
                return NOT_LEADING
            action = ActionRequest(
                id=request,
                issued_at=now,
                expires_at=now + REQUEST_VALID_SECONDS,
                policy=run.policy,
                plan=run.id,
                action=act,
            )
            try:
                self._client.submit(target, action)
            except AgentRefusesError as refusal:
                if refusal.word != "too-many":
                    return ItemOutcome(ItemState.FAILED, refusal.word, str(refusal))
                if self._stopping.wait(min(refusal.retry_after or MAX_RETRY_SECONDS, MAX_RETRY_SECONDS)):
                    raise ShutdownError from None
                continue
            except AgentSilentError as error:  # it may have accepted the action: query it by its id
                log.warning("%s: %s", run.policy, error)
            return self._await(target, request, act)
        return ItemOutcome(ItemState.LATER, "too-many", "the agent is busy")

    def _await(self, target: AgentTarget, request: str, act: AnyAction) -> ItemOutcome:
        started = ActionFact(id=request, kind="", state=ActionState.RUNNING, started_at=self._now())
        try:
            action = self._client.finish(target, started, TIMEOUTS_SECONDS[type(act)])
        except (AgentSilentError, AgentRefusesError) as error:
            if self._stopping.is_set():
                raise ShutdownError from None
            return _lost(str(error))
        return outcome_of_action(action)

    # Pods

    def _pod(self, item: Item, act: PodWrite) -> ItemOutcome:
        if self._deps.pods is None:
            return ItemOutcome(ItemState.FAILED, "failed", "Kubernetes is not configured")
        if act.how == "evict":
            self._journal.record_eviction(item.id, self._now())
            return _outcome_of_write(self._deps.pods.evict(act.namespace, act.name, act.uid))
        return _outcome_of_write(self._deps.pods.delete(act.namespace, act.name, act.uid, force=act.how == "force"))

    def _recover_pod(self, act: PodWrite) -> ItemOutcome:
        if self._deps.pods is None:
            return _lost("Kubernetes is not configured")
        try:
            pod = self._deps.pods.look(act.namespace, act.name)
        except (ApiError, ApiConnectionError, msgspec.MsgspecError) as error:
            return _lost(str(error))
        if pod is None or pod.uid != act.uid:
            return ItemOutcome(ItemState.DONE, "gone", "it was gone after the restart of the daemon")
        if pod.deleting and act.how != "force":
            return ItemOutcome(ItemState.DONE, "deleted", "it was being deleted after the restart of the daemon")
        return _lost("the pod still exists")

    # Harbor

    def _registry(self, run: CleanupRun, act: RegistryWrite) -> ItemOutcome:
        harbor = self._deps.harbors.get(run.policy)
        if harbor is None:
            return ItemOutcome(ItemState.FAILED, "failed", "this registry is no longer configured")
        timeout = TIMEOUTS_SECONDS[PurgeTrash]
        try:
            if act.what == "gc":
                gc = harbor.run_gc(dry_run=act.dry_run, timeout=timeout)
                return ItemOutcome(ItemState.DONE, "collected", freed_bytes=gc.freed_bytes)
            retention = harbor.run_retention("", act.retention or 0, dry_run=act.dry_run, timeout=timeout)
            return ItemOutcome(ItemState.DONE, "retained", f"{retention.removed} of {retention.total} tags removed")
        except HarborError as error:
            if self._stopping.is_set():
                raise ShutdownError from None
            return ItemOutcome(ItemState.FAILED, "failed", str(error))

    def _recover_registry(self, act: RegistryWrite, entry: JournalEntry) -> ItemOutcome:
        harbor = next((harbor for harbor in self._deps.harbors.values() if harbor.url == act.registry), None)
        since = entry.intended_at or self._now()
        if harbor is None:
            return _lost("this registry is no longer configured")
        try:
            if act.what == "gc":
                return _outcome_of_harbor(harbor.gc_since(since))
            return _outcome_of_harbor(harbor.retention_since("", act.retention or 0, since))
        except HarborError as error:
            return _lost(str(error))


def names_to_keep(references: References, forms: frozenset[str]) -> tuple[str, ...]:
    """Names that the agent compares an image with: those in its repositories, and every digest and id.

    A digest or id identifies an image under any name.
    """
    digests = (name for name in references.names if name.startswith("sha256:"))
    return tuple(sorted({*references.same_repository(forms), *digests}))


def outcome_of_action(action: ActionFact) -> ItemOutcome:
    """Item outcome of a finished action of an agent."""
    state = ItemState.LATER if action.outcome == STARTING else _STATES[action.state]
    code = action.outcome or action.state.value
    return ItemOutcome(state, code, action.message, action.freed_bytes, _trash_id(action))


def _trash_id(action: ActionFact) -> str | None:
    raw = action.result.get("trash")
    if raw is None or action.kind != "trash-unit":
        return None
    try:
        return msgspec.json.decode(raw, type=TrashFact).id
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        log.error("cannot decode the trash entry of an agent: %s", error)
        return None


def _outcome_of_write(written: WriteResult) -> ItemOutcome:
    return ItemOutcome(_WRITE_STATES[written.state], written.word, written.message)


def _lost(message: str) -> ItemOutcome:
    """Unknown outcome. The item is not retried: the next plan starts from what is there."""
    return ItemOutcome(ItemState.FAILED, "lost", message)


def _outcome_of_harbor(result: GcResult | RetentionResult | None) -> ItemOutcome:
    if result is None:
        return _lost("Harbor has no record of it")
    state = ItemState.DONE if result.status == "Success" else ItemState.FAILED
    return ItemOutcome(state, "collected" if state is ItemState.DONE else "lost", f"status in Harbor: {result.status}")
