from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from monitor.alert.receivers.base import OwnerContact
from tests.alert.receivers.batches import batch, finding, notification, receiver, refusal, subject
from tests.support.receivers.bots import WeComBot

OWNERS = {
    "zhang": OwnerContact(wecom="zhangsan"),
    "li": OwnerContact(mobile="13800001111"),
    "wang": OwnerContact(mail="w@example.com"),
}


@pytest.fixture
def bot() -> Iterator[WeComBot]:
    with WeComBot() as server:
        yield server


def about(*users: str, label: str = "zhang") -> Any:
    return batch(notification(subject(finding(user=label)), users=users))


def test_markdown_with_colour(bot: WeComBot) -> None:
    receiver("wecom", bot.url).deliver(batch())
    message = bot.taken[0]
    assert message["msgtype"] == "markdown"
    assert '<font color="warning">' in message["markdown"]["content"]


def test_in_chinese(bot: WeComBot) -> None:
    receiver("wecom", bot.url, language="zh").deliver(batch())
    assert "磁盘" in bot.asked[0].body.decode()


def test_an_owner_is_mentioned_by_id(bot: WeComBot) -> None:
    receiver("wecom", bot.url, owners=OWNERS).deliver(about("zhang"))
    assert "<@zhangsan>" in bot.taken[0]["markdown"]["content"]


def test_who_is_always_mentioned(bot: WeComBot) -> None:
    receiver("wecom", bot.url, mention=("oncall", "boss")).deliver(batch())
    assert bot.taken[0]["markdown"]["content"].endswith("\n<@oncall><@boss>")


MENTIONS: list[tuple[str, tuple[str, ...], tuple[str, ...], dict[str, list[str]]]] = [
    (
        "a mobile number",
        ("zhang", "li"),
        (),
        {"mentioned_list": ["zhangsan"], "mentioned_mobile_list": ["13800001111"]},
    ),
    ("everybody", (), ("all",), {"mentioned_list": ["@all"]}),
    ("everybody and somebody", ("zhang",), ("oncall", "all"), {"mentioned_list": ["oncall", "@all", "zhangsan"]}),
]


@pytest.mark.parametrize(("users", "always", "called"), [row[1:] for row in MENTIONS], ids=[row[0] for row in MENTIONS])
def test_what_only_text_can_mention_goes_as_text(
    bot: WeComBot, users: tuple[str, ...], always: tuple[str, ...], called: dict[str, list[str]]
) -> None:
    receiver("wecom", bot.url, owners=OWNERS, mention=always).deliver(about(*users))
    text = dict(bot.taken[0]["text"])
    content = text.pop("content")
    assert text == called
    assert "<font" not in content
    assert len(bot.asked) == 1


def test_who_has_no_id_here_costs_nobody_the_colours(bot: WeComBot) -> None:
    receiver("wecom", bot.url, owners=OWNERS).deliver(about("wang", "nobody"))
    assert bot.taken[0]["msgtype"] == "markdown"


@pytest.mark.parametrize("code", [40008, 40058, 40033])
def test_what_is_refused_as_markdown_goes_as_text_at_the_next_attempt(bot: WeComBot, code: int) -> None:
    to = receiver("wecom", bot.url, owners=OWNERS)
    bot.force = code
    error = refusal(to, about("zhang"))
    assert (error.retryable, "the next attempt sends text" in str(error)) == (True, True)
    assert len(bot.asked) == 1
    bot.force = None
    to.deliver(about("zhang"))
    assert bot.taken[0]["text"]["mentioned_list"] == ["zhangsan"]
    to.deliver(batch(id="another"))
    assert bot.taken[1]["msgtype"] == "markdown"


@pytest.mark.parametrize("code", [40008, 40058])
def test_what_is_refused_as_text_too_is_parked(bot: WeComBot, code: int) -> None:
    to = receiver("wecom", bot.url)
    bot.force = code
    assert [refusal(to).retryable, refusal(to).retryable] == [True, False]
    assert [asked.json["msgtype"] for asked in bot.asked] == ["markdown", "text"]


@pytest.mark.parametrize("always", [("oncall",), ("all",)])
def test_however_much_there_is_to_tell_the_bot_takes_it(bot: WeComBot, always: tuple[str, ...]) -> None:
    many = [subject(finding(mount=f"/数据/{number}" * 20)) for number in range(60)]
    waiting = [notification(each, users=("zhang",)) for each in many]
    to = receiver("wecom", bot.url, owners=OWNERS, mention=always, language="zh", page="https://warden.example")
    to.deliver(batch(notification(*many, users=("zhang",))))
    held = to.capacity(waiting)
    assert 1 <= held < len(waiting)
    to.deliver(batch(*waiting[:held]))
    to.deliver(batch(*waiting))  # more than its capacity: still accepted
    assert len(bot.taken) == 3


def test_a_template_of_the_users_own(bot: WeComBot) -> None:
    to = receiver("wecom", bot.url, template="**{{ title }}** on {{ cluster }}", cluster="prod", mention=("oncall",))
    to.deliver(batch())
    content = bot.taken[0]["markdown"]["content"]
    assert content.startswith("**")
    assert content.endswith("** on prod\n<@oncall>")
    to.deliver(batch(notification(), notification(subject(finding("/b")))))
    assert "on prod" not in bot.taken[1]["markdown"]["content"], "several at once are told in our words"


def test_a_template_that_fails_costs_no_alert(bot: WeComBot) -> None:
    receiver("wecom", bot.url, template="{{ nonsense.of.all }}").deliver(batch())
    assert "/data" in bot.taken[0]["markdown"]["content"]
