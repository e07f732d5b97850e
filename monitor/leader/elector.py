"""Leader election among replicas of the daemon: only the holder of a Kubernetes Lease acts, the others observe.

Each replica has its own state files. An action that must not be repeated is recorded on the Lease before it starts, in
an update that fails if another replica holds the Lease by then. Without a Lease there is one replica, and it always
acts.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from monitor.facts.base import Fact
from monitor.i18n import say
from monitor.kube.client import KubeApi
from monitor.leader.lease import LeaseClaim
from monitor.leader.lease_api import LeaseApi, LeaseError
from monitor.leader.lease_keeper import LeaseKeeper
from monitor.leader.ledger import ActionLedger, RecordedRun, decode_ledger, encode_ledger, with_mark, with_runs

log = logging.getLogger(__name__)
LEDGER_ANNOTATION, RELAYED_ANNOTATION = "gpuwarden.io/ran", "gpuwarden.io/told"
RESULTS_ANNOTATION = "gpuwarden.io/job-results"
MAX_RESULTS = 2000  # of 16 characters each
MIN_TERM = 1  # terms are counted from 1; a single replica stays in its first


class NotLeaderError(Exception):
    """Raised when this replica may not act. The message is in English; `said` translates it."""

    def __init__(self, lease: str, holder: str | None) -> None:
        self.lease = lease
        self.holder = holder
        super().__init__(self.said("en"))

    def said(self, lang: str) -> str:
        """Message that names the replica that acts, if known."""
        if self.holder is None:
            return say(lang, "lease.nobody", {"lease": self.lease})
        return say(lang, "lease.elsewhere", {"lease": self.lease, "holder": self.holder})


class LeaseState(Fact, frozen=True, kw_only=True):
    """Identity of this replica and whether it acts. Without a Lease it is the only one and always acts."""

    holds: bool
    identity: str | None = None
    holder: str | None = None
    lease: str | None = None
    trouble: str | None = None


class LeaderElector(Protocol):
    """Decides whether this replica may act. Methods that write raise NotLeaderError; the action must then not start."""

    @property
    def shared(self) -> bool:
        """Whether there may be other replicas."""
        ...

    def holds(self) -> bool:
        """Whether this replica may act now."""
        ...

    def term(self) -> int | None:
        """Number of the current term as leader; None while another replica leads."""
        ...

    def check(self) -> None:
        """Raise NotLeaderError unless this replica may act now."""
        ...

    def state(self) -> LeaseState: ...

    def record(self) -> ActionLedger:
        """Runs and marks that all replicas share."""
        ...

    def begin(self, policy: str, nodes: Sequence[str | None], ran: RecordedRun, mark: str | None = None) -> int:
        """Record that a policy starts on these nodes, and return the term in which it may run.

        The same update sets `mark`, if given, to the start of the run.
        """
        ...

    def end(self, policy: str, node: str | None, at: float, deleted: int) -> None:
        """Record the end of a run. If that fails, the next leader repeats the run."""
        ...

    def mark(self, name: str, at: float) -> None:
        """Record when something was last done."""
        ...

    def told(self) -> str | None:
        """State of the alerts relayed from Alertmanager, as the last leader recorded it."""
        ...

    def put_told(self, text: str) -> None:
        """Record the state of the alerts relayed from Alertmanager."""
        ...

    def results(self) -> frozenset[str]:
        """Ids of the latest job results that were sent."""
        ...

    def add_results(self, ids: Sequence[str]) -> None:
        """Record that these job results are sent."""
        ...


class SingleReplica:
    """LeaderElector of the only replica. It keeps its records in its own files and shares none."""

    shared = False

    def holds(self) -> bool:
        return True

    def term(self) -> int | None:
        return MIN_TERM

    def check(self) -> None: ...

    def state(self) -> LeaseState:
        return LeaseState(holds=True)

    def record(self) -> ActionLedger:
        return ActionLedger()

    def begin(self, policy: str, nodes: Sequence[str | None], ran: RecordedRun, mark: str | None = None) -> int:  # noqa: ARG002  # as in the protocol
        return MIN_TERM

    def end(self, policy: str, node: str | None, at: float, deleted: int) -> None: ...

    def mark(self, name: str, at: float) -> None: ...

    def told(self) -> str | None:
        return None

    def put_told(self, text: str) -> None: ...

    def results(self) -> frozenset[str]:
        return frozenset()

    def add_results(self, ids: Sequence[str]) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class LeaseElector:
    """LeaderElector of one replica among several, between start() and stop()."""

    shared = True

    def __init__(self, keeper: LeaseKeeper) -> None:
        self._keeper = keeper
        self.start = keeper.start
        self.stop = keeper.stop
        self.holds = keeper.holds
        self.term = keeper.term

    def check(self) -> None:
        if not self.holds():
            raise self._refusal()

    def state(self) -> LeaseState:
        keeper, holds = self._keeper, self.holds()
        return LeaseState(
            holds=holds,
            identity=keeper.identity,
            holder=keeper.identity if holds else self._other_holder(),
            lease=keeper.lease_name,
            trouble=keeper.error,
        )

    def record(self) -> ActionLedger:
        return decode_ledger(self._keeper.annotations.get(LEDGER_ANNOTATION))

    def begin(self, policy: str, nodes: Sequence[str | None], ran: RecordedRun, mark: str | None = None) -> int:
        def begun(before: ActionLedger) -> ActionLedger:
            ledger = with_runs(before, policy, nodes, ran)
            return ledger if mark is None else with_mark(ledger, mark, ran.at)

        return self._update_ledger(begun)

    def end(self, policy: str, node: str | None, at: float, deleted: int) -> None:
        def ended(before: ActionLedger) -> ActionLedger:
            run = before.ran(policy, node)
            if run is None:
                return before
            return with_runs(before, policy, (node,), replace(run, is_open=False, bytes=deleted, ended_at=at))

        try:
            self._update_ledger(ended)
        except NotLeaderError as error:
            log.warning("cannot record the end of a run of %s for other replicas: %s", policy, error)

    def mark(self, name: str, at: float) -> None:
        self._update_ledger(lambda before: with_mark(before, name, at))

    def told(self) -> str | None:
        return self._keeper.annotations.get(RELAYED_ANNOTATION)

    def put_told(self, text: str) -> None:
        self._write(RELAYED_ANNOTATION, lambda _: text)

    def results(self) -> frozenset[str]:
        return frozenset((self._keeper.annotations.get(RESULTS_ANNOTATION) or "").split())

    def add_results(self, ids: Sequence[str]) -> None:
        self._write(RESULTS_ANNOTATION, lambda text: " ".join([*(text or "").split(), *ids][-MAX_RESULTS:]))

    def _update_ledger(self, change: Callable[[ActionLedger], ActionLedger]) -> int:
        return self._write(LEDGER_ANNOTATION, lambda text: encode_ledger(change(decode_ledger(text))))

    def _write(self, name: str, change: Callable[[str | None], str]) -> int:
        try:
            return self._keeper.write(name, change)
        except LeaseError:
            raise self._refusal() from None

    def _other_holder(self) -> str | None:
        """Another replica that holds the Lease. If this replica was the last holder, the Lease may be free."""
        holder = self._keeper.holder
        return holder if holder != self._keeper.identity else None

    def _refusal(self) -> NotLeaderError:
        return NotLeaderError(self._keeper.lease_name, self._other_holder())


def elect_leader(api: KubeApi, namespace: str, name: str, duration: float) -> LeaseElector:
    """Elector of this replica through the Lease `namespace`/`name`."""
    claim = LeaseClaim(replica_identity(), duration)
    return LeaseElector(LeaseKeeper(LeaseApi(api, namespace, name, claim.renew_seconds), claim))


def replica_identity() -> str:
    """Unique name of this process: pod or host name, and a random suffix."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"
