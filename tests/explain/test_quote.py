# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.quote import MAX_QUOTE_CHARS, quote, redact

TEXTS: list[tuple[str, str | None, str]] = [
    ("nothing", None, ""),
    ("one line of several", "mount failed:\n  exit status 32\r\n", "mount failed: exit status 32"),
    ("no escape reaches a terminal", "a\x1b[31mb\x07", "a?[31mb?"),
    ("a signed address", 'Get "https://s3.lab/b?X-Amz-Signature=562c&X-Amz-Credential=abc": EOF', 'Get "https://s3.lab/b?***": EOF'),
    ("a name and password in an address", "https://bob:hunter2@harbor.lab/v2/", "https://***@harbor.lab/v2/"),
    ("a password", "login failed: password=hunter2, retry", "login failed: password=***, retry"),
    ("a password in JSON", '{"password": "hunter2", "x": 1}', '{"password": ***", "x": 1}'),
    ("a token in JSON", '{"access_token":"abcdef"}', '{"access_token":***"}'),
    ("a header", "Authorization: Bearer abcdefgh.ijkl", "Authorization: Bearer ***"),
    ("a JWT", "token eyJhbGciOi.eyJzdWIi.sig is old", "token *** is old"),
    ("a variable", "WANDB_API_KEY=0123456789abcdef python train.py", "WANDB_API_KEY=*** python train.py"),
    ("the name of a secret is none", 'secret "wandb" not found', 'secret "wandb" not found'),
    ("the word is none", "failed to fetch anonymous token: unexpected status: 401", "failed to fetch anonymous token: unexpected status: 401"),
    ("a token of a hub", "hf_abcdefghijklmnop rejected", "*** rejected"),
    ("a sentence about a token", "token authentication required", "token authentication required"),
    ("Chinese stays", "找不到文件", "找不到文件"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given_text", "expect"), TEXTS, ids=[t[0] for t in TEXTS])
def test_clean(name: str, given_text: str | None, expect: str) -> None:
    assert redact(given_text) == expect


def test_long_messages_keep_both_ends() -> None:
    quoted = quote("what failed " + "x" * 5000 + " why it failed")
    assert quoted.startswith("what failed")
    assert quoted.endswith("why it failed")
    assert len(quoted) <= MAX_QUOTE_CHARS + 3


def test_just_short_enough() -> None:
    assert quote("x" * MAX_QUOTE_CHARS) == "x" * MAX_QUOTE_CHARS


@given(st.text())
def test_always_one_printable_line(text: str) -> None:
    assert quote(text).isprintable()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("text", ["a-" * 1024, "https://" + "a" * 2040, '"' * 2048, "token" * 400, "eyJ" * 700])
def test_no_text_takes_long(text: str) -> None:
    for _ in range(50):
        redact(text)
