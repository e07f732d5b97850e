from __future__ import annotations

import time

import pytest

from monitor.alert.receivers.base import OwnerContact
from monitor.alert.receivers.dingtalk import signed
from tests.alert.receivers.batches import batch, finding, notification, receiver, refusal, subject
from tests.support.receivers.bots import DingTalkBot

SECRET = "SECdd4f1a2b3c4d5e6f"
OWNERS = {"zhang": OwnerContact(mobile="13800001111"), "li": OwnerContact(wecom="lisi")}


def test_markdown_that_calls_who_is_always_mentioned_and_the_owners() -> None:
    with DingTalkBot() as bot:
        to = receiver("dingtalk", bot.url, owners=OWNERS, mention=("13900002222", "all"))
        to.deliver(batch(notification(subject(finding(user="zhang")), users=("zhang", "li"))))
    message = bot.taken[0]
    assert message["at"] == {"atMobiles": ["13900002222", "13800001111"], "isAtAll": True}
    assert "@13800001111" in message["markdown"]["text"]
    assert message["markdown"]["text"].endswith("@13900002222")


def test_nobody_is_called_for_nothing() -> None:
    with DingTalkBot() as bot:
        receiver("dingtalk", bot.url).deliver(batch())
    assert bot.taken[0]["at"] == {"atMobiles": [], "isAtAll": False}


def test_signed() -> None:
    with DingTalkBot(secret=SECRET) as bot:
        assert receiver("dingtalk", bot.url, secret=SECRET).deliver(batch()) == "0 ok"


@pytest.mark.parametrize(
    ("secret", "late", "why"),
    [(None, 0.0, "invalid timestamp"), ("SECother00", 0.0, "sign not match"), (SECRET, 4000.0, "invalid timestamp")],
)
def test_a_signature_that_is_not_right_is_not_tried_again(secret: str | None, late: float, why: str) -> None:
    with DingTalkBot(secret=SECRET) as bot:
        error = refusal(receiver("dingtalk", bot.url, secret=secret), batch(at=time.time() - late))
    assert (error.retryable, why in str(error)) == (False, True)


def test_a_keyword_that_is_missing_is_not_tried_again() -> None:
    with DingTalkBot(keyword="no such word") as bot:
        error = refusal(receiver("dingtalk", bot.url))
    assert (error.retryable, "keywords not in content" in str(error)) == (False, True)


def test_the_signature_of_a_known_moment() -> None:
    # hmac_sha256(key="this is a secret", msg="1700000000123\nthis is a secret"), by openssl.
    url = signed("https://oapi.dingtalk.com/robot/send?access_token=x", "this is a secret", 1_700_000_000.123)
    assert url.endswith("&timestamp=1700000000123&sign=rGmG8nr3OK9Ji3MdykCXuiHqcjDT1hYly5eMoBVBMZg%3D")


def test_however_much_there_is_to_tell_the_bot_takes_it() -> None:
    quotes = '"' * 20  # each takes two bytes in JSON
    waiting = [notification(subject(finding(mount=f"/{quotes}数据/{number}/"))) for number in range(1000)]
    with DingTalkBot() as bot:
        to = receiver("dingtalk", bot.url, language="zh")
        held = to.capacity(waiting)
        to.deliver(batch(*waiting[:held]))
        to.deliver(batch(*waiting))
    assert 20 < held < 1000
    assert all(f"/{number}/" in bot.taken[0]["markdown"]["text"] for number in range(held)), "each is told of"
    assert len(bot.taken) == 2
    assert len(bot.asked[0].body) > 10_000
