"""Runs the rules over the live cluster, again and again, and remembers what they found across restarts.

A look is due every few seconds, and soon after a pod, a node or an event has changed. However large the cluster,
looking takes no more than a fifth of a core.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from monitor.cluster.live import LiveCluster
from monitor.cluster.services import ServiceProbes
from monitor.detect.all import RULES
from monitor.detect.base import Limits, Rule, Situation
from monitor.detect.engine import History, detect
from monitor.facts.findings import Finding
from monitor.questions import world_of

log = logging.getLogger(__name__)
FILE = "findings.json"
NOTICE = 0.25  # how often it is looked whether something has changed
QUIET = 4.0  # a look is followed by at least so many times its own length without one ...
BRIEF = 1.0  # ... and by at least this
SAVE_EVERY = 15.0
FIRST_LOOK = 15.0  # the longest that the first look waits for Kubernetes, the agents and the probes


@dataclass(frozen=True)
class WatchSettings:
    """What is looked for, how often, and where it is remembered."""

    state: str
    resource: str = "nvidia.com/gpu"
    limits: Mapping[str, Limits[Any]] = field(default_factory=dict)
    rules: Sequence[Rule] = RULES
    interval: float = 5.0
    first_look: float = FIRST_LOOK


class FindingsWatch:
    """Looks between start() and stop(). `findings` are those of the last look; None before the first."""

    def __init__(
        self,
        settings: WatchSettings,
        cluster: LiveCluster,
        probes: ServiceProbes,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._probes = probes
        self._now = now
        self._memory = HistoryFile(settings.state)
        self._history = History()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, name="findings", daemon=True)
        self.findings: tuple[Finding, ...] | None = None

    def start(self) -> None:
        self._history = self._memory.load()
        self._probes.start()
        self._thread.start()

    def stop(self) -> None:
        """End, and save what is remembered. A look that is under way is not waited for long."""
        self._stopping.set()
        self._probes.stop()
        self._thread.join(1.0)

    def look(self) -> tuple[Finding, ...]:
        """Look once, and return what is found."""
        situation = Situation(
            world=world_of(self._cluster, self._settings.resource),
            now=self._now(),
            services=self._probes.facts(),
        )
        found = detect(self._settings.rules, self._settings.limits, situation, self._history)
        self._tell(found.findings)
        self._history, self.findings = found.history, found.findings
        return found.findings

    def _keep_looking(self) -> None:
        self._wait_for_facts()
        save_at = 0.0
        while not self._stopping.is_set():
            began, seen, before = time.monotonic(), self._versions(), self.findings
            try:
                self.look()
            except Exception:  # whatever one odd fact provokes, the next look may succeed
                log.exception("looking for findings")
            took = time.monotonic() - began
            if time.monotonic() >= save_at or _keys(self.findings) != _keys(before):
                self._memory.save(self._history)
                save_at = time.monotonic() + SAVE_EVERY
            self._rest(began + took + max(BRIEF, QUIET * took), began + self._settings.interval, seen)
        if self.findings is not None:
            self._memory.save(self._history)

    def _wait_for_facts(self) -> None:
        """Return when everything was asked once: what was found before a restart is not over because nobody knows."""
        deadline = time.monotonic() + self._settings.first_look
        while not self._asked_all() and time.monotonic() < deadline and not self._stopping.wait(0.05):
            pass
        self._probes.wait_first_round(0.0 if self._stopping.is_set() else deadline - time.monotonic())
        self._cluster.refresh()

    def _asked_all(self) -> bool:
        kube, poller = self._cluster.kube, self._cluster.poller
        if kube is not None and not kube.wait_settled(0.0):
            return False
        poller.update_targets()
        return all(fact.received_at or fact.failures for fact in poller.facts())

    def _rest(self, earliest: float, due: float, seen: tuple[int, ...]) -> None:
        """Return at `due`, or as soon after `earliest` as something has changed, or when it is time to stop."""
        due = max(due, earliest)
        while (left := due - time.monotonic()) > 0 and not self._stopping.wait(min(left, NOTICE)):
            if time.monotonic() >= earliest and self._versions() != seen:
                return

    def _versions(self) -> tuple[int, ...]:
        """Return what changes whenever a pod, a node or an event does."""
        kube = self._cluster.kube
        return (kube.pods.version, kube.nodes.version, kube.events.version) if kube else ()

    def _tell(self, findings: tuple[Finding, ...]) -> None:
        """Log what is new and what is over."""
        before = {finding.key: finding for finding in self._history.findings}
        now = {finding.key: finding for finding in findings}
        for key in now.keys() - before.keys():
            log.info("found %s: %s", key, now[key].cause)
        for key in before.keys() - now.keys():
            log.info("over %s: %s", key, before[key].cause)


def _keys(findings: tuple[Finding, ...] | None) -> set[str]:
    return {finding.key for finding in findings or ()}


class HistoryFile:
    """What the rules remember, in a file that is always whole."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = os.path.join(directory, FILE)
        self._complained = False

    def load(self) -> History:
        """Return what was saved; nothing if there is nothing, or it cannot be understood."""
        try:
            with open(self._path, "rb") as file:
                return msgspec.json.decode(file.read(), type=History)
        except FileNotFoundError:
            return History()
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            log.warning("%s cannot be read, what was found before is forgotten: %s", self._path, error)
            return History()

    def save(self, history: History) -> None:
        """Replace the file as a whole. That it cannot be written is said once, and is no reason to stop."""
        temporary = f"{self._path}.new"
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(msgspec.json.encode(history))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)
            self._complained = False
        except OSError as error:
            if not self._complained:
                log.warning("%s cannot be written, a restart will forget what was found: %s", self._path, error)
            self._complained = True
