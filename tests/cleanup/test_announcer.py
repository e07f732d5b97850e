"""Announcements of policies: what keeps one from being made, and a policy without receivers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from monitor.access.owner_links import LinkSigner
from monitor.alert.routes import Route
from monitor.cleanup.announcer import Announcer
from monitor.cleanup.execute.run_plan import OVER_QUOTA
from monitor.cleanup.journal import FILE, CleanupJournal
from monitor.cleanup.model import CleanupPlan, Mode
from monitor.cleanup.notices import NoticeRouting
from monitor.cleanup.plan.select import PlanSubject, refuse
from monitor.cleanup.policy import CleanupPolicy, GpuPolicy, ImagePolicy
from monitor.cleanup.schedule import Permission
from monitor.facts.text import Text
from monitor.leader.elector import SingleReplica
from tests.cleanup.support import NOW, item, plan

POLICY = ImagePolicy(name="images", mode=Mode.ENFORCE, announce=3600.0)
REFUSED = refuse(PlanSubject(POLICY, NOW), "kubernetes-unseen")
TO_WECOM = NoticeRouting((Route(receivers=("wecom",)),), ("wecom",))


class FakePlanner:
    def __init__(self, plans: Mapping[str, CleanupPlan]) -> None:
        self._plans = plans

    def nodes(self, policy: CleanupPolicy) -> tuple[str, ...]:
        return tuple(self._plans)

    def plan(self, policy: CleanupPolicy, node: str) -> CleanupPlan:
        return self._plans[node]


class FakeRelay:
    def __init__(self, routing: NoticeRouting) -> None:
        self._routing = routing

    def routing(self) -> NoticeRouting:
        return self._routing


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[CleanupJournal]:
    with closing(CleanupJournal(str(tmp_path / FILE))) as made:
        yield made


def announcer(journal: CleanupJournal, routing: NoticeRouting = TO_WECOM, **plans: CleanupPlan) -> Announcer:
    return Announcer(journal, FakePlanner(plans), FakeRelay(routing), lambda: NOW, SingleReplica())  # type: ignore[arg-type]  # only what it calls


def test_a_policy_that_cannot_be_planned_anywhere_is_announced_later(journal: CleanupJournal) -> None:
    announcing = announcer(journal, n1=REFUSED, n2=REFUSED)
    announcing.announce_early(POLICY)
    assert journal.messages(0) == ()
    assert announcing.permission(POLICY) is Permission.ANNOUNCE


def test_nodes_that_can_be_planned_are_announced_together(journal: CleanupJournal) -> None:
    announcing = announcer(journal, n1=plan(item(1), node="n1"), n2=REFUSED, n3=plan(item(2), node="n3"))
    announcing.announce_early(POLICY)
    ((_, message),) = journal.messages(0)
    assert message.subjects[0].finding.labels.get("node") is None
    assert announcing.permission(POLICY) is Permission.WAIT
    announcing.announce_early(POLICY)
    assert len(journal.messages(0)) == 1, "once"


def test_without_receivers_the_log_says_so_and_time_runs(
    journal: CleanupJournal, caplog: pytest.LogCaptureFixture
) -> None:
    announcing = announcer(journal, NoticeRouting((), ()), n1=plan(item(1), node="n1"))
    with caplog.at_level(logging.WARNING):
        announcing.announce_early(POLICY)
    assert "images will be enforced without an announcement: no receiver is configured" in caplog.text
    assert journal.messages(0) == ()
    assert announcing.permission(POLICY) is Permission.WAIT


def test_owners_get_links_to_what_they_may_keep(journal: CleanupJournal) -> None:
    links = {"a": "keep/a", "b": "keep/b"}
    announcing = Announcer(
        journal, FakePlanner({}), FakeRelay(TO_WECOM), lambda: NOW, SingleReplica(), lambda _, one, *__: links[one]  # type: ignore[arg-type]  # only what it calls
    )  # fmt: skip
    over_quota = Text(key=OVER_QUOTA, values={"owner": "zhang", "seconds": 1.0, "bytes": 1, "files": 1})
    owned = (
        item(1, id="a", owner="zhang", not_before=None),
        item(2, id="b", owner="zhang", not_before=None, why=over_quota),
    )
    announcing.notify_owners(GpuPolicy(name="gpus"), plan(*owned))
    ((_, message),) = journal.messages(0)
    assert [answer.path for answer in message.answers] == ["keep/a"]


def test_a_name_that_is_too_long_for_a_link_does_not_stop_the_notice(journal: CleanupJournal) -> None:
    signer = LinkSigner(b"k" * 32)

    def path(policy: str, one: str, owner: str, _may_release: bool) -> str:
        return signer.sign(policy, one, owner, NOW)

    announcing = Announcer(journal, FakePlanner({}), FakeRelay(TO_WECOM), lambda: NOW, SingleReplica(), path)  # type: ignore[arg-type]  # only what it calls
    announcing.notify_owners(GpuPolicy(name="gpus"), plan(item(1, id="x" * 3000, owner="zhang", not_before=None)))
    ((_, message),) = journal.messages(0)
    assert (message.answers, message.users) == ((), ("zhang",))
