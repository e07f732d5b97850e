"""Answers of owners: one for each link, for what is due, within the limit; plans and re-checks honour them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from monitor.access.owner_links import LinkExpiredError, LinkInvalidError, LinkSigner
from monitor.cleanup.inputs import Planner
from monitor.cleanup.journal import FILE, CleanupJournal
from monitor.cleanup.model import CleanupPlan, Item, PodWrite
from monitor.cleanup.owner_answers import LINK_VALID_SECONDS, PATH, AlreadyAnsweredError, NotDueError, OwnerAnswers
from monitor.cleanup.policy import CleanupPolicy, GpuPolicy, ImagePolicy
from monitor.leader.elector import SingleReplica
from tests.cleanup.builders import DAY
from tests.cleanup.support import NOW, item, plan

HOUR = 3600.0
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


class Desk:
    """Answers with a clock, a planner and a journal."""

    def __init__(self, journal: CleanupJournal) -> None:
        self.at, self.planner, self.journal = NOW, FakePlanner(ITEM), journal
        self.answers = OwnerAnswers(
            LinkSigner(b"k" * 32), journal.keeps, cast("Planner", self.planner), POLICIES, 7 * DAY, SingleReplica(),
            lambda: self.at,
        )  # fmt: skip

    def link(self, item_id: str = ITEM.id, policy: str = "gpus") -> str:
        return self.answers.path(policy, item_id, "zhang").removeprefix(f"{PATH}/")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with closing(CleanupJournal(str(tmp_path / FILE))) as journal:
        yield Desk(journal)


def test_an_owner_keeps_an_item_for_a_while(desk: Desk) -> None:
    link = desk.link()
    question = desk.answers.question(link)
    assert (question.name, question.keep, question.answered) == ("nlp/bert", None, False)
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
    assert desk.answers.question(link).answered
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
