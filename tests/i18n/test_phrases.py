"""Messages of validators and of the command line in Chinese."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from monitor.i18n.phrases import MAX_TRANSLATED_CHARS, translated
from monitor.i18n.zh.errors import PHRASES
from tests.golden.capture import FILES

CHINESE = re.compile("[一-鿿]")
FIELD = re.compile(r"\{(\w+)\}")
COUNT = re.compile(r"\d+ errors?")  # a text of its own


def messages(recorded: Any) -> Iterator[str]:
    """The messages in the record of all configuration errors: what follows source and setting."""
    if isinstance(recorded, dict):
        recorded = list(recorded.values())
    if isinstance(recorded, list):
        if recorded and isinstance(recorded[-1], str) and not COUNT.fullmatch(recorded[-1]):
            yield recorded[-1]
        for each in recorded:
            yield from messages(each)


def test_every_error_of_a_configuration_is_translated() -> None:
    found = set(messages(json.loads((FILES / "config-errors.json").read_text())))
    assert len(found) > 100
    untranslated = [text for text in found if not all(CHINESE.search(c) for c in translated(text, "zh").split("；"))]
    assert untranslated == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "'soon' is not a duration; write for example 30s, 15m, 1h30m or 7d",
            "'soon' 不是时长；例如 30s、15m、1h30m、7d",
        ),
        ("unknown key; did you mean 'static'?", "没有这个名字；是不是 'static'？"),
        ("route 2 leads to 'x': unknown receiver; there are a, b", "第 2 条路由指向 'x'：没有这个名字；可用的有 a、b"),
        ("column 1: not valid YAML: remove it", "第 1 列：不是合法的 YAML：请删除"),
        ("Error: Invalid value for '--at': 'x' is not a valid integer.", "错误：'--at' 的值无效：'x' 不是整数。"),
        (
            "Usage: gpuwarden why NAME\nError: Missing argument 'NAME'.",
            "用法：gpuwarden why NAME\n错误：缺少参数 'NAME'。",
        ),
        ("'a b' is not a number; not in the table", "'a b' is not a number; not in the table"),
        ("not in the table", "not in the table"),
        ("", ""),
        ("is empty" + " " * MAX_TRANSLATED_CHARS, "is empty" + " " * MAX_TRANSLATED_CHARS),
    ],
)
def test_clauses_are_translated_together_or_not_at_all(message: str, expected: str) -> None:
    assert translated(message, "zh") == expected
    assert translated(message, "en") == message


def test_each_translation_has_the_fields_of_its_template() -> None:
    assert [english for english, text in PHRASES if set(FIELD.findall(english)) < set(FIELD.findall(text))] == []
    assert [english for english, text in PHRASES if not CHINESE.search(text)] == []


def test_no_template_comes_after_one_that_matches_the_same() -> None:
    hidden = [
        english for english, text in PHRASES
        if translated(FIELD.sub("0", english), "zh") != FIELD.sub("0", text)
    ]  # fmt: skip
    assert hidden == []
