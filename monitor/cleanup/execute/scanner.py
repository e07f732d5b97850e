"""Has agents look at roots of datasets: the one that will move them, and every other that mounts them, for its users.

A scan takes minutes or hours. How far it is can be asked, and it can be stopped. The last one of each policy is kept.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from monitor.base.threads import map_parallel
from monitor.cleanup.execute.agent_client import ActionClient, AgentRefusesError, AgentSilentError
from monitor.cleanup.execute.executor import REQUEST_VALID_SECONDS, TIMEOUTS_SECONDS
from monitor.cleanup.execute.references_reader import VolumeList
from monitor.cleanup.journal import new_id
from monitor.cleanup.plan.dataset_protection import DatasetUses
from monitor.cleanup.policy import DatasetPolicy
from monitor.facts.actions import ActionFact, ActionRequest, ActionState, ScanDatasets
from monitor.facts.base import Fact
from monitor.facts.datasets import ScanFact, TrashFact

log = logging.getLogger(__name__)
MAX_PARALLEL_SCANS = 8  # nodes that look at the same time


class ScanError(Exception):
    """A root could not be looked at; the message says why."""


class ScanProgress(Fact, frozen=True, kw_only=True):
    """How far a scan is. `error` says why there is no result."""

    policy: str
    root: str
    node: str
    started_at: float
    finished_at: float | None = None
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class RootScan:
    """What was seen of a root: its units, its trash, and who uses what of it, here and elsewhere."""

    scan: ScanFact
    trash: tuple[TrashFact, ...] = ()
    uses: DatasetUses = field(default_factory=DatasetUses)


@dataclass(frozen=True)
class ScannerDeps:
    """Whom to ask. `mounting` gives the other nodes that have a root, with where, and those that do not tell."""

    target: Callable[[str], str | None]
    mounting: Callable[[DatasetPolicy], tuple[dict[str, str], tuple[str, ...]]]
    volumes: Callable[[], VolumeList]


class Scanner:
    """Scans, one at a time for each policy."""

    def __init__(
        self,
        client: ActionClient,
        around: ScannerDeps,
        last: dict[str, RootScan],  # what was last seen is kept here, by policy
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._around = around
        self._now = now
        self._lock = threading.Lock()
        self._last = last
        self._progress: dict[str, ScanProgress] = {}
        self._stops: dict[str, threading.Event] = {}

    def last(self, policy: str) -> RootScan | None:
        """Return what was last seen of a policy's root."""
        return self._last.get(policy)

    def progress(self, policy: str) -> ScanProgress | None:
        """Return how far the scan of a policy is, or was in the end."""
        return self._progress.get(policy)

    def stop(self, policy: str) -> bool:
        """Have the scan of a policy end early. Return whether there is one."""
        stop = self._stops.get(policy)
        if stop is not None:
            stop.set()
        return stop is not None

    def scan(self, policy: DatasetPolicy) -> RootScan:
        """Look at a policy's root, and return what is there. Raise ScanError, also if a scan is under way already."""
        with self._lock:
            if policy.name in self._stops:
                raise ScanError("it is being scanned already")
            self._stops[policy.name] = threading.Event()
            begun = ScanProgress(policy=policy.name, root=policy.root, node=policy.node, started_at=self._now())
            self._progress[policy.name] = begun
        try:
            found = self._scan(policy, self._stops[policy.name])
        except ScanError as error:
            self._note(policy.name, error=str(error), finished_at=self._now())
            raise
        else:
            self._last[policy.name] = found
            self._note(policy.name, finished_at=self._now())
            return found
        finally:
            with self._lock:
                del self._stops[policy.name]

    def _scan(self, policy: DatasetPolicy, stop: threading.Event) -> RootScan:
        fact = self._look(policy, policy.node, policy.root, stop, report=True)
        scan, trash = _result(fact)
        if scan.stopped:
            raise ScanError("it was stopped")
        elsewhere, unseen = self._elsewhere(policy, stop)
        volumes = self._around.volumes()
        uses = DatasetUses(volumes=volumes.uses, elsewhere=elsewhere, unseen=unseen, unknown=volumes.unknown)
        return RootScan(scan, trash, uses)

    def _elsewhere(self, policy: DatasetPolicy, stop: threading.Event) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return on which other node a unit is in use, by its path, and which nodes do not tell."""
        nodes, unseen = self._around.mounting(policy)
        used: dict[str, str] = {}
        silent = list(unseen)

        def look(node: str) -> ScanFact | None:
            try:
                return _result(self._look(policy, node, nodes[node], stop))[0]
            except ScanError as error:
                log.warning("%s: who uses %s on %s is not known: %s", policy.name, policy.root, node, error)
                return None

        for node, scan in zip(nodes, map_parallel(look, list(nodes), MAX_PARALLEL_SCANS, "cleanup-scan"), strict=True):
            if scan is None or scan.stopped:
                silent.append(node)
                continue
            used |= {unit.path: node for unit in scan.units if unit.in_use_by is None or unit.in_use_by}
        return used, tuple(sorted(silent))

    def _look(
        self, policy: DatasetPolicy, node: str, root: str, stop: threading.Event, *, report: bool = False
    ) -> ActionFact:
        target, now, own = self._around.target(node), self._now(), new_id("scan")
        if target is None:
            raise ScanError(f"no agent of {node} is known")
        action = ScanDatasets(
            root=root, pattern=policy.pattern, files=policy.files, entries_per_second=policy.entries_per_second
        )
        request = ActionRequest(
            id=own, issued_at=now, expires_at=now + REQUEST_VALID_SECONDS, policy=policy.name, plan="", action=action
        )

        def look(fact: ActionFact) -> None:
            if report:
                self._note(policy.name, counts=fact.progress)
            if stop.is_set() and not told:
                told.append(True)
                self._client.stop(target, own)

        told: list[bool] = []

        try:
            fact = self._client.finish(
                target, self._client.submit(target, request), TIMEOUTS_SECONDS[ScanDatasets], look
            )
        except (AgentSilentError, AgentRefusesError) as error:
            raise ScanError(str(error)) from None
        if fact.state is not ActionState.DONE:
            raise ScanError(fact.message or fact.outcome or fact.state)
        return fact

    def _note(self, policy: str, **more: object) -> None:
        self._progress[policy] = msgspec.structs.replace(self._progress[policy], **more)


def _result(fact: ActionFact) -> tuple[ScanFact, tuple[TrashFact, ...]]:
    """Given a scan that is over, return what was seen. Raise ScanError."""
    try:
        scan = msgspec.json.decode(fact.result["scan"], type=ScanFact)
        trash = msgspec.json.decode(fact.result.get("trash", b"[]"), type=tuple[TrashFact, ...])
    except KeyError:
        raise ScanError("the agent does not remember the result any more") from None
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ScanError(f"the agent says something odd: {error}") from None
    return scan, trash
