"""Announcements of policies before their first enforcement, and notices to owners before their items are touched."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec

from monitor.cleanup.execute.run_plan import OVER_QUOTA
from monitor.cleanup.inputs import Planner
from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.model import CleanupPlan, Item, Mode
from monitor.cleanup.notices import announcement, notices
from monitor.cleanup.policy import CleanupPolicy, DatasetPolicy, GpuPolicy, RegistryPolicy
from monitor.cleanup.relay import Relay
from monitor.cleanup.schedule import Permission, permission
from monitor.leader.elector import LeaderElector, NotLeaderError

log = logging.getLogger(__name__)
# Policy, item, owner and whether they may release it -> path of the page; raises ValueError.
LinkMaker = Callable[[str, str, str, bool], str]


class Announcer:
    """Decides whether a policy may act yet, and notifies those concerned before it does."""

    def __init__(
        self,
        journal: CleanupJournal,
        planner: Planner,
        relay: Relay,
        now: Callable[[], float],
        leading: LeaderElector,
        links: LinkMaker | None = None,
    ) -> None:
        self._journal = journal
        self._planner = planner
        self._relay = relay
        self._now = now
        self._leading = leading
        self._links = links

    def permission(self, policy: CleanupPolicy) -> Permission:
        return permission(policy, self._announced_at(policy), self._now())

    def announce_early(self, policy: CleanupPolicy) -> None:
        """Announce an enforced policy before it is first due.

        A policy whose plan requires a scan or a dry run is announced by its first run.
        """
        if isinstance(policy, (DatasetPolicy, RegistryPolicy)) or policy.mode is not Mode.ENFORCE:
            return
        if self.permission(policy) is Permission.ANNOUNCE:
            self.announce(policy)

    def announce(self, policy: CleanupPolicy) -> None:
        """Announce a policy with its current plan on all nodes."""
        now = self._now()
        plans = [self._planner.plan(policy, node) for node in self._planner.nodes(policy)]
        plans = [plan for plan in plans if plan.refused is None]
        if not plans:
            return
        combined = msgspec.structs.replace(
            plans[0],
            items=tuple(item for plan in plans for item in plan.items),
            warnings=tuple(warning for plan in plans for warning in plan.warnings),
            node=plans[0].node if len(plans) == 1 else None,
        )
        messages = announcement(policy, combined, self._relay.routing(), now)
        if not messages:
            log.warning("%s will be enforced without an announcement: no receiver is configured", policy.name)
        self._journal.announce(policy.name, policy.fingerprint, messages, now)
        with suppress(NotLeaderError):  # the new leader announces it again
            self._leading.mark(_announced_mark(policy), now)

    def notify_owners(self, policy: CleanupPolicy, plan: CleanupPlan) -> None:
        """Notify owners of the planned items. Items whose owner cannot be notified stay untouched."""
        if not isinstance(policy, (DatasetPolicy, GpuPolicy)):
            return
        pending = [item for item in plan.items if item.not_before is None]
        notified, messages = notices(policy, pending, self._relay.routing(), self._now(), partial(self._path, policy))
        if len(notified) < len(pending):
            log.warning(
                "%s: %d items are skipped because no receiver can be notified; configure a receiver or set notice: 0s",
                policy.name, len(pending) - len(notified),
            )  # fmt: skip
        if notified:
            self._journal.record_notices(policy.name, notified, messages, self._now())

    def _path(self, policy: CleanupPolicy, item: Item, may_release: bool) -> str | None:
        """Where the owner of an item can keep it, and perhaps release it; None if they cannot."""
        if self._links is None or item.owner is None or item.why.key == OVER_QUOTA:
            return None
        with suppress(ValueError):  # a name that is too long for a link
            return self._links(policy.name, item.id, item.owner, may_release)
        return None

    def _announced_at(self, policy: CleanupPolicy) -> float | None:
        """When any replica first announced a policy with its current fingerprint."""
        here = self._journal.announced_at(policy.name, policy.fingerprint)
        elsewhere = self._leading.record().marks.get(_announced_mark(policy))
        return min((at for at in (here, elsewhere) if at is not None), default=None)


def _announced_mark(policy: CleanupPolicy) -> str:
    return f"announced {policy.name} {policy.fingerprint}"
