from __future__ import annotations

import sys

import pytest

from tests.alert.receivers.batches import batch, finding, notification, receiver, refusal, subject


def test_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert receiver("console").deliver(batch()) == "written"
    written = capsys.readouterr().out
    assert "/data" in written
    assert written.endswith("\n\n")


def test_what_users_write_does_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    receiver("console").deliver(batch(notification(subject(finding(mount="/\x1b[2Jdata\ud800")))))
    assert "\x1b" not in capsys.readouterr().out


def test_nobody_reads_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, _: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    assert refusal(receiver("console")).retryable


def test_hundreds_fit_into_one() -> None:
    waiting = [notification(subject(finding(mount=f"/{number}"))) for number in range(100)]
    assert receiver("console").capacity(waiting) > 50
