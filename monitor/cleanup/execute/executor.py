"""Who does the items of a plan: the agent of a node, the API server, a Harbor. Each item is checked anew right before.

An agent checks everything on its node itself. What only the cluster knows, which images its pods and templates name, is
read at that moment and sent along.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace as changed

from monitor.cleanup.execute.agent_client import ActionClient, AgentRefusesError, AgentSilentError
from monitor.cleanup.execute.harbor import Harbor, HarborError
from monitor.cleanup.execute.run_plan import LEASE_LOST, STARTING, ItemOutcome, ShutdownError
from monitor.cleanup.journal import CleanupJournal, CleanupRun, ItemState, JournalEntry
from monitor.cleanup.model import Item, PodWrite, RegistryWrite
from monitor.cleanup.plan.references import References, name_forms
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
from monitor.kube.client import ApiError, LostError
from monitor.kube.pod_writes import PodWrites, WriteState, Written

log = logging.getLogger(__name__)
REQUEST_VALID_SECONDS = 120.0  # seconds in which an agent has to begin
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
    """Whom there is to ask. `needs` reads what the cluster needs on a node; `recheck` says whether an item still holds.

    `target` gives host:port of a node's agent; None if it has none that is known.
    """

    target: Callable[[str], str | None]
    needs: Callable[[str], References]
    recheck: Callable[[CleanupRun, Item], str | None]
    pods: PodWrites | None = None
    harbors: Mapping[str, Harbor] = field(default_factory=dict)  # by policy
    holds: Callable[[], bool] = lambda: True  # whether this replica may still act


class RemoteItemExecutor:
    """Does things for real."""

    def __init__(
        self,
        client: ActionClient,
        reach: ExecutorDeps,
        journal: CleanupJournal,
        stopping: threading.Event,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._reach = reach
        self._journal = journal
        self._stopping = stopping
        self._now = now

    def do(self, run: CleanupRun, item: Item, request: str) -> ItemOutcome:
        """Do an item, whatever comes of it."""
        try:
            against = self._reach.recheck(run, item)
            if against is not None:
                return ItemOutcome(ItemState.REFUSED, against)
            act = item.act
            if not self._reach.holds():
                return NOT_LEADING
            if isinstance(act, PodWrite):
                return self._pod(item, act)
            if isinstance(act, RegistryWrite):
                return self._registry(run, act)
            return self._agent(run, item, act, request)
        except ShutdownError:
            raise
        except Exception as error:  # whatever one item provokes, it is what became of it
            log.exception("%s: %s", run.policy, item.name)
            return ItemOutcome(ItemState.FAILED, "failed", f"{type(error).__name__}: {error}")

    def ask(self, entry: JournalEntry) -> ItemOutcome:
        """Return what became of an item that was under way."""
        act = entry.item.act
        try:
            if isinstance(act, PodWrite):
                return self._what_became_of_pod(act)
            if isinstance(act, RegistryWrite):
                return self._what_harbor_did(act, entry)
            target = self._reach.target(entry.item.node or "")
            if target is None:
                return _lost("its agent is not known any more")
            return self._awaited(target, entry.request or "", act)
        except ShutdownError:
            raise
        except Exception as error:  # then nobody knows
            return _lost(f"{type(error).__name__}: {error}")

    # Agents

    def _agent(self, run: CleanupRun, item: Item, act: AnyAction, request: str) -> ItemOutcome:
        target = self._reach.target(item.node or "")
        if target is None:
            return ItemOutcome(ItemState.FAILED, "no-agent", f"no agent of {item.node} is known")
        if isinstance(act, RemoveImage):
            needs = self._reach.needs(item.node or "")
            if needs.unknown:
                return ItemOutcome(
                    ItemState.REFUSED, "unknown", f"the cluster could not be asked for {needs.unknown[0]}"
                )
            known = frozenset[str]().union(*(name_forms(name) for name in (act.image_id, *act.names)))
            who = needs.needed_by(sorted(known))
            if who is not None:
                return ItemOutcome(ItemState.REFUSED, "needed", who)
            act = changed(act, keep_names=names_to_keep(needs, known))
        return self._had_done(target, run, act, request)

    def _had_done(self, target: str, run: CleanupRun, act: AnyAction, request: str) -> ItemOutcome:
        """Have an agent act. One that is too busy is asked again, under the same id: it did not take it."""
        for _ in range(MAX_ATTEMPTS):
            now = self._now()
            if not self._reach.holds():  # what is needed was read meanwhile, and that may have taken its time
                return NOT_LEADING
            asked = ActionRequest(
                id=request,
                issued_at=now,
                expires_at=now + REQUEST_VALID_SECONDS,
                policy=run.policy,
                plan=run.id,
                action=act,
            )
            try:
                self._client.submit(target, asked)
            except AgentRefusesError as refusal:
                if refusal.word != "too-many":
                    return ItemOutcome(ItemState.FAILED, refusal.word, str(refusal))
                if self._stopping.wait(min(refusal.retry_after or MAX_RETRY_SECONDS, MAX_RETRY_SECONDS)):
                    raise ShutdownError from None
                continue
            except AgentSilentError as error:  # it may have heard: it is asked by the id what became of it
                log.warning("%s: %s", run.policy, error)
            return self._awaited(target, request, act)
        return ItemOutcome(ItemState.LATER, "too-many", "the agent takes no more at the moment")

    def _awaited(self, target: str, request: str, act: AnyAction) -> ItemOutcome:
        begun = ActionFact(id=request, kind="", state=ActionState.RUNNING, started_at=self._now())
        try:
            fact = self._client.finish(target, begun, TIMEOUTS_SECONDS[type(act)])
        except (AgentSilentError, AgentRefusesError) as error:
            if self._stopping.is_set():
                raise ShutdownError from None
            return _lost(str(error))
        return outcome_of_action(fact)

    # Pods

    def _pod(self, item: Item, act: PodWrite) -> ItemOutcome:
        if self._reach.pods is None:
            return ItemOutcome(ItemState.FAILED, "failed", "there is no Kubernetes")
        if act.how == "evict":
            self._journal.note_tried(item.id, self._now())
            return _outcome_of_write(self._reach.pods.evict(act.namespace, act.name, act.uid))
        return _outcome_of_write(self._reach.pods.delete(act.namespace, act.name, act.uid, force=act.how == "force"))

    def _what_became_of_pod(self, act: PodWrite) -> ItemOutcome:
        if self._reach.pods is None:
            return _lost("there is no Kubernetes")
        try:
            pod = self._reach.pods.look(act.namespace, act.name)
        except (ApiError, LostError, msgspec.MsgspecError) as error:
            return _lost(str(error))
        if pod is None or pod.uid != act.uid:
            return ItemOutcome(ItemState.DONE, "gone", "it was gone when the daemon came back")
        if pod.deleting and act.how != "force":
            return ItemOutcome(ItemState.DONE, "deleted", "it was being deleted when the daemon came back")
        return _lost("the pod is still there")

    # Harbor

    def _registry(self, run: CleanupRun, act: RegistryWrite) -> ItemOutcome:
        harbor = self._reach.harbors.get(run.policy)
        if harbor is None:
            return ItemOutcome(ItemState.FAILED, "failed", "this registry is not configured any more")
        try:
            if act.what == "gc":
                collected = harbor.collection(dry_run=act.dry_run, limit=TIMEOUTS_SECONDS[PurgeTrash])
                return ItemOutcome(ItemState.DONE, "collected", freed_bytes=collected.freed_bytes)
            kept = harbor.retention("", act.retention or 0, dry_run=act.dry_run, limit=TIMEOUTS_SECONDS[PurgeTrash])
            return ItemOutcome(ItemState.DONE, "retained", f"{kept.removed} of {kept.total} tags removed")
        except HarborError as error:
            if self._stopping.is_set():
                raise ShutdownError from None
            return ItemOutcome(ItemState.FAILED, "failed", str(error))

    def _what_harbor_did(self, act: RegistryWrite, entry: JournalEntry) -> ItemOutcome:
        harbor = next((each for each in self._reach.harbors.values() if each.url == act.registry), None)
        since = entry.intended_at or self._now()
        if harbor is None:
            return _lost("this registry is not configured any more")
        try:
            if act.what == "gc":
                collected = harbor.collection_since(since)
                return _lost("Harbor knows of none") if collected is None else _outcome_of_harbor(collected.status)
            kept = harbor.retention_since("", act.retention or 0, since)
            return _lost("Harbor knows of none") if kept is None else _outcome_of_harbor(kept.status)
        except HarborError as error:
            return _lost(str(error))


def names_to_keep(needs: References, known: frozenset[str]) -> tuple[str, ...]:
    """Given what is needed and the forms of an image's names, return what its agent has to compare with.

    That is the names of the same repositories, and every digest and id: by these an image is known under any name.
    """
    digests = (name for name in needs.names if name.startswith("sha256:"))
    return tuple(sorted({*needs.akin(known), *digests}))


def outcome_of_action(fact: ActionFact) -> ItemOutcome:
    """Given what an agent says of an action that is over, return what became of the item."""
    state = ItemState.LATER if fact.outcome == STARTING else _STATES[fact.state]
    return ItemOutcome(state, fact.outcome or fact.state.value, fact.message, fact.freed_bytes, _trash_id(fact))


def _trash_id(fact: ActionFact) -> str | None:
    raw = fact.result.get("trash")
    if raw is None or fact.kind != "trash-unit":
        return None
    try:
        return msgspec.json.decode(raw, type=TrashFact).id
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        log.error("an agent says something odd of its trash: %s", error)
        return None


def _outcome_of_write(written: Written) -> ItemOutcome:
    return ItemOutcome(_WRITE_STATES[written.state], written.word, written.message)


def _lost(message: str) -> ItemOutcome:
    """Return that nobody knows. It is not tried again: the next plan sees what is there."""
    return ItemOutcome(ItemState.FAILED, "lost", message)


def _outcome_of_harbor(status: str) -> ItemOutcome:
    state = ItemState.DONE if status == "Success" else ItemState.FAILED
    return ItemOutcome(state, "collected" if state is ItemState.DONE else "lost", f"it is {status} in Harbor")
