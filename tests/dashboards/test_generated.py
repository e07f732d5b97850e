"""What is committed is what the generator makes, in every language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboards.generate import DASHBOARDS, documents
from dashboards.generate.files import text
from dashboards.generate.looks import ALERTS, STATES
from dashboards.generate.words import LANGUAGES, Words, words_of
from monitor.daemon.metrics.alerts import STATES as ALERT_STATES
from monitor.facts.cluster import GpuState

ROOT = Path(__file__).parents[2]
MADE = documents()
# Where the page's colour of a state has another name, or is that of an edge because the card itself is white.
CSS_NAMES = {"busy": "busy3", "idle-held": "idle", "free": "free-edge"}


@pytest.mark.parametrize(("lang", "name"), MADE, ids="/".join)
def test_the_committed_file_is_what_is_made(lang: str, name: str) -> None:
    committed = (ROOT / "dashboards" / lang / name).read_text(encoding="utf-8")
    assert committed == text(MADE[lang, name]), "run: python -m dashboards.generate"


def test_nothing_else_is_committed() -> None:
    there = {(path.parent.name, path.name) for lang in LANGUAGES for path in (ROOT / "dashboards" / lang).iterdir()}
    assert there == set(MADE)


def _keys(words: Words) -> dict[str, set[str]]:
    terms = {key for key in words.terms if not key.startswith("language.")}
    return {"panels": set(words.panels), "rows": set(words.rows), "terms": terms, "boards": set(words.dashboards)}


def test_every_language_says_the_same_things() -> None:
    assert _keys(words_of("zh")) == _keys(words_of("en"))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_word_is_left_over(lang: str) -> None:
    words = words_of(lang)
    assert set(words.panels) == {panel.key for board in DASHBOARDS for row in board.rows for panel in row.panels}
    assert set(words.rows) == {row.key for board in DASHBOARDS for row in board.rows}
    legends = {
        f"legend.{word}"
        for board in DASHBOARDS
        for row in board.rows
        for panel in row.panels
        for query in panel.queries
        for word in re.findall(r"<([a-z-]+)>", query.legend)
    }
    assert {term for term in words.terms if term.startswith("legend.")} == legends
    columns = {f"column.{c.word}" for b in DASHBOARDS for row in b.rows for p in row.panels for c in p.columns}
    assert {term for term in words.terms if term.startswith("column.")} == columns


def test_every_state_of_alerts_has_its_colour() -> None:
    assert set(ALERTS) == set(ALERT_STATES)


def test_chinese_is_chinese() -> None:
    words = words_of("zh")
    said = [about for _, about in words.panels.values()]
    assert [about for about in said if not re.search(r"[\u4e00-\u9fff]", about)] == []


def test_the_languages_ask_the_same() -> None:
    def asked(lang: str) -> list[list[str]]:
        return [
            [target["expr"] for panel in document["panels"] for target in panel.get("targets", ())]
            for (language, _), document in MADE.items()
            if language == lang
        ]

    assert asked("zh") == asked("en")


def test_the_colours_of_states_are_those_of_the_page() -> None:
    css = (ROOT / "monitor/web/static/page.css").read_text(encoding="utf-8")
    colours = dict(reversed(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})\b", css)))  # the first, light ones win
    assert {state.value: colours[CSS_NAMES.get(state, state)] for state in GpuState} == STATES
