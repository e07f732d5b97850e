from __future__ import annotations

import pytest

from monitor.alert.model import NotificationReason, Phase
from monitor.alert.receivers.base import OwnerContact
from tests.alert.receivers.batches import batch, finding, notification, receiver, refusal, subject
from tests.support.receivers.bots import RateLimit, SlackHook
from tests.support.receivers.http_server import Behaviour, says


def test_a_coloured_section() -> None:
    with SlackHook() as hook:
        to = receiver("slack", hook.url, owners={"zhang": OwnerContact(slack="U024BE7LH")}, mention=("U0ONCALL", "all"))
        assert to.deliver(batch(notification(subject(finding(user="zhang")), users=("zhang",)))) == "200 ok"
    attachment = hook.taken[0]["attachments"][0]
    text = attachment["blocks"][0]["text"]
    assert attachment["color"] == "#d32f2f"
    assert (text["type"], text["verbatim"]) == ("mrkdwn", True)
    assert "<@U024BE7LH>" in text["text"]
    assert text["text"].endswith("\n<@U0ONCALL> <!channel>")


def test_green_when_it_is_over() -> None:
    with SlackHook() as hook:
        over = notification(subject(phase=Phase.RESOLVED), reason=NotificationReason.RESOLVED)
        receiver("slack", hook.url).deliver(batch(over))
    assert hook.taken[0]["attachments"][0]["color"] == "#2e7d32"


ANSWERS: list[tuple[Behaviour, bool, str]] = [
    (says(429, b"rate_limited", Retry_After="30"), True, "429 Too Many Requests: rate_limited"),
    (says(400, b"invalid_payload"), False, "400 Bad Request: invalid_payload"),
    (says(403, b"invalid_token"), False, "403 Forbidden: invalid_token"),
    (says(404, b"no_service"), False, "404 Not Found: no_service"),
    (says(410, b"channel_is_archived"), False, "410 Gone: channel_is_archived"),
    (says(500, b"rollup_error"), True, "500 Internal Server Error: rollup_error"),
    (says(200, b"<html>Please log in</html>"), True, "answered 200, but not like Slack"),
    (says(200, {"success": False}), True, "answered 200, but not like Slack"),
]


@pytest.mark.parametrize(("behave", "retryable", "words"), ANSWERS)
def test_what_it_answers(behave: Behaviour, retryable: bool, words: str) -> None:
    with SlackHook() as hook:
        hook.behave = behave
        error = refusal(receiver("slack", hook.url))
    assert (error.retryable, words in str(error)) == (retryable, True)
    assert error.after == (30.0 if "429" in words else None)


@pytest.mark.parametrize("body", [b"ok", {"success": True}, {"ok": True}])
def test_what_speaks_like_slack_is_understood(body: object) -> None:
    with SlackHook() as hook:
        hook.behave = says(200, body)
        assert receiver("slack", hook.url).deliver(batch()) == "200 ok"


def test_a_second_message_in_a_second_is_for_later() -> None:
    with SlackHook(clock=lambda: 1_700_000_000.0) as hook:
        to = receiver("slack", hook.url)
        to.deliver(batch())
        assert refusal(to).retryable


def test_however_much_there_is_to_tell_slack_takes_it() -> None:
    waiting = [notification(subject(finding(mount=f"/数据/{number}" * 20))) for number in range(100)]
    with SlackHook() as hook:
        to = receiver("slack", hook.url, language="zh", mention=("U0ONCALL",))
        held = to.capacity(waiting)
        to.deliver(batch(*waiting[:held]))
        hook.rate = RateLimit(1)
        to.deliver(batch(*waiting))
    assert 5 < held < 100
    assert len(hook.taken) == 2
