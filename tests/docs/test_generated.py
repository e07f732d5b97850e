"""Generated files are up to date, and every text in their tables has a subject."""

from __future__ import annotations

import pytest

from docs.generate import config_page, metrics_page, rules_page
from docs.generate.pages import generated_files, stale_files
from docs.generate.settings import Setting, settings
from docs.generate.tables import rows
from monitor.config import messages
from monitor.config.agent import CollectorsConfig
from monitor.config.root import Config
from monitor.i18n import CATALOGS

SETTINGS: tuple[Setting, ...] = tuple(settings())


def test_generated_files_are_up_to_date() -> None:
    assert stale_files(generated_files()) == [], "run `make generate`"


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


def test_advice_is_in_the_catalogs_and_for_causes_that_exist() -> None:
    for rule in rules_page.ALL_RULES:
        assert rule.advice.keys() <= set(rule.causes), rule.rule
        keys = {key for cause in rule.causes for key in rules_page.advice_keys(rule, cause)}
        assert keys - CATALOGS["en"].keys() == set()


def test_every_metric_is_described_in_chinese_and_nothing_else() -> None:
    areas = [*metrics_page.agent_areas(), *metrics_page.daemon_areas()]
    assert {name.name for _, names in areas for name in names} == rows("metrics.tsv").keys()


@pytest.mark.parametrize("table", ["settings.tsv", "collectors.tsv", "kinds.tsv", "areas.tsv"])
def test_both_languages_are_there(table: str) -> None:
    bad = [key for key, cells in rows(table).items() if len(cells) != 2 or not all(cells) or not cells[0].strip()]
    assert bad == []
