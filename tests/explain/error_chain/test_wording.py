"""Wording of each program's source: the explanation names this class, or says that it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.explain.corpus_cases import explain_row
from tests.explain.corpus_classes import class_of
from tests.explain.corpus_rows import MESSAGE_FILES, CorpusRow, load_classes, unescape

WORDING_DIR = Path(__file__).parent / "wording"
CLASSES = load_classes()


def rows(name: str) -> list[CorpusRow]:
    path = WORDING_DIR / f"{name}.tsv"
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("#"):
            continue
        expect, subject, message = line.split("\t")
        messages = tuple(unescape(path, number, message).split(" ||| "))
        found.append(CorpusRow(path, number, False, (expect,), "", "", subject, messages, (), ()))
    return found


@pytest.mark.parametrize("name", MESSAGE_FILES)
def test_wording_of_the_sources(name: str) -> None:
    several = rows(name)
    assert len(several) > 100
    answers = [(row.where, class_of(explain_row(row)), row.expect[0]) for row in several]
    assert [each for each in answers if each[1] != each[2]] == []
    assert {row.expect[0] for row in several} <= CLASSES.keys()
