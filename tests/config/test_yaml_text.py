from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.config import yaml_text


def test_of_several_merged_mappings_the_first_wins_and_ones_own_over_all() -> None:
    document = yaml_text.read("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {z: 3, <<: [*a, *b]}")
    assert document.value["c"] == {"x": 1, "y": 1, "z": 3}  # type: ignore[index]  # a wrong shape fails just as well
    assert document.flaws == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1.5", -1.5),
        ("true", True),
        ("null", None),
        ("yes", "yes"),
        ("1:30", "1:30"),
        ("2026-11-16", "2026-11-16"),
        ("0x10", "0x10"),
        ("9" * 5000, "9" * 5000),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("1e5", "1e5"),
        (".inf", ".inf"),
        ("127.0.0.1:9835", "127.0.0.1:9835"),
    ],
)
def test_plain_values_are_what_they_look_like(text: str, value: object) -> None:
    assert yaml_text.read(text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[https://a/?key=1&x=2, b]", ["https://a/?key=1&x=2", "b"]),
        ("{a: [b?], c?d: e?f?g}", {"a": ["b?"], "c?d": "e?f?g"}),
        ("{? a : b}", {"a": "b"}),
        ("a: b?c", {"a": "b?c"}),
    ],
)
def test_addresses_need_no_quotes_inside_brackets(text: str, value: object) -> None:
    document = yaml_text.read(text)
    assert (document.value, document.flaws) == (value, [])


def test_the_line_of_every_value_is_known() -> None:
    document = yaml_text.read("a:\n  - b: 1\n    c:\n      2\n  - 3\n")
    lines = {yaml_text.describe_key(path): line for path, line in document.lines.items()}
    assert lines == {"": 1, "a": 1, "a[0]": 2, "a[0].b": 2, "a[0].c": 3, "a[1]": 5}


@settings(deadline=None)  # passes on a busy machine
@given(st.text(alphabet="ab:-&*[]{}!|>'\"#%@`,?<~ \n\t0\x00\ud800", max_size=60))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    document = yaml_text.read(text)
    assert all(flaw.line >= 1 and flaw.message for flaw in document.flaws)


MANY_KEYS = ", ".join(f"key{number}: 1" for number in range(2000))
MANY_MERGES = ", ".join(["*a"] * 2000)


# The cost of parsing is bounded first: without the bound, each of these takes seconds to minutes.
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[" * 100_000, "brackets are nested too deeply", id="brackets"),
        pytest.param("\n".join(" " * depth + "a:" for depth in range(60)), "nested more than 40 deep", id="blocks"),
        pytest.param(f"a: &a {{{MANY_KEYS}}}\nb: {{<<: [{MANY_MERGES}]}}", "more than 50000 values", id="merges"),
    ],
)
def test_bombs_are_refused(text: str, message: str) -> None:
    document = yaml_text.read(text)
    assert message in document.flaws[-1].message
