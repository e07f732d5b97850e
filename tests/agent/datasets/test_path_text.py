"""Escaping of file names as text, and back."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.facts.datasets import path_bytes, path_text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"zhang/datasets/a", "zhang/datasets/a"),
        ("数据 1".encode(), "数据 1"),
        (b"100%", "100%25"),
        (b"a\nb\tc", "a%0Ab%09c"),
        (b"caf\xe9", "caf%E9"),
        ("\u202egpj".encode(), "%E2%80%AEgpj"),
        (b"", ""),
    ],
)
def test_both_ways(raw: bytes, text: str) -> None:
    assert path_text(raw) == text
    assert path_bytes(text) == raw


@given(st.binary())
def test_every_name_survives_json(raw: bytes) -> None:
    wire = msgspec.json.encode(path_text(raw))
    assert path_bytes(msgspec.json.decode(wire, type=str)) == raw


@pytest.mark.parametrize("text", ["%2e%2e", "%2F", "%41", "a\nb", "%e9", "\udce9"])
def test_a_second_spelling_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # including UnicodeEncodeError
        path_bytes(text)
