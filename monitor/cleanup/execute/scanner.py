"""Scans of dataset roots by agents: of the root itself, and on every other node that mounts it for open files there.

A scan takes minutes or hours, reports progress and can be stopped. The last scan of each policy is kept.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from monitor.base.threads import map_parallel
from monitor.cleanup.execute.agent_client import ActionClient, AgentRefusesError, AgentSilentError, AgentTarget
from monitor.cleanup.execute.executor import REQUEST_VALID_SECONDS, TIMEOUTS_SECONDS
from monitor.cleanup.execute.references_reader import VolumeList
from monitor.cleanup.journal import new_id
from monitor.cleanup.plan.dataset_protection import DatasetUses
from monitor.cleanup.policy import DatasetPolicy
from monitor.facts.actions import ActionFact, ActionRequest, ActionState, ScanDatasets
from monitor.facts.base import Fact
from monitor.facts.datasets import ScanFact, TrashFact

log = logging.getLogger(__name__)
MAX_PARALLEL_SCANS = 8


class ScanError(Exception):
    """A root could not be scanned."""


class ScanProgress(Fact, frozen=True, kw_only=True):
    """Progress of a scan. `error` says why it failed."""

    policy: str
    root: str
    node: str
    started_at: float
    finished_at: float | None = None
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class RootScan:
    """Units and trash of a root, and its uses on all nodes."""

    scan: ScanFact
    trash: tuple[TrashFact, ...] = ()
    uses: DatasetUses = field(default_factory=DatasetUses)


@dataclass(frozen=True)
class ScannerDeps:
    """Lookups: the agent of a node, other mounts of a root (see `inputs.other_mounts`), and volumes."""

    target: Callable[[str], AgentTarget | None]
    other_mounts: Callable[[DatasetPolicy], tuple[dict[str, str], tuple[str, ...]]]
    volumes: Callable[[], VolumeList]


class Scanner:
    """Runs scans, one at a time per policy."""

    def __init__(
        self,
        client: ActionClient,
        deps: ScannerDeps,
        last: dict[str, RootScan],  # by policy; updated by each scan
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._deps = deps
        self._now = now
        self._lock = threading.Lock()
        self._last = last
        self._progress: dict[str, ScanProgress] = {}
        self._stops: dict[str, threading.Event] = {}

    def last(self, policy: str) -> RootScan | None:
        """The last scan of a policy."""
        return self._last.get(policy)

    def progress(self, policy: str) -> ScanProgress | None:
        """Progress of the current or last scan of a policy."""
        return self._progress.get(policy)

    def stop(self, policy: str) -> bool:
        """Stop the scan of a policy. Return whether one was running."""
        stop = self._stops.get(policy)
        if stop is not None:
            stop.set()
        return stop is not None

    def scan(self, policy: DatasetPolicy) -> RootScan:
        """Scan a policy's root. Raise ScanError, also if a scan is in progress."""
        with self._lock:
            if policy.name in self._stops:
                raise ScanError("a scan is already in progress")
            self._stops[policy.name] = threading.Event()
            started = ScanProgress(policy=policy.name, root=policy.root, node=policy.node, started_at=self._now())
            self._progress[policy.name] = started
        try:
            scan = self._scan(policy, self._stops[policy.name])
        except ScanError as error:
            self._update(policy.name, error=str(error), finished_at=self._now())
            raise
        else:
            self._last[policy.name] = scan
            self._update(policy.name, finished_at=self._now())
            return scan
        finally:
            with self._lock:
                del self._stops[policy.name]

    def _scan(self, policy: DatasetPolicy, stop: threading.Event) -> RootScan:
        action = self._scan_node(policy, policy.node, policy.root, stop, report=True)
        scan, trash = _result(action)
        if scan.stopped:
            raise ScanError("the scan was stopped")
        elsewhere, unseen = self._uses_elsewhere(policy, stop)
        volumes = self._deps.volumes()
        uses = DatasetUses(volumes=volumes.uses, elsewhere=elsewhere, unseen=unseen, unknown=volumes.unknown)
        return RootScan(scan, trash, uses)

    def _uses_elsewhere(self, policy: DatasetPolicy, stop: threading.Event) -> tuple[dict[str, str], tuple[str, ...]]:
        """Other nodes that use a unit, by the unit's path, and the nodes that could not be scanned."""
        mounts, unseen = self._deps.other_mounts(policy)
        used: dict[str, str] = {}
        unscanned = list(unseen)

        def scan_mount(node: str) -> ScanFact | None:
            try:
                return _result(self._scan_node(policy, node, mounts[node], stop))[0]
            except ScanError as error:
                log.warning("%s: the uses of %s on %s are unknown: %s", policy.name, policy.root, node, error)
                return None

        scans = map_parallel(scan_mount, list(mounts), MAX_PARALLEL_SCANS, "cleanup-scan")
        for node, scan in zip(mounts, scans, strict=True):
            if scan is None or scan.stopped:
                unscanned.append(node)
                continue
            used |= {unit.path: node for unit in scan.units if unit.in_use_by is None or unit.in_use_by}
        return used, tuple(sorted(unscanned))

    def _scan_node(
        self, policy: DatasetPolicy, node: str, root: str, stop: threading.Event, *, report: bool = False
    ) -> ActionFact:
        target, now, scan_id = self._deps.target(node), self._now(), new_id("scan")
        if target is None:
            raise ScanError(f"the agent of {node} is unknown")
        action = ScanDatasets(
            root=root, pattern=policy.pattern, files=policy.files, entries_per_second=policy.entries_per_second
        )
        request = ActionRequest(
            id=scan_id,
            issued_at=now,
            expires_at=now + REQUEST_VALID_SECONDS,
            policy=policy.name,
            plan="",
            action=action,
        )
        stop_sent = False

        def on_progress(action: ActionFact) -> None:
            nonlocal stop_sent
            if report:
                self._update(policy.name, counts=action.progress)
            if stop.is_set() and not stop_sent:
                stop_sent = True
                self._client.stop(target, scan_id)

        try:
            started = self._client.submit(target, request)
            finished = self._client.finish(target, started, TIMEOUTS_SECONDS[ScanDatasets], on_progress)
        except (AgentSilentError, AgentRefusesError) as error:
            raise ScanError(str(error)) from None
        if finished.state is not ActionState.DONE:
            raise ScanError(finished.message or finished.outcome or finished.state)
        return finished

    def _update(self, policy: str, **changes: object) -> None:
        self._progress[policy] = msgspec.structs.replace(self._progress[policy], **changes)


def _result(action: ActionFact) -> tuple[ScanFact, tuple[TrashFact, ...]]:
    """Result of a finished scan. Raise ScanError."""
    try:
        scan = msgspec.json.decode(action.result["scan"], type=ScanFact)
        trash = msgspec.json.decode(action.result.get("trash", b"[]"), type=tuple[TrashFact, ...])
    except KeyError:
        raise ScanError("the agent has dropped the result") from None
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ScanError(f"cannot decode the agent's result: {error}") from None
    return scan, trash
