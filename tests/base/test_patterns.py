from __future__ import annotations

import pytest

from monitor.base.patterns import (
    MAX_COMPILED,
    MAX_PATTERN_CHARS,
    _compiled,
    _remembered,
    check_pattern,
    matches_pattern,
    pattern_problem,
)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("gpu[", "missing ]"),
        ("(a", "missing )"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)b", "invalid perl operator"),
        ("a{1001}", "invalid repetition size"),
        ("(?:(?:a|bc|d)?){900}", "too complex"),
        ("\\pL" * 1000, "pattern too large"),
        ("\ud800", "not valid text"),
        ("a" * (MAX_PATTERN_CHARS + 1), "too long"),
    ],
)
def test_a_pattern_is_rejected_in_words(pattern: str, says: str) -> None:
    assert says in (pattern_problem(pattern) or "")
    assert matches_pattern(pattern, pattern) is None
    with pytest.raises(ValueError, match="pattern"):
        check_pattern(pattern)


def test_a_long_pattern_is_quoted_in_part() -> None:
    assert len(pattern_problem("a" * 100_000) or "") < 300


@pytest.mark.parametrize("text", ["gpu-1", "gpu-1" + "0" * 300, "", "\ud800", "a\x00b"])
def test_any_text_is_matched_to_its_end(text: str) -> None:
    assert matches_pattern(".*", text) is True
    assert matches_pattern("gpu-[0-9]+", text) is text.startswith("gpu")
    assert matches_pattern("gpu", text) is False


def test_names_in_an_alternation_may_be_many() -> None:
    assert pattern_problem("|".join(f"gpu-node-{number:03d}" for number in range(300))) is None


def test_compiled_patterns_and_long_texts_are_not_kept_for_ever() -> None:
    for number in range(MAX_COMPILED + 50):
        check_pattern(f"gpu-{number}")
    assert _compiled.cache_info().currsize == MAX_COMPILED
    before = _remembered.cache_info().currsize
    assert matches_pattern("a+", "a" * 10_000)
    assert _remembered.cache_info().currsize == before
