"""Notifications about cleanup: receivers and texts in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.alert.matchers import parse_matcher
from monitor.alert.message.compose import compose
from monitor.alert.message.locale import Locale
from monitor.alert.model import AnswerLink, Batch, Notification
from monitor.alert.routes import Route
from monitor.cleanup.journal_records import ItemState, JournalEntry
from monitor.cleanup.notices import NoticeRouting, announcement, dry_run_report, notices, refusal_report, report
from monitor.cleanup.plan.select import PlanSubject, refuse
from monitor.cleanup.policy import DatasetPolicy, GpuPolicy, ImagePolicy
from monitor.facts.text import Text
from monitor.i18n import LANGUAGES
from tests.cleanup.support import GIB, NOW, item, plan, run

ROUTING = NoticeRouting((Route(receivers=("wecom",)),), ("wecom", "mail"))
POLICY = ImagePolicy(name="images")


def text(notification: Notification, lang: str = "en") -> str:
    """A notification as rendered; every text key is in the catalogs."""
    parcel = Batch(id="x", receiver="wecom", notifications=(notification,), at=NOW)
    letter = compose(parcel, Locale(lang))
    lines = [letter.title, *("".join(span.text for span in line.spans) for line in letter.lines)]
    assert not any("cleanup." in line or "=" in line for line in lines), lines
    return "\n".join(lines)


def entries(**states: ItemState) -> list[JournalEntry]:
    return [
        JournalEntry(item=item(number), place=number, state=state, outcome=name.replace("_", "-"), message="because")
        for number, (name, state) in enumerate(states.items())
    ]


def test_a_report_says_what_was_freed_refused_and_failed() -> None:
    ended = run(policy="images", end="low-water", before=0.86, after=0.69, freed_bytes=3 * GIB, ended_at=NOW + 9)
    became = entries(removed=ItemState.DONE, in_use=ItemState.REFUSED, lost=ItemState.FAILED, budget=ItemState.LATER)
    (message,) = report(POLICY, ended, became, ROUTING)
    rendered = text(message)
    assert "images: 3 GiB freed, 1 item done, 2 skipped, 1 failed." in rendered
    assert "Disk usage went from 86% to 69%." in rendered
    assert "It stopped at the low-water mark." in rendered
    assert message.severity == "warning"
    assert "images：释放 3 GiB，完成 1 项，保留 2 项，失败 1 项。" in text(message, "zh")
    assert report(POLICY, ended, [], ROUTING) == ()


@pytest.mark.parametrize("end", ["done", "low-water", "minutes", "bytes", "errors", "unmeasured", "interrupted"])
def test_every_end_has_words(end: str) -> None:
    for lang in LANGUAGES:
        (message,) = report(None, run(end=end), entries(removed=ItemState.DONE), ROUTING)
        text(message, lang)


def test_a_release_names_who_asked_for_it() -> None:
    why = Text(key="cleanup.why.gpu-zombie", values={"gpu": 3, "node": "n1", "seconds": 5.0, "process": "p", "pid": 1})
    entry = JournalEntry(item=item(1, why=why), place=0, state=ItemState.DONE)
    ended = run(policy="release", kind="gpus", trigger="release", by="zhang@10.0.0.1", end="done")
    (message,) = report(None, ended, [entry], ROUTING)
    assert "zhang@10.0.0.1 released GPU 3 of n1: 1 item done" in text(message)
    text(message, "zh")


def test_owners_are_told_one_message_each() -> None:
    policy = DatasetPolicy(name="data", root="/mnt/share", node="n1")
    owned = [
        item(1, owner="zhang", last_used_at=NOW - 86400 * 90),
        item(2, owner="li"),
        item(3, owner="zhang"),
        item(4),
    ]
    notified, messages = notices(policy, owned, ROUTING, NOW)
    assert notified == {owned[0].id: "zhang", owned[1].id: "li", owned[2].id: "zhang", owned[3].id: None}
    assert [message.users for message in messages] == [(), ("li",), ("zhang",)]
    assert len({message.group for message in messages}) == 3  # pending notifications are not merged
    assert "zhang: 2 datasets (2 GiB) below /mnt/share will be moved to the trash in 7 d" in text(messages[2])
    for message in messages:
        text(message, "zh")
    _, (notice,) = notices(GpuPolicy(name="gpus"), [item(1, owner="li")], ROUTING, NOW)
    assert "li: 1 job of yours will lose the GPU in 1 h" in text(notice)
    text(notice, "zh")


def test_nobody_is_told_where_there_is_nobody() -> None:
    policy = DatasetPolicy(name="data", root="/mnt/share", node="n1")
    assert notices(policy, [item(1, owner="zhang")], NoticeRouting(), NOW) == ({}, ())


def test_an_announcement_comes_with_the_plan() -> None:
    (message,) = announcement(replace_policy(announce=86400.0), plan(item(1), item(2)), ROUTING, NOW)
    assert "images takes effect in 1 d. Current plan: 2 items, 2 GiB." in text(message)
    text(message, "zh")


def test_what_is_wrong_with_a_policy_is_said_once_before_it_acts() -> None:
    wrong, other = (Text(key="cleanup.kubelet-first", values={"high": 0.9, "kubelet": at}) for at in (0.85, 0.7))
    warned = plan(item(1), warnings=(wrong, wrong, other))
    messages = [*announcement(POLICY, warned, ROUTING, NOW), *dry_run_report(POLICY, run(), warned, ROUTING)]
    assert len(messages) == 2
    for message in messages:
        assert text(message).count("the kubelet already removes images above 85%") == 1
        assert text(message).count("the kubelet already removes images above 70%") == 1
        assert "kubelet 在 85% 时就会自己删除镜像" in text(message, "zh")
        assert "lab/i1:1" in text(message)


def replace_policy(**more: Any) -> ImagePolicy:
    return ImagePolicy(name="images", **more)


def test_what_a_dry_run_and_a_refusal_say() -> None:
    (message,) = dry_run_report(POLICY, run(), plan(item(1)), ROUTING)
    assert "images would process 1 item and free 1 GiB. This is a dry run: nothing was changed." in text(message)
    text(message, "zh")
    assert dry_run_report(POLICY, run(), plan(), ROUTING) == ()
    refused = refuse(PlanSubject(POLICY, NOW, "n1"), "needs-unknown", kinds="jobs.batch")
    (message,) = refusal_report(POLICY, run(), refused, ROUTING)
    assert refusal_report(POLICY, run(), plan(item(1)), ROUTING) == ()
    assert "the cluster could not be queried for jobs.batch" in text(message)


@pytest.mark.parametrize(
    ("name", "named", "routing", "receivers"),
    [
        ("by route", (), ROUTING, ["wecom"]),
        ("by name", ("mail",), ROUTING, ["mail"]),
        ("one that is not there", ("nobody",), ROUTING, []),
        (
            "by a route for reports",
            (),
            NoticeRouting(
                (
                    Route(receivers=("mail",), matchers=(parse_matcher("alertname=CleanupReport"),)),
                    Route(receivers=("wecom",)),
                ),
                ("wecom", "mail"),
            ),
            ["mail"],
        ),
        ("nobody", (), NoticeRouting(), []),
    ],
)
def test_who_is_told(name: str, named: tuple[str, ...], routing: NoticeRouting, receivers: list[str]) -> None:
    messages = report(replace_policy(receivers=named), run(end="done"), entries(removed=ItemState.DONE), routing)
    assert [message.receiver for message in messages] == receivers


def test_two_runs_are_two_messages() -> None:
    one, two = (
        report(POLICY, run(run_id, end="done"), entries(removed=ItemState.DONE), ROUTING)[0] for run_id in ("r1", "r2")
    )
    assert (one.group != two.group, one.id != two.id) == (True, True)
    again = report(POLICY, run("r1", end="done"), entries(removed=ItemState.DONE), ROUTING)[0]
    assert replace(again) == one


def test_a_notice_links_to_the_page_where_the_owner_answers() -> None:
    owned = [item(number, owner="zhang") for number in (1, 2, 3, 4)]
    _, (message,) = notices(GpuPolicy(name="gpus"), owned, ROUTING, NOW, lambda one, _: f"keep/{one.name}")
    assert [answer.path for answer in message.answers] == ["keep/lab/i1:1", "keep/lab/i2:1", "keep/lab/i3:1"]
    for lang, expected in (("en", "Keep lab/i1:1"), ("zh", "保留 lab/i1:1")):
        batch = Batch(id="x", receiver="wecom", notifications=(message,), at=NOW)
        spans = [span for line in compose(batch, Locale(lang, page="http://w")).lines for span in line.spans]
        assert [span.target for span in spans if span.text == expected] == ["http://w/keep/lab/i1:1"]
        assert expected not in text(message, lang), "without a page there is no link"
    assert "To do: To keep it for now, open its link." in text(message)


def test_without_an_owner_there_is_no_link() -> None:
    _, (message,) = notices(GpuPolicy(name="gpus"), [item(1)], ROUTING, NOW, lambda *_: "keep/x")
    assert message.answers == ()


def test_only_a_message_to_the_owner_alone_permits_to_release() -> None:
    routing = NoticeRouting((Route(receivers=("wecom", "mail")),), ("wecom", "mail"), None, {"mail": frozenset({"li"})})
    owned = [item(1, owner="zhang"), item(2, owner="li")]
    _, messages = notices(GpuPolicy(name="gpus"), owned, routing, NOW, lambda _one, may_release: f"keep/{may_release}")
    found = [(message.users, message.receiver, *message.answers) for message in messages]
    keep = {name: AnswerLink(name=f"lab/i{name}:1", path="keep/False") for name in (1, 2)}
    both = AnswerLink(name="lab/i2:1", path="keep/True", may_release=True)
    assert found == [
        (("li",), "wecom", keep[2]), (("li",), "mail", both),
        (("zhang",), "wecom", keep[1]), (("zhang",), "mail", keep[1]),
    ]  # fmt: skip
    batch = Batch(id="x", receiver="mail", notifications=(messages[1],), at=NOW)
    for lang, expected in (("en", "Keep or release lab/i2:1"), ("zh", "保留或释放 lab/i2:1")):
        spans = [span for line in compose(batch, Locale(lang, page="http://w")).lines for span in line.spans]
        assert [span.target for span in spans if span.text == expected] == ["http://w/keep/True"]


@pytest.mark.parametrize(
    ("users", "merged", "expected"),
    [
        ((("li",), ("li",)), False, {"http://w/keep/one", "http://w/keep/two"}),
        ((("zhang",), ("li",)), False, {"http://w/keep/one"}),
        ((("zhang", "li"), ("li",)), True, {"http://w/keep/one"}),  # one had its message before the merge
    ],
)
def test_a_message_about_several_users_has_only_links_that_keep(
    users: tuple[tuple[str, ...], ...], merged: bool, expected: set[str]
) -> None:
    """Mail goes to all users of its notifications, also to those of one that is over by now."""
    keep, release = AnswerLink(name="a", path="keep/one"), AnswerLink(name="b", path="keep/two", may_release=True)
    (message,) = notices(GpuPolicy(name="gpus"), [item(1, owner="li")], ROUTING, NOW)[1]
    first, last = (replace(message, users=named, answers=(keep,)) for named in users)
    last = replace(last, answers=(keep, release))
    both = (replace(last, users=tuple(sorted({*first.users, *last.users}))),) if merged else (first, last)
    batch = Batch(id="x", receiver="mail", notifications=both, at=NOW)
    targets = {span.target for line in compose(batch, Locale("en", page="http://w")).lines for span in line.spans}
    assert {target for target in targets if target and "/keep/" in target} == expected
