from __future__ import annotations

import time

import pytest

from monitor.alert.model import NotificationReason, Phase
from monitor.alert.receivers.base import OwnerContact
from monitor.facts.findings import Severity
from tests.alert.receivers.batches import batch, finding, notification, receiver, refusal, subject
from tests.support.receivers.bots import FeishuBot
from tests.support.receivers.http_server import says

SECRET = "feishu-secret-4711"


def test_a_card() -> None:
    with FeishuBot() as bot:
        to = receiver("feishu", bot.url, owners={"zhang": OwnerContact(feishu="ou_7d8a")}, mention=("ou_oncall", "all"))
        to.deliver(batch(notification(subject(finding(user="zhang")), users=("zhang",))))
    card = bot.taken[0]["card"]
    content = card["elements"][0]["content"]
    assert "<at id=ou_7d8a></at>" in content
    assert content.endswith("\n<at id=ou_oncall></at><at id=all></at>")
    assert card["header"]["title"]["content"]
    assert card["header"]["title"]["content"] not in content, "the title is in the header"


@pytest.mark.parametrize(
    ("severity", "phase", "colour"),
    [
        (Severity.CRITICAL, Phase.FIRING, "red"),
        (Severity.WARNING, Phase.FIRING, "orange"),
        (Severity.INFO, Phase.FIRING, "blue"),
        (Severity.CRITICAL, Phase.RESOLVED, "green"),
    ],
)
def test_the_colour_says_how_bad_it_is(severity: Severity, phase: Phase, colour: str) -> None:
    reason = NotificationReason.RESOLVED if phase is Phase.RESOLVED else NotificationReason.NEW
    with FeishuBot() as bot:
        to = receiver("feishu", bot.url)
        to.deliver(batch(notification(subject(finding(severity=severity), phase), reason=reason)))
    assert bot.taken[0]["card"]["header"]["template"] == colour


def test_signed() -> None:
    with FeishuBot(secret=SECRET) as bot:
        assert receiver("feishu", bot.url, secret=SECRET).deliver(batch()) == "0 success"


@pytest.mark.parametrize(("secret", "late"), [(None, 0.0), ("another-secret", 0.0), (SECRET, 4000.0)])
def test_a_signature_that_is_not_right_is_not_tried_again(secret: str | None, late: float) -> None:
    with FeishuBot(secret=SECRET) as bot:
        error = refusal(receiver("feishu", bot.url, secret=secret), batch(at=time.time() - late))
    assert (error.retryable, "19021 sign match fail" in str(error)) == (False, True)


def test_a_keyword_that_is_missing_is_not_tried_again() -> None:
    with FeishuBot(keyword="no such word") as bot:
        assert refusal(receiver("feishu", bot.url)).retryable is False


@pytest.mark.parametrize(
    ("body", "taken"),
    [
        ({"StatusCode": 0, "StatusMessage": "success"}, True),
        ({"StatusCode": 11232, "StatusMessage": "too many"}, False),
        ({"code": 0, "StatusCode": 19001}, False),
    ],
)
def test_the_older_fields_count_too(body: dict[str, object], taken: bool) -> None:
    with FeishuBot() as bot:
        bot.behave = says(200, body)
        to = receiver("feishu", bot.url)
        assert (to.deliver(batch()) == "0 success") if taken else refusal(to)


def test_however_much_there_is_to_tell_the_bot_takes_it() -> None:
    quotes = '"' * 20  # each takes two bytes in JSON
    waiting = [notification(subject(finding(mount=f"/{quotes}数据/{number}/"))) for number in range(1000)]
    with FeishuBot() as bot:
        to = receiver("feishu", bot.url, language="zh")
        held = to.capacity(waiting)
        to.deliver(batch(*waiting[:held]))
        to.deliver(batch(*waiting))
    assert 20 < held < 1000
    assert all(f"/{number}/" in bot.taken[0]["card"]["elements"][0]["content"] for number in range(held)), (
        "each is told of"
    )
    assert len(bot.taken) == 2
