"""Who acts, where several replicas of the daemon run: the holder of a Kubernetes Lease. All others only look.

Each replica has its own files. What must not be done twice is written on the Lease itself before it is done, in an
update that fails if the lease is not ours any more. Without a lease there is one replica, and it always acts.
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
from monitor.leader.lease import Claim
from monitor.leader.lease_api import LeaseApi, LeaseError
from monitor.leader.lease_keeper import LeaseKeeper
from monitor.leader.ledger import Ran, Record, read, with_mark, with_runs, written

log = logging.getLogger(__name__)
RAN, TOLD = "gpuwarden.io/ran", "gpuwarden.io/told"
ALONE = 1  # the term of who is alone: it never ends


class NotLeadingError(Exception):
    """Another replica acts, or nobody knows which: this one may not. In English; `said` has all languages."""

    def __init__(self, lease: str, holder: str | None) -> None:
        self.lease = lease
        self.holder = holder
        super().__init__(self.said("en"))

    def said(self, lang: str) -> str:
        """Return the sentence that says so, and who does act."""
        if self.holder is None:
            return say(lang, "lease.nobody", {"lease": self.lease})
        return say(lang, "lease.elsewhere", {"lease": self.lease, "holder": self.holder})


class LeaseState(Fact, frozen=True, kw_only=True):
    """Which replica this is and whether it acts. Without a lease there is no other one, so it does."""

    holds: bool
    identity: str | None = None
    holder: str | None = None
    lease: str | None = None
    trouble: str | None = None


class Leading(Protocol):
    """Who says whether this replica may act. What writes raises NotLeadingError; nothing may be done then."""

    @property
    def shared(self) -> bool:
        """Whether there may be other replicas."""
        ...

    def holds(self) -> bool:
        """Return whether this replica may act at this moment."""
        ...

    def term(self) -> int | None:
        """Return the number of our present time of acting; None while we may not."""
        ...

    def check(self) -> None:
        """Raise NotLeadingError unless this replica may act at this moment."""
        ...

    def state(self) -> LeaseState: ...

    def record(self) -> Record:
        """Return what all replicas know of runs and marks."""
        ...

    def begin(self, policy: str, nodes: Sequence[str | None], ran: Ran, mark: str | None = None) -> int:
        """Write down, before it begins, that a policy runs on these nodes; return the term in which it may.

        What is to be remembered under the name of a `mark` is written in the same moment.
        """
        ...

    def end(self, policy: str, node: str | None, at: float, deleted: int) -> None:
        """Write down that a run is over. If that fails it is begun anew by whoever acts next."""
        ...

    def mark(self, name: str, at: float) -> None:
        """Write down when something was last done."""
        ...

    def told(self) -> str | None:
        """Return what was last told of what an Alertmanager said."""
        ...

    def put_told(self, text: str) -> None:
        """Write down what was told of what an Alertmanager said."""
        ...


class Alone:
    """The only replica."""

    shared = False

    def holds(self) -> bool:
        return True

    def term(self) -> int | None:
        return ALONE

    def check(self) -> None:
        """It may always act."""

    def state(self) -> LeaseState:
        return LeaseState(holds=True)

    def record(self) -> Record:
        return Record()

    def begin(self, policy: str, nodes: Sequence[str | None], ran: Ran, mark: str | None = None) -> int:  # noqa: ARG002  # as the leader's
        return ALONE

    def end(self, policy: str, node: str | None, at: float, deleted: int) -> None:
        """Its own files know."""

    def mark(self, name: str, at: float) -> None:
        """Its own files know."""

    def told(self) -> str | None:
        return None

    def put_told(self, text: str) -> None:
        """Its own files know."""

    def start(self) -> None:
        """There is nobody to agree with."""

    def stop(self) -> None:
        """There is nothing to give back."""


class Led:
    """One of several replicas, between start() and stop()."""

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
        holder = keeper.identity if holds else self._other()
        return LeaseState(
            holds=holds, identity=keeper.identity, holder=holder, lease=keeper.place, trouble=keeper.trouble
        )

    def record(self) -> Record:
        return read(self._keeper.annotations.get(RAN))

    def begin(self, policy: str, nodes: Sequence[str | None], ran: Ran, mark: str | None = None) -> int:
        def begun(before: Record) -> Record:
            record = with_runs(before, policy, nodes, ran)
            return record if mark is None else with_mark(record, mark, ran.at)

        return self._change(begun)

    def end(self, policy: str, node: str | None, at: float, deleted: int) -> None:
        def ended(before: Record) -> Record:
            ran = before.ran(policy, node)
            if ran is None:
                return before
            over = replace(ran, is_open=False, bytes=deleted, ended_at=at)
            return with_runs(before, policy, (node,), over)

        try:
            self._change(ended)
        except NotLeadingError as error:
            log.warning("the end of a run of %s could not be told to other replicas: %s", policy, error)

    def mark(self, name: str, at: float) -> None:
        self._change(lambda before: with_mark(before, name, at))

    def told(self) -> str | None:
        return self._keeper.annotations.get(TOLD)

    def put_told(self, text: str) -> None:
        self._write(TOLD, lambda _: text)

    def _change(self, change: Callable[[Record], Record]) -> int:
        return self._write(RAN, lambda text: written(change(read(text))))

    def _write(self, name: str, change: Callable[[str | None], str]) -> int:
        try:
            return self._keeper.write(name, change)
        except LeaseError:
            raise self._refusal() from None

    def _other(self) -> str | None:
        """Return who else holds it. That we were the last to is not to say that anybody does."""
        holder = self._keeper.holder
        return holder if holder != self._keeper.identity else None

    def _refusal(self) -> NotLeadingError:
        return NotLeadingError(self._keeper.place, self._other())


def lead(api: KubeApi, namespace: str, name: str, duration: float) -> Led:
    """Given the way to the API server and a lease, return who says whether this replica may act."""
    claim = Claim(own_identity(), duration)
    return Led(LeaseKeeper(LeaseApi(api, namespace, name, claim.look_every), claim))


def own_identity() -> str:
    """Return a name that no other process has: the pod's or the machine's, and something random."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"
