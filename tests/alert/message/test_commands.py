# ruff: noqa: E501  # a case is a row of a table
from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.alert.message.commands import with_commands
from monitor.alert.message.document import SpanStyle
from monitor.i18n import CATALOGS, fields, say

ADVICE = sorted(key for key in CATALOGS["en"] if key.endswith("advice"))
CASES = [
    ("at the end", "See why: kubectl describe node gpu01", ["kubectl describe node gpu01"]),
    ("before a sentence", "On n: getent hosts h. If it fails, ask.", ["getent hosts h"]),
    ("two", "If not: ssh n systemctl restart kubelet; journalctl -u kubelet -n 100. Or not.", ["ssh n systemctl restart kubelet", "journalctl -u kubelet -n 100"]),
    ("in brackets", "See why (ps -o pid,stat -p 7); then: kill -9 7", ["ps -o pid,stat -p 7", "kill -9 7"]),
    ("a pipe", "find what is large: du -xh --max-depth=2 /data | sort -rh | head, now", ["du -xh --max-depth=2 /data | sort -rh | head"]),
    ("a word that is a command too", "Ask the last user to mount it, or kill the process", []),
    ("a path that ends in a command", "Look at /usr/bin/docker and overlay2/docker is full", []),
    ("Chinese around it", "在 gpu01 上执行 docker inspect abc（或 crictl inspect abc）看是谁", ["docker inspect abc", "crictl inspect abc"]),
    ("Chinese after it", "清空日志（truncate -s 0 文件）", ["truncate -s 0"]),
    ("explained", "iotop -oPa shows the heaviest readers", ["iotop -oPa"]),
    ("none", "Use another namespace.", []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expect"), CASES, ids=[case[0] for case in CASES])
def test_with_commands(name: str, text: str, expect: list[str]) -> None:
    assert [span.text for span in with_commands(text) if span.style is SpanStyle.CODE] == expect


@pytest.mark.parametrize("lang", CATALOGS)
def test_commands_of_the_catalogs_are_found(lang: str) -> None:
    missed = re.compile(r"(?:kubectl|nvidia-smi|systemctl|journalctl) -?\w+", re.ASCII)
    for key in ADVICE:
        values = {name: "/x" if name in ("mount", "path") else "x" for name in fields(CATALOGS[lang][key])}
        spans = with_commands(say(lang, key, values))
        assert [span.text for span in spans if span.style is SpanStyle.PLAIN and missed.search(span.text)] == []
    assert len(ADVICE) > 150


@given(st.text())
def test_no_letter_is_lost(text: str) -> None:
    assert "".join(span.text for span in with_commands(text)) == text
