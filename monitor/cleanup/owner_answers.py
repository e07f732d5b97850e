"""Answers of owners to notices about cleanup: what a link is about, keeping it, and releasing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from monitor.access.owner_links import LinkSigner, OwnerLink
from monitor.access.principal import Principal
from monitor.base.text import clean, shorten
from monitor.cleanup.inputs import Planner
from monitor.cleanup.journal_records import ItemState, JournalEntry
from monitor.cleanup.keep_store import KeepStore
from monitor.cleanup.model import CleanupPlan, Item
from monitor.cleanup.plan.keeps import Answer, AnswerKind, Keep
from monitor.cleanup.policy import CleanupPolicy, DatasetPolicy, GpuPolicy
from monitor.cleanup.runner import RunInProgressError, RunResult
from monitor.leader.elector import LeaderElector

PATH = "keep"
LINK_VALID_SECONDS = 7 * 86400.0
MAX_REASON_CHARS = 200


class AlreadyAnsweredError(Exception):
    """A link allows one answer."""


class NotDueError(Exception):
    """The item is gone, in use again, or no longer part of the policy."""


class MayNotReleaseError(Exception):
    """The link permits to keep the item only, and the role of its user does not permit more."""


class NotReleasedError(Exception):
    """The item was not released; `why` is the code of the reason."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class ItemReleaser(Protocol):
    """Plans and executes the release of one item, with all protections."""

    def item_plan(self, policy: str, item: str, /) -> CleanupPlan | None:
        """Plan to release an item of a policy now; None if it may not be released."""
        ...

    def release_item(self, plan: CleanupPlan, by: str, /) -> RunResult:
        """Execute such a plan. Raise RunInProgressError or NotLeaderError."""
        ...


@dataclass(frozen=True)
class OwnerQuestion:
    """What an owner is asked.

    `item` is None if no policy plans for it, `release` if it may not be released now; `keep` is the present one, and
    `answer` what the link was used for: it works once.
    """

    link: OwnerLink
    item: Item | None
    keep: Keep | None
    answer: Answer | None = None
    release: CleanupPlan | None = None

    @property
    def name(self) -> str:
        known = self.item or self.keep or (self.release.items[0] if self.release is not None else self.answer)
        return (known.name if known is not None else None) or self.link.item

    @property
    def open(self) -> bool:
        """Whether the item can be kept or released."""
        return self.answer is None and not (self.item is None and self.keep is None and self.release is None)

    def may_release(self, principal: Principal) -> bool:
        """Whether the link permits to release the item, or otherwise the role of a principal who is signed in."""
        if not self.open or self.release is None:
            return False
        return self.link.may_release or principal.may_act_on(self.link.owner)


def link_maker(signer: LinkSigner, now: Callable[[], float]) -> Callable[[str, str, str, bool], str]:
    """How to make the path of the page about an item. It raises ValueError if the name of the item is too long."""

    def path(policy: str, item: str, owner: str, may_release: bool) -> str:
        return f"{PATH}/{signer.sign(policy, item, owner, now() + LINK_VALID_SECONDS, may_release=may_release)}"

    return path


class OwnerAnswers:
    """Asks owners about the items of their notices, and carries out their answers. Thread-safe.

    A link that may have been posted to a group permits to keep the item only: a wrong keep costs a few hours of a GPU,
    a wrong release costs work.
    """

    def __init__(
        self,
        signer: LinkSigner,
        keeps: KeepStore,
        planner: Planner,
        releaser: ItemReleaser,
        policies: Mapping[str, CleanupPolicy],
        max_keep: float,
        leading: LeaderElector,
        now: Callable[[], float],
        need_login: bool = False,
    ) -> None:
        self._signer = signer
        self._keeps = keeps
        self._planner = planner
        self._releaser = releaser
        self._policies = policies
        self.max_keep_seconds = max_keep
        self._leading = leading
        self.now = now
        self._need_login = need_login

    def check(self, text: str) -> OwnerLink:
        """The link itself. Raise LinkInvalidError or LinkExpiredError."""
        return self._signer.check(text, self.now())

    def may_answer(self, link: OwnerLink, principal: Principal) -> bool:
        """Whether the link is enough, or its owner or an administrator is signed in."""
        return not self._need_login or principal.may_act_on(link.owner)

    def question(self, text: str) -> OwnerQuestion:
        """What a link asks. Raise LinkInvalidError or LinkExpiredError."""
        now = self.now()
        link = self._signer.check(text, now)
        keep = self._keeps.all().get(link.item)
        if keep is not None and now >= keep.until:
            keep = None
        answer, release = self._keeps.answer(link.id), self._releaser.item_plan(link.policy, link.item)
        if release is not None and release.items[0].owner != link.owner:
            release = None  # it belongs to another user by now
        return OwnerQuestion(link, self._due(link), keep, answer, release)

    def keep(self, text: str, seconds: float, reason: str) -> Keep:
        """Keep the item of a link. Raise the errors of `question`, AlreadyAnsweredError, NotDueError or ValueError."""
        self._leading.check()
        question = self.question(text)
        if question.answer is None and not question.open:
            raise NotDueError
        if not 0 < seconds <= self.max_keep_seconds:
            raise ValueError("longer than daemon.cleanup.max_keep allows")
        link, now = question.link, self.now()
        keep = Keep(
            item=link.item, name=question.name, policy=link.policy, owner=link.owner, at=now, until=now + seconds,
            reason=shorten(clean(reason), MAX_REASON_CHARS),
        )  # fmt: skip
        if not self._keeps.record(keep, link.id, link.expires_at):
            raise AlreadyAnsweredError
        return keep

    def release(
        self, text: str, principal: Principal, by: str, on_begin: Callable[[], None]
    ) -> tuple[JournalEntry, ...]:
        """Release the item of a link now, and return what was done; `on_begin` is called if it may be released.

        Raise the errors of `question`, AlreadyAnsweredError, NotDueError, MayNotReleaseError or NotReleasedError.
        """
        self._leading.check()
        question = self.question(text)
        if question.answer is not None:
            raise AlreadyAnsweredError
        if question.release is None:
            raise NotDueError
        if not question.may_release(principal):
            raise MayNotReleaseError
        link, answer = question.link, Answer(kind=AnswerKind.RELEASE, name=question.name, at=self.now())
        if not self._keeps.use(link.id, link.expires_at, answer):
            raise AlreadyAnsweredError
        try:
            on_begin()
            entries = self._release(question.release, by)
        except Exception:
            self._keeps.give_back(link.id)
            raise
        self._keeps.end(link.item)
        return entries

    def _release(self, plan: CleanupPlan, by: str) -> tuple[JournalEntry, ...]:
        try:
            entries = self._releaser.release_item(plan, by).entries
        except RunInProgressError:
            raise NotReleasedError("in-progress") from None
        undone = next((entry for entry in entries if entry.state is not ItemState.DONE), None)
        if undone is not None or not entries:
            raise NotReleasedError((undone and undone.outcome) or "changed")
        return entries

    def _due(self, link: OwnerLink) -> Item | None:
        """The item of a link in the present plan of its policy."""
        policy = self._policies.get(link.policy)
        if not isinstance(policy, (DatasetPolicy, GpuPolicy)):
            return None
        plans = (self._planner.plan(policy, node) for node in self._planner.nodes(policy))
        return next((item for plan in plans for item in plan.items if item.id == link.item), None)
