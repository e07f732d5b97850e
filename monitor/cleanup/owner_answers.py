"""Answers of owners to notices about cleanup: what a link is about, and keeping it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from monitor.access.owner_links import LinkSigner, OwnerLink
from monitor.base.text import clean, shorten
from monitor.cleanup.inputs import Planner
from monitor.cleanup.keep_store import KeepStore
from monitor.cleanup.model import Item
from monitor.cleanup.plan.keeps import Keep
from monitor.cleanup.policy import CleanupPolicy, DatasetPolicy, GpuPolicy
from monitor.leader.elector import LeaderElector

PATH = "keep"
LINK_VALID_SECONDS = 7 * 86400.0
MAX_REASON_CHARS = 200


class AlreadyAnsweredError(Exception):
    """A link allows one answer."""


class NotDueError(Exception):
    """The item is gone, in use again, or no longer part of the policy."""


@dataclass(frozen=True)
class OwnerQuestion:
    """What an owner is asked. `item` is None if it is not due; `keep` is the present one; a link works once."""

    link: OwnerLink
    item: Item | None
    keep: Keep | None
    answered: bool

    @property
    def name(self) -> str:
        known = self.item or self.keep
        return known.name if known is not None else self.link.item


class OwnerAnswers:
    """Asks owners about the items of their notices, and records what they keep. Thread-safe.

    Keeping needs no account, so it is all that a link permits: it may have been posted to a group.
    """

    def __init__(
        self,
        signer: LinkSigner,
        keeps: KeepStore,
        planner: Planner,
        policies: Mapping[str, CleanupPolicy],
        max_keep: float,
        leading: LeaderElector,
        now: Callable[[], float],
    ) -> None:
        self._signer = signer
        self._keeps = keeps
        self._planner = planner
        self._policies = policies
        self.max_keep_seconds = max_keep
        self._leading = leading
        self._now = now

    def path(self, policy: str, item: str, owner: str) -> str:
        """Path of the page about an item. Raise ValueError if its name is too long."""
        return f"{PATH}/{self._signer.sign(policy, item, owner, self._now() + LINK_VALID_SECONDS)}"

    def question(self, text: str) -> OwnerQuestion:
        """What a link asks. Raise LinkInvalidError or LinkExpiredError."""
        now = self._now()
        link = self._signer.check(text, now)
        keep = self._keeps.all().get(link.item)
        if keep is not None and now >= keep.until:
            keep = None
        return OwnerQuestion(link, self._due(link), keep, self._keeps.is_answered(link.id))

    def keep(self, text: str, seconds: float, reason: str) -> Keep:
        """Keep the item of a link. Raise the errors of `question`, AlreadyAnsweredError, NotDueError or ValueError."""
        self._leading.check()
        question = self.question(text)
        if question.item is None and question.keep is None:
            raise NotDueError
        if not 0 < seconds <= self.max_keep_seconds:
            raise ValueError("longer than daemon.cleanup.max_keep allows")
        link, now = question.link, self._now()
        keep = Keep(
            item=link.item, name=question.name, policy=link.policy, owner=link.owner, at=now, until=now + seconds,
            reason=shorten(clean(reason), MAX_REASON_CHARS),
        )  # fmt: skip
        if not self._keeps.record(keep, link.id, link.expires_at):
            raise AlreadyAnsweredError
        return keep

    def _due(self, link: OwnerLink) -> Item | None:
        """The item of a link in the present plan of its policy."""
        policy = self._policies.get(link.policy)
        if not isinstance(policy, (DatasetPolicy, GpuPolicy)):
            return None
        plans = (self._planner.plan(policy, node) for node in self._planner.nodes(policy))
        return next((item for plan in plans for item in plan.items if item.id == link.item), None)
