from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from monitor.alert.delivery.heartbeat import Heartbeat, alive
from monitor.base.endpoint import Endpoint
from tests.support import wait_until
from tests.support.fake_agents import FakeAgent, answers


@pytest.mark.parametrize(
    ("looked_at", "expect"), [(None, False), (100.0, True), (70.1, True), (70.0, False), (-1000.0, False)]
)
def test_who_has_looked_lately_is_alive(looked_at: float | None, expect: bool) -> None:
    assert alive(looked_at, 10.0, 100.0) is expect


@contextlib.contextmanager
def beating(url: str, looked_at: Callable[[], float | None]) -> Iterator[None]:
    heartbeat = Heartbeat(Endpoint(url=url, timeout=2.0), 0.1, looked_at)
    heartbeat.start()
    try:
        yield
    finally:
        heartbeat.stop()
        wait_until(lambda: not [t for t in threading.enumerate() if t.name == "heartbeat"], 30, "it has ended")


def test_it_beats_only_while_somebody_looks(caplog: pytest.LogCaptureFixture) -> None:
    looked: list[float | None] = [None]
    with FakeAgent(answers(b"OK")) as server, beating(f"http://{server.target}/ping/s3cret", lambda: looked[0]):
        time.sleep(0.3)
        assert server.paths == []
        looked[0] = time.monotonic() + 1000.0
        wait_until(lambda: len(server.paths) >= 3, 30, "it beats")
        looked[0] = time.monotonic() - 1.0
        wait_until(lambda: "no heartbeat is sent" in caplog.text, 30, "it is said")
        beats = len(server.paths)
        time.sleep(0.4)
        assert len(server.paths) == beats
    assert set(server.paths) == {"/ping/s3cret"}
    assert "s3cret" not in caplog.text


def test_that_it_is_not_heard_is_said_once_and_that_it_is_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "monitor.alert.delivery.heartbeat")
    replies = [answers(b"", 500)] * 3 + [answers(b"OK")] * 100
    with (
        FakeAgent(lambda *given: replies.pop(0)(*given)) as server,
        beating(f"http://{server.target}/s3cret", time.monotonic),
    ):
        wait_until(lambda: "succeeds again" in caplog.text, 30, "it is heard again")
    assert caplog.text.count("heartbeat failed") == 1
    assert "s3cret" not in caplog.text
