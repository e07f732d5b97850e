"""Golden messages. After a change, run with UPDATE_GOLDEN=1 and review the difference."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.alert.message.compose import compose
from monitor.alert.message.formats import plain, wecom
from monitor.alert.message.formats.base import Markup, fit
from tests.alert.message.documents import CASES, LOCALES, OWNERS

FOLDER = Path(__file__).parents[2] / "fixtures" / "messages"
FORMATS: dict[str, tuple[Markup, int]] = {"txt": (plain.MARKUP, 20_000), "wecom.txt": (wecom.MARKUP, 4096)}


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("lang", LOCALES)
@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, lang: str, format_name: str) -> None:
    markup, limit = FORMATS[format_name]
    written = fit(compose(CASES[case], LOCALES[lang]), markup, limit, OWNERS) + "\n"
    golden = FOLDER / f"{case}.{lang}.{format_name}"
    if os.environ.get("UPDATE_GOLDEN"):  # review the diff before committing
        golden.write_text(written, encoding="utf-8")
    assert written == golden.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    wanted = {f"{case}.{lang}.{format_name}" for case in CASES for lang in LOCALES for format_name in FORMATS}
    assert {path.name for path in FOLDER.iterdir()} == wanted


@pytest.mark.parametrize("lang", LOCALES)
@pytest.mark.parametrize("case", [case for case in CASES if case != "digest"])
def test_at_most_one_screen(case: str, lang: str) -> None:
    message = compose(CASES[case], LOCALES[lang])
    assert 1 + len(message.lines) <= 14
