"""The committed files are up to date, and every language is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboards.generate import documents, text
from dashboards.generate.styles import ALERTS, STATES
from dashboards.generate.words import LANGUAGES, Words, words_of
from monitor.daemon.metrics.alerts import STATES as ALERT_STATES
from monitor.facts.cluster import GpuState

ROOT = Path(__file__).parents[2]
GENERATED = documents()
# States whose colour has another name on the page; a free GPU is white there, so its border counts.
CSS_NAMES = {"busy": "busy3", "idle-held": "idle", "free": "free-edge"}


@pytest.mark.parametrize(("lang", "name"), GENERATED, ids="/".join)
def test_the_committed_file_is_what_is_made(lang: str, name: str) -> None:
    committed = (ROOT / "dashboards" / lang / name).read_text(encoding="utf-8")
    assert committed == text(GENERATED[lang, name]), "run: python -m dashboards.generate"


def test_nothing_else_is_committed() -> None:
    there = {(path.parent.name, path.name) for lang in LANGUAGES for path in (ROOT / "dashboards" / lang).iterdir()}
    assert there == set(GENERATED)


def _keys(words: Words) -> dict[str, set[str]]:
    terms = {key for key in words.terms if not key.startswith("language.")}
    return {"panels": set(words.panels), "rows": set(words.rows), "terms": terms, "boards": set(words.dashboards)}


def test_every_language_says_the_same_things() -> None:
    assert _keys(words_of("zh")) == _keys(words_of("en"))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_word_is_left_over(lang: str) -> None:
    words = words_of(lang)
    elements = [each for (language, _), board in GENERATED.items() if language == lang for each in board["panels"]]
    panels = [panel for panel in elements if panel["type"] != "row"]
    assert sorted(words.panels.values()) == sorted((panel["title"], panel["description"]) for panel in panels)
    assert sorted(words.rows.values()) == sorted(row["title"] for row in elements if row["type"] == "row")
    legends = " ".join(target["legendFormat"] for panel in panels for target in panel["targets"])
    columns = {
        title
        for panel in panels
        for change in panel.get("transformations", ())
        for title in change["options"].get("renameByName", {}).values()
    }
    for term, translation in words.terms.items():
        assert not term.startswith("legend.") or translation in legends, term
        assert not term.startswith("column.") or translation in columns, term


def test_every_state_of_alerts_has_its_colour() -> None:
    assert set(ALERTS) == set(ALERT_STATES)


def test_chinese_is_chinese() -> None:
    words = words_of("zh")
    descriptions = [description for _, description in words.panels.values()]
    assert [text for text in descriptions if not re.search(r"[\u4e00-\u9fff]", text)] == []


def test_the_languages_ask_the_same() -> None:
    def queries(lang: str) -> list[list[str]]:
        return [
            [target["expr"] for panel in document["panels"] for target in panel.get("targets", ())]
            for (language, _), document in GENERATED.items()
            if language == lang
        ]

    assert queries("zh") == queries("en")


def test_the_colours_of_states_are_those_of_the_page() -> None:
    css = (ROOT / "monitor/web/static/page.css").read_text(encoding="utf-8")
    colours = dict(reversed(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})\b", css)))  # the first, light ones win
    assert {state.value: colours[CSS_NAMES.get(state, state)] for state in GpuState} == STATES
