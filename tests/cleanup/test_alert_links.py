"""Links in alerts about idle GPUs and zombies: for their owners, where an answer has an effect."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from monitor.alert.message.compose import compose
from monitor.alert.message.locale import Locale
from monitor.alert.model import (
    AnswerLink,
    Batch,
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
)
from monitor.cleanup.alert_links import MAX_LINKS, AlertLinks
from monitor.cleanup.inputs import Planner
from monitor.cleanup.journal import FILE, CleanupJournal
from monitor.cleanup.model import CleanupPlan, Item, Mode
from monitor.cleanup.notices import NoticeRouting
from monitor.cleanup.plan.keeps import Keep
from monitor.cleanup.policy import CleanupPolicy, GpuPolicy
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value
from tests.cleanup.support import NOW, item, plan

ENFORCED = GpuPolicy(name="gpus", mode=Mode.ENFORCE, idle_after=60.0, zombie_after=None)
DRY = GpuPolicy(name="dry", idle_after=60.0)
WHY: dict[str, Value] = {"node": "n1", "gpu": 3, "seconds": 60.0, "process": "?", "pid": 0}
PRIVATE = {"mail": frozenset({"zhang"})}


def held(number: int = 1, item_id: str | None = None) -> Item:
    why = Text(key="cleanup.why.gpu-idle", values=dict(WHY))
    return item(number, id=item_id or f"gpu-pod/u{number}", name=f"nlp/bert-{number}", why=why, owner="zhang")


def subject(number: int = 1, rule: str = "gpu-idle", phase: Phase = Phase.FIRING, **labels: str) -> NotificationSubject:
    named = {"node": "n1", "gpu": "3", "namespace": "nlp", "pod": f"bert-{number}", "user": "zhang"} | labels
    finding = Finding(
        rule=rule, severity=Severity.WARNING, cause="idle", labels=named,
        headline=Text(key="cleanup.end.done"), since=NOW - 60,
    )  # fmt: skip
    return NotificationSubject(fingerprint=f"f{number}", finding=finding, phase=phase, since=NOW - 60)


def message(
    *subjects: NotificationSubject, receiver: str = "wecom", users: tuple[str, ...] = ("zhang",)
) -> Notification:
    return Notification(
        id="n", receiver=receiver, group="g", reason=NotificationReason.NEW, severity=Severity.WARNING, at=NOW,
        subjects=subjects, users=users,
    )  # fmt: skip


class FakePlanner:
    def __init__(self, *items: Item, broken: bool = False) -> None:
        self.items, self.broken, self.asked = items, broken, 0

    def polled_gpu_plan(self, policy: GpuPolicy) -> CleanupPlan:
        assert policy.name == "release"
        self.asked += 1
        if self.broken:
            raise OSError("broken")
        return plan(*self.items)


class Linked:
    """Links over a journal, with paths that say what they were made for."""

    def __init__(self, journal: CleanupJournal, planner: FakePlanner, *policies: CleanupPolicy) -> None:
        self.journal = journal
        routing = NoticeRouting((), ("wecom", "mail"), None, PRIVATE)
        self.links = AlertLinks(cast("Planner", planner), policies, journal.keeps, _path, lambda: routing, lambda: NOW)

    def answers(self, *notifications: Notification) -> list[Sequence[AnswerLink]]:
        return [notification.answers for notification in self.links.annotate(notifications)]


def _path(policy: str, item_id: str, owner: str, may_release: bool) -> str:
    if len(item_id) > 100:
        raise ValueError("too long for a link")
    return f"keep/{policy} {item_id} {owner} {may_release}"


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    with closing(CleanupJournal(str(tmp_path / FILE))) as journal:
        yield journal


KEEP = [AnswerLink(name="nlp/bert-1", path="keep/gpus gpu-pod/u1 zhang False")]
BOTH = [AnswerLink(name="nlp/bert-1", path="keep/gpus gpu-pod/u1 zhang True", may_release=True)]
ONLY_RELEASE = [AnswerLink(name="nlp/bert-1", path="keep/release gpu-pod/u1 zhang True", may_release=True)]


@pytest.mark.parametrize(
    ("name", "policies", "notification", "expected"),
    [
        ("to a group", (ENFORCED,), message(subject()), KEEP),
        ("to the owner", (ENFORCED,), message(subject(), receiver="mail"), BOTH),
        ("mail that reaches two", (ENFORCED,), message(subject(), receiver="mail", users=("li", "zhang")), KEEP),
        ("in a dry run there is nothing to keep it from", (DRY,), message(subject()), []),
        ("without a policy the owner may release", (), message(subject(), receiver="mail"), ONLY_RELEASE),
        ("a policy about zombies does not cover it", (GpuPolicy(name="z", mode=Mode.ENFORCE),), message(subject()), []),
        ("what has ended", (ENFORCED,), message(subject(phase=Phase.RESOLVED)), []),
        ("another node", (ENFORCED,), message(subject(node="n2")), []),
        ("another pod", (ENFORCED,), message(subject(7)), []),
        ("another user", (ENFORCED,), message(subject(user="li")), []),
        ("another rule", (ENFORCED,), message(subject(rule="gpu-hot")), []),
        ("a zombie of the same name", (ENFORCED,), message(subject(rule="gpu-zombie")), []),
    ],
)
def test_who_gets_which_link(
    journal: CleanupJournal,
    name: str,
    policies: tuple[CleanupPolicy, ...],
    notification: Notification,
    expected: list[AnswerLink],
) -> None:
    linked = Linked(journal, FakePlanner(held()), *policies)
    assert [list(answers) for answers in linked.answers(notification)] == [expected], name


def test_only_the_first_few_have_links_and_long_names_have_none(journal: CleanupJournal) -> None:
    items = [held(number) for number in range(1, MAX_LINKS + 4)]
    items[0] = held(1, "x" * 200)
    linked = Linked(journal, FakePlanner(*items), ENFORCED)
    (answers,) = linked.answers(message(*(subject(number) for number in range(1, MAX_LINKS + 4))))
    assert [answer.name for answer in answers] == ["nlp/bert-2", "nlp/bert-3", "nlp/bert-4"]


def test_other_alerts_cost_no_plan_and_a_broken_one_stops_none(journal: CleanupJournal) -> None:
    planner = FakePlanner(held(), broken=True)
    linked, other, idle = Linked(journal, planner, ENFORCED), message(subject(rule="disk-full")), message(subject())
    assert (linked.links.annotate((other,)), planner.asked) == ((other,), 0)
    assert (linked.links.annotate((idle, other)), planner.asked) == ((idle, other), 1)


@pytest.mark.parametrize(
    ("reason", "until", "english", "chinese"),
    [
        ("", NOW + 7200, "zhang keeps it for 2 h.", "zhang 已要求保留，还剩 2 小时。"),
        ("tests", NOW + 7200, "zhang keeps it for 2 h: tests", "zhang 已要求保留，还剩 2 小时：tests"),
        ("", NOW, None, None),
    ],
)
def test_an_alert_says_who_keeps_its_object(
    journal: CleanupJournal, reason: str, until: float, english: str | None, chinese: str | None
) -> None:
    keep = Keep(
        item="gpu-pod/u1", name="nlp/bert-1", policy="gpus", owner="zhang", at=NOW - 60, until=until, reason=reason
    )
    assert journal.keeps.record(keep, "link", NOW + 60)
    (annotated,) = Linked(journal, FakePlanner(held()), ENFORCED).links.annotate((message(subject()),))
    for lang, expected in (("en", english), ("zh", chinese)):
        batch = Batch(id="x", receiver="wecom", notifications=(annotated,), at=NOW)
        lines = compose(batch, Locale(lang, page="http://w")).lines
        texts = ["".join(span.text for span in line.spans) for line in lines]
        assert any(expected in text for text in texts) if expected else not any("zhang keeps" in text for text in texts)
    assert [list(annotated.answers)] == [KEEP]
