"""Answers of owners: one for each link, for what is due, within the limit; plans and re-checks honour them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from monitor.access.owner_links import LinkExpiredError, LinkInvalidError, LinkSigner
from monitor.access.principal import AuthMethod, Principal, Role
from monitor.cleanup.inputs import Planner
from monitor.cleanup.journal import FILE, CleanupJournal
from monitor.cleanup.journal_records import ItemState, JournalEntry
from monitor.cleanup.model import CleanupPlan, Item, PodWrite
from monitor.cleanup.on_demand import RELEASE, only_item
from monitor.cleanup.owner_answers import (
    LINK_VALID_SECONDS,
    PATH,
    AlreadyAnsweredError,
    MayNotReleaseError,
    NotDueError,
    NotReleasedError,
    OwnerAnswers,
    link_maker,
)
from monitor.cleanup.plan.keeps import Answer, AnswerKind
from monitor.cleanup.policy import CleanupPolicy, GpuPolicy, ImagePolicy
from monitor.cleanup.runner import RunInProgressError, RunResult
from monitor.leader.elector import SingleReplica
from tests.cleanup.builders import DAY
from tests.cleanup.support import NOW, item, plan, run

HOUR = 3600.0
NOBODY = Principal("", Role.NONE)
OWNER = Principal("zhang", Role.USER, "zhang", method=AuthMethod.SESSION)
OTHER = Principal("li", Role.USER, "li", method=AuthMethod.SESSION)
ADMIN = Principal("admin", Role.ADMIN, method=AuthMethod.SESSION)
READER = Principal("zhang", Role.VIEWER, "zhang", method=AuthMethod.SESSION)
EVICT = PodWrite(namespace="nlp", name="bert", uid="u1", how="evict")
ITEM = replace(item(1), id="gpu-pod/u1", name="nlp/bert", owner="zhang", act=EVICT)
POLICIES: dict[str, CleanupPolicy] = {"gpus": GpuPolicy(name="gpus"), "images": ImagePolicy(name="images")}


class FakePlanner:
    def __init__(self, *items: Item) -> None:
        self.items = items

    def nodes(self, _policy: CleanupPolicy) -> tuple[None]:
        return (None,)

    def plan(self, _policy: CleanupPolicy, _node: str | None) -> CleanupPlan:
        return plan(*self.items)


class FakeReleaser:
    """Plans for one item as the planner does, and records what it is asked to release."""

    def __init__(self, planner: FakePlanner) -> None:
        self.planner = planner
        self.released: list[tuple[str, str]] = []
        self.state, self.outcome, self.busy = ItemState.DONE, "evicted", False

    def item_plan(self, policy: str, item_id: str, /) -> CleanupPlan | None:
        return only_item(plan(*self.planner.items), item_id, NOW) if policy in ("gpus", RELEASE) else None

    def release_item(self, plan: CleanupPlan, by: str, /) -> RunResult:
        if self.busy:
            raise RunInProgressError
        (one,) = plan.items
        self.released.append((one.id, by))
        entry = JournalEntry(item=one, place=0, state=self.state, outcome=self.outcome)
        return RunResult(run(), (entry,))


class Desk:
    """Answers with a clock, a planner, a releaser and a journal."""

    def __init__(self, journal: CleanupJournal, *, need_login: bool = False) -> None:
        self.at, self.planner, self.journal = NOW, FakePlanner(ITEM), journal
        self.releaser, signer = FakeReleaser(self.planner), LinkSigner(b"k" * 32)
        self._path = link_maker(signer, lambda: self.at)
        self.answers = OwnerAnswers(
            signer, journal.keeps, cast("Planner", self.planner), self.releaser, POLICIES, 7 * DAY, SingleReplica(),
            lambda: self.at, need_login,
        )  # fmt: skip

    def link(self, item_id: str = ITEM.id, policy: str = "gpus", *, may_release: bool = False) -> str:
        return self._path(policy, item_id, "zhang", may_release).removeprefix(f"{PATH}/")

    def release(self, link: str, principal: Principal = NOBODY) -> tuple[JournalEntry, ...]:
        return self.answers.release(link, principal, "zhang@10.0.0.9", lambda: None)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with closing(CleanupJournal(str(tmp_path / FILE))) as journal:
        yield Desk(journal)


def test_an_owner_keeps_an_item_for_a_while(desk: Desk) -> None:
    link = desk.link()
    question = desk.answers.question(link)
    assert (question.name, question.keep, question.answer) == ("nlp/bert", None, None)
    keep = desk.answers.keep(link, 4 * HOUR, " debugging\x00 ")
    assert (keep.item, keep.owner, keep.until, keep.policy) == (ITEM.id, "zhang", NOW + 4 * HOUR, "gpus")
    assert "debugging" in keep.reason
    assert "\x00" not in keep.reason
    assert desk.journal.keeps.all() == {ITEM.id: keep}
    assert desk.answers.question(link).keep == keep
    desk.at += 4 * HOUR
    assert desk.answers.question(link).keep is None


def test_a_link_works_once(desk: Desk) -> None:
    link, other = desk.link(), desk.link()
    desk.answers.keep(link, HOUR, "")
    before = desk.journal.keeps.all()
    with pytest.raises(AlreadyAnsweredError):
        desk.answers.keep(link, 2 * HOUR, "")
    assert desk.answers.question(link).answer == Answer(name="nlp/bert", at=NOW)
    assert desk.journal.keeps.all() == before
    desk.planner.items = ()  # it is kept, so it is no longer planned
    assert desk.answers.keep(other, 2 * HOUR, "").until == NOW + 2 * HOUR


@pytest.mark.parametrize("seconds", [0.0, -1.0, 7 * DAY + 1, float("nan"), float("inf")])
def test_only_so_long(desk: Desk, seconds: float) -> None:
    with pytest.raises(ValueError, match="max_keep"):
        desk.answers.keep(desk.link(), seconds, "")
    assert desk.journal.keeps.all() == {}


def test_what_is_not_due_is_not_kept(desk: Desk) -> None:
    """Another pod of the same name has another uid; a policy may be gone, or be about something without owners."""
    for link in (desk.link("gpu-pod/u2"), desk.link(policy="gone"), desk.link(policy="images")):
        with pytest.raises(NotDueError):
            desk.answers.keep(link, HOUR, "")
    assert desk.journal.keeps.all() == {}


def test_forged_and_expired_links_change_nothing(desk: Desk) -> None:
    link = desk.link()
    forged = LinkSigner(b"x" * 32).sign("gpus", ITEM.id, "zhang", NOW + 60)
    with pytest.raises(LinkInvalidError):
        desk.answers.keep(forged, HOUR, "")
    desk.at += LINK_VALID_SECONDS
    with pytest.raises(LinkExpiredError):
        desk.answers.keep(link, HOUR, "")
    assert desk.journal.keeps.all() == {}


def test_keeps_outlive_the_process(tmp_path: Path) -> None:
    with closing(CleanupJournal(str(tmp_path / FILE))) as journal:
        keep = Desk(journal).answers.keep(Desk(journal).link(), HOUR, "")
    with closing(CleanupJournal(str(tmp_path / FILE))) as journal:
        assert journal.keeps.all() == {ITEM.id: keep}


def test_past_keeps_and_links_are_forgotten(desk: Desk) -> None:
    desk.answers.keep(desk.link(), HOUR, "")
    desk.at += 60 * DAY
    desk.planner.items = (ITEM, replace(ITEM, id="gpu-pod/u3"))
    desk.answers.keep(desk.link("gpu-pod/u3"), HOUR, "")
    assert list(desk.journal.keeps.all()) == ["gpu-pod/u3"]


# Releasing


@pytest.mark.parametrize(
    ("may_release", "principal", "permitted"),
    [
        (True, NOBODY, True),
        (False, NOBODY, False),
        (False, OWNER, True),
        (False, ADMIN, True),
        (False, OTHER, False),
        (False, READER, False),
    ],
)
def test_a_link_to_a_group_releases_nothing_but_its_owner_may(
    desk: Desk, may_release: bool, principal: Principal, permitted: bool
) -> None:
    link = desk.link(may_release=may_release)
    assert desk.answers.question(link).may_release(principal) is permitted
    if permitted:
        (entry,) = desk.release(link, principal)
        assert (entry.state, desk.releaser.released) == (ItemState.DONE, [(ITEM.id, "zhang@10.0.0.9")])
        return
    with pytest.raises(MayNotReleaseError):
        desk.release(link, principal)
    assert (desk.releaser.released, desk.answers.question(link).answer) == ([], None)


def test_a_link_releases_once_and_ends_the_keep(desk: Desk) -> None:
    desk.answers.keep(desk.link(), 4 * HOUR, "")
    link = desk.link(may_release=True)
    desk.release(link)
    assert desk.journal.keeps.all() == {}
    question = desk.answers.question(link)
    assert question.answer == Answer(kind=AnswerKind.RELEASE, name="nlp/bert", at=NOW)
    for again in (lambda: desk.release(link), lambda: desk.answers.keep(link, HOUR, "")):
        with pytest.raises(AlreadyAnsweredError):
            again()
    assert len(desk.releaser.released) == 1
    desk.planner.items = ()
    assert desk.answers.question(link).name == "nlp/bert"


def test_a_link_that_kept_releases_nothing(desk: Desk) -> None:
    link = desk.link(may_release=True)
    desk.answers.keep(link, HOUR, "")
    with pytest.raises(AlreadyAnsweredError):
        desk.release(link)
    assert desk.releaser.released == []


def test_a_release_that_was_refused_can_be_tried_again(desk: Desk) -> None:
    link = desk.link(may_release=True)
    desk.releaser.state, desk.releaser.outcome = ItemState.REFUSED, "busy"
    with pytest.raises(NotReleasedError, match="busy"):
        desk.release(link)
    desk.releaser.busy = True
    with pytest.raises(NotReleasedError, match="in-progress"):
        desk.release(link)
    desk.releaser.busy, desk.releaser.state = False, ItemState.DONE
    assert desk.release(link)


def test_what_is_not_due_or_belongs_to_another_user_now_is_not_released(desk: Desk) -> None:
    """Another pod of the same name has another uid; a pod that works is not in the plan."""
    link = desk.link(may_release=True)
    others = [desk.link(one, policy, may_release=True) for one, policy in (("gpu-pod/u2", "gpus"), (ITEM.id, "images"))]
    for items in ((ITEM,), (replace(ITEM, owner="li"),), ()):
        desk.planner.items = items
        for refused in others if items == (ITEM,) else [link]:
            with pytest.raises(NotDueError):
                desk.release(refused)
    assert desk.releaser.released == []


def test_forged_and_expired_links_release_nothing(desk: Desk) -> None:
    link = desk.link(may_release=True)
    forged = LinkSigner(b"x" * 32).sign("gpus", ITEM.id, "zhang", NOW + 60, may_release=True)
    with pytest.raises(LinkInvalidError):
        desk.release(forged, ADMIN)
    desk.at += LINK_VALID_SECONDS
    with pytest.raises(LinkExpiredError):
        desk.release(link, ADMIN)
    assert desk.releaser.released == []


def test_two_who_release_with_one_link_at_once_release_once(desk: Desk) -> None:
    """The second one asks while the first one acts."""
    link, refused = desk.link(may_release=True), []

    def meanwhile() -> None:
        with pytest.raises(AlreadyAnsweredError):
            desk.release(link)
        refused.append(True)

    desk.answers.release(link, NOBODY, "zhang", meanwhile)
    assert (refused, len(desk.releaser.released)) == ([True], 1)


def test_a_login_may_be_required(tmp_path: Path) -> None:
    with closing(CleanupJournal(str(tmp_path / FILE))) as journal:
        strict = Desk(journal, need_login=True)
        link = strict.answers.check(strict.link())
        may = [strict.answers.may_answer(link, one) for one in (NOBODY, OWNER, ADMIN, OTHER, READER)]
        assert may == [False, True, True, False, False]
        assert Desk(journal).answers.may_answer(link, NOBODY)
