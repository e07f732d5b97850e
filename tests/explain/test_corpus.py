"""The explanations on the development rows of the corpus, as `make corpus` scores them."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.explain.keys import Key
from tests.explain import score
from tests.explain.corpus_classes import _BY_KEY
from tests.explain.corpus_rows import CORPUS_DIR, CorpusRow, load_classes

MIN_RIGHT_PERCENT = 95


@pytest.fixture(scope="module")
def scores() -> dict[str, list[score.Score]]:
    return score.score_files(CORPUS_DIR)


def test_no_answer_is_wrong(scores: dict[str, list[score.Score]]) -> None:
    wrong = [each for each in score.misses(scores) if each.verdict == "wrong"]
    assert [(each.row.where, each.answer, each.row.expect) for each in wrong] == []


def test_nearly_all_answers_are_right(scores: dict[str, list[score.Score]]) -> None:
    for name, several in scores.items():
        right = sum(each.verdict == "right" for each in several)
        assert 100 * right / len(several) >= MIN_RIGHT_PERCENT, name


def row(expect: str, must: str = "") -> CorpusRow:
    says = tuple(text[1:] for text in must.split(";") if text.startswith("+"))
    silent = tuple(text[1:] for text in must.split(";") if text.startswith("-"))
    message = 'Head "https://harbor.lab/v2/": proxyconnect tcp: dial tcp 10.0.0.8:3128: connect: connection refused'
    return CorpusRow(Path("pulls.tsv"), 1, False, (expect,), "", "", "harbor.lab/a:1", (message,), says, silent)


@pytest.mark.parametrize(
    ("expect", "must", "verdict"),
    [
        ("proxy", "", "right"),
        ("proxy", "+10.0.0.8:3128", "right"),
        ("proxy", "+the moon", "wrong"),
        ("proxy", "-HTTP proxy", "wrong"),
        ("proxy", "-connection refused", "right"),  # only the quoted message says it
        ("dns", "", "wrong"),
    ],
)
def test_the_scorer_tells_right_from_wrong(expect: str, must: str, verdict: str) -> None:
    assert score.score_row(row(expect, must), load_classes()).verdict == verdict


def test_the_table_names_texts_that_exist() -> None:
    assert _BY_KEY.keys() - {key.value for key in Key} == set()
