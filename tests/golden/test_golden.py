"""Externally observable formats match the golden files."""

from __future__ import annotations

import pytest

from monitor.alert.receivers.registry import KINDS
from monitor.daemon.metrics import catalogue
from tests.golden.capture import FILES, GOLDEN, UPDATE, difference, stored


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    found = difference(name, stored(name), GOLDEN[name]())
    assert not found, f"{name} differs; if that is meant to be, run `{UPDATE}` and read the diff\n{found}"


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in FILES.iterdir()} == set(GOLDEN)


def test_the_page_of_the_daemon_has_a_sample_of_every_metric() -> None:
    samples = {line.partition(" ")[0].partition("{")[0] for line in stored("daemon.prom").splitlines()}
    assert {each.name for each in catalogue()} <= samples


def test_every_kind_of_receiver_is_captured() -> None:
    assert {f"{kind}.sent.json" for kind in KINDS} <= set(GOLDEN)


def test_a_difference_is_shown_line_by_line() -> None:
    assert difference("x", "a\nb\n", "a\nb\n") == ""
    assert difference("x", "a\nb\n", "a\nc\n").splitlines()[-2:] == ["-b", "+c"]
    assert difference("x", "a\n", "a\r\n") == "x: only line ends differ"
