"""The reference pages are what the code says now, and nothing that people wrote for them is missing or left over."""

from __future__ import annotations

import pytest

from docs.generate import config_page, metrics_page, rules_page
from docs.generate.explains import explained_by
from docs.generate.pages import ROOT, pages
from docs.generate.settings import Setting, settings
from docs.generate.tables import rows
from monitor.config import messages
from monitor.config.agent import CollectorsConfig
from monitor.config.root import Config
from monitor.detect.rules import RULES
from monitor.i18n import CATALOGS

SETTINGS: tuple[Setting, ...] = tuple(settings())
RULES_ALL = (*RULES, *rules_page.OWN)


def test_every_page_is_what_would_be_made_now() -> None:
    made = pages()
    stale = [path for path, text in made.items() if (ROOT / path).read_text(encoding="utf-8") != text]
    assert stale == [], "run make docs"


def test_every_setting_is_described_and_nothing_else() -> None:
    keys = {config_page.key_of(setting.path) for setting in SETTINGS}
    assert keys - rows("settings.tsv").keys() == set()
    assert rows("settings.tsv").keys() - keys == set()


def test_every_section_has_an_example_and_nothing_else() -> None:
    wanted = {name or "whole" for name in config_page.sections(SETTINGS)}
    assert {file.stem for file in config_page.EXAMPLES.glob("*.yml")} == wanted


def test_every_variable_that_is_named_is_understood() -> None:
    named = [setting.variable for setting in SETTINGS if setting.variable]
    paths = [tuple(name.removeprefix("GPUWARDEN_").lower().split("__")) for name in named]
    assert len(named) > 80
    assert [path for path in paths if messages.field_at(Config, path) is None] == []


def test_every_collector_is_described_and_nothing_else() -> None:
    assert rows("collectors.tsv").keys() == CollectorsConfig.model_fields.keys()


def test_every_rule_and_limit_is_described_and_nothing_else() -> None:
    assert rows("rules.tsv").keys() == {rule.rule for rule in RULES_ALL}
    limits = {rules_page.key_of(rule, name) for rule in RULES for name, _ in rules_page.limits_of(rule)}
    assert rows("limits.tsv").keys() == limits


def test_advice_is_in_the_catalogs_and_for_causes_that_exist() -> None:
    causes = {f"{rule.rule}.{cause}" for rule in RULES for cause in rule.causes}
    assert rows("advice.tsv").keys() - causes == set()
    every = {key for rule in RULES_ALL for cause in rule.causes for key in rules_page.advice(rule, cause)}
    assert every - CATALOGS["en"].keys() == set()


def test_every_metric_is_described_in_chinese_and_nothing_else() -> None:
    areas = [*metrics_page.agent_areas(), *metrics_page.daemon_areas()]
    assert {name.name for _, names in areas for name in names} == rows("metrics.tsv").keys()


@pytest.mark.parametrize("table", ["settings.tsv", "limits.tsv", "collectors.tsv", "kinds.tsv", "areas.tsv"])
def test_both_languages_are_there(table: str) -> None:
    bad = [key for key, cells in rows(table).items() if len(cells) != 2 or not all(cells) or not cells[0].strip()]
    assert bad == []


def test_rules_explain_each_other_as_the_code_says() -> None:
    known = explained_by()
    assert known["image-pull"] == ("registry-unreachable", "disk-full", "node-down")
    assert "disk-full" not in known
