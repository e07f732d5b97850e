from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.base.text import ELLIPSIS, natural_key, shorten, shorten_name, shortened_prefix

TEXTS = st.text(max_size=120)  # without surrogates
# Letters with accents, emoji with modifiers and joiners, wide and narrow characters.
CLUSTERS = st.lists(
    st.sampled_from(["e\u0301", "a", " ", "好", "👍🏽", "👩\u200d🔬", "❤\ufe0f", "x\u0327\u0301", "\n"]), max_size=60
).map("".join)
LIMITS = st.integers(min_value=0, max_value=80)


@settings(max_examples=300, deadline=None)
@given(TEXTS | CLUSTERS, LIMITS)
def test_any_text_fits_and_is_marked_exactly_if_it_was_cut(text: str, most: int) -> None:
    short = shorten(text, most)
    assert len(short) <= most
    assert (short == text) == (len(text) <= most)
    if short != text and most > 0:
        assert short.endswith(ELLIPSIS)
        assert text.startswith(short.removesuffix(ELLIPSIS))
    assert short.encode().decode() == short


@settings(max_examples=300, deadline=None)
@given(CLUSTERS, LIMITS)
def test_no_cut_separates_a_letter_from_its_accents(text: str, most: int) -> None:
    kept = shorten(text, most).removesuffix(ELLIPSIS)
    if kept == text or not text.startswith(kept):
        return
    rest = text[len(kept) :].lstrip() or " "
    assert unicodedata.category(rest[0])[0] != "M"
    assert rest[0] != "\u200d"
    assert not 0x1F3FB <= ord(rest[0]) <= 0x1F3FF
    assert not kept.endswith("\u200d")


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS, st.integers(min_value=14, max_value=80))
def test_long_names_stay_different_and_can_be_recognised(one: str, other: str, most: int) -> None:
    short = shorten_name(one, most)
    assert len(short) <= most
    assert (short == shorten_name(other, most)) == (one == other)
    if len(one) > most:
        prefix = shortened_prefix(short)
        assert prefix is not None
        assert one.startswith(prefix)
    else:
        assert short == one


@pytest.mark.parametrize("name", ["harbor.lab/x:1", "", "a…", "…#abc", "x…#0123456789abc"])
def test_a_name_that_is_complete(name: str) -> None:
    assert shortened_prefix(name) is None


def test_stacked_accents_without_end_do_not_undo_the_cut() -> None:
    assert len(shorten("e" + "\u0301" * 1000, 100)) <= 100
    assert len(shorten("e" + "\u0301" * 1000, 100)) > 50


NATURAL = [
    ["gpu-1", "gpu-2", "gpu-10", "gpu-10a", "gpu-11"],
    ["a2b10", "a10b2"],
    ["1", "2", "10", "a"],
    ["node", "node1"],
    ["n" + "9" * 17, "n" + "9" * 40],
    ["n1", "n²", "n٣"],
]


@pytest.mark.parametrize("names", NATURAL, ids=lambda names: names[0])
def test_numbers_in_names_are_sorted_as_numbers(names: list[str]) -> None:
    assert sorted(names, key=natural_key) == names
