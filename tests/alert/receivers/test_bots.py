"""WeCom, DingTalk and Feishu always answer 200: each code of their tables, and whether it is retried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from monitor.alert.receivers.base import RateLimit
from tests.alert.receivers.batches import batch, receiver, refusal
from tests.support.receivers.bots import Bot, DingTalkBot, FeishuBot, WeComBot
from tests.support.receivers.http_server import Behaviour, says

BOTS: dict[str, type[Bot]] = {"wecom": WeComBot, "dingtalk": DingTalkBot, "feishu": FeishuBot}
CODES = [
    # The most frequent codes, then some of each documentation, then an undocumented one.
    ("wecom", 45009, True), ("wecom", -1, True), ("wecom", 45033, True), ("wecom", 93000, False),
    ("wecom", 93008, False), ("wecom", 44004, False), ("wecom", 99999, True),
    ("dingtalk", 130101, True), ("dingtalk", 310000, False), ("dingtalk", 460101, False),
    ("dingtalk", -1, True), ("dingtalk", 410100, True), ("dingtalk", 300005, False), ("dingtalk", 430102, False),
    ("dingtalk", 99999, True),
    ("feishu", 11232, True), ("feishu", 9499, True), ("feishu", 19021, False), ("feishu", 19022, False),
    ("feishu", 19024, False), ("feishu", 19001, False), ("feishu", 99999, True),
]  # fmt: skip


@pytest.fixture(params=BOTS)
def bot(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    with BOTS[request.param]() as server:
        yield request.param, server


@pytest.mark.parametrize(("kind", "code", "retryable"), CODES)
def test_every_code_of_the_tables(kind: str, code: int, retryable: bool) -> None:
    server: Any = BOTS[kind]()
    with server:
        server.force = code
        error = refusal(receiver(kind, server.url))
    assert error.retryable is retryable
    assert str(error) == f"127.0.0.1:{server.port} answered {code} as the test wants it"
    assert len(server.asked) == 1


def test_taken(bot: tuple[str, Any]) -> None:
    kind, server = bot
    assert receiver(kind, server.url).deliver(batch()) in ("0 ok", "0 success")
    assert len(server.taken) == 1
    assert server.asked[0].headers["x-gpuwarden-id"] == "batch-1"


NO_BOT: list[Behaviour] = [
    says(200, b"<html>Please log in to the guest network</html>"),
    says(200, b""),
    says(200, []),
    says(200, {"message": "ok"}),
    says(200, {"errcode": "none", "code": None}),
    says(200, b'{"errcode": 0'),
    says(200, b"\xff\xfe"),
    says(204),
]


@pytest.mark.parametrize("behave", NO_BOT)
def test_an_answer_that_is_not_the_bots_is_no_success(bot: tuple[str, Any], behave: Behaviour) -> None:
    kind, server = bot
    server.behave = behave
    error = refusal(receiver(kind, server.url))
    assert (error.retryable, "but not like a bot" in str(error)) == (True, True)


def test_a_wrong_key_is_told_by_each_in_its_own_way(bot: tuple[str, Any]) -> None:
    kind, server = bot
    error = refusal(receiver(kind, server.url.replace("693a91f6", "ffffffff")))
    assert error.retryable is False
    assert "ffffffff" not in str(error)


def test_too_many_in_a_minute(bot: tuple[str, Any]) -> None:
    kind, server = bot
    to = receiver(kind, server.url)
    assert to.pace.count is not None
    server.clock = iter_clock(0.25)
    for _ in range(to.pace.count):
        to.deliver(batch())
    error = refusal(to)
    assert error.retryable
    assert error.after == (60.0 if kind == "dingtalk" else None)


def iter_clock(step: float) -> Any:
    """Clock that advances by `step` on each reading."""
    looks = iter(range(1_000_000))
    return lambda: 1_700_000_000.0 + step * next(looks)


@pytest.mark.parametrize(
    ("kind", "pace"),
    [
        ("wecom", RateLimit(count=20, window=60.0)),
        ("dingtalk", RateLimit(count=20, window=60.0)),
        ("feishu", RateLimit(count=100, window=60.0, gap=0.2)),
        ("slack", RateLimit(gap=1.0)),
        ("webhook", RateLimit()),
        ("alertmanager", RateLimit()),
        ("console", RateLimit()),
        ("apprise", RateLimit()),
    ],
)
def test_the_pace_of_each_kind(kind: str, pace: RateLimit) -> None:
    assert receiver(kind, "http://127.0.0.1/").pace == pace
    assert receiver(kind, "http://127.0.0.1/", pace=RateLimit(count=1)).pace == RateLimit(count=1)
