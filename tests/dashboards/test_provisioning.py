"""Grafana's provisioning files name the folders and the data source of the dashboards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dashboards.generate.words import LANGUAGES

ROOT = Path(__file__).parents[2] / "dashboards"


def _read(path: str) -> Any:
    return yaml.safe_load((ROOT / "provisioning" / path).read_text(encoding="utf-8"))


def test_every_language_has_a_provider() -> None:
    providers = _read("dashboards/gpuwarden.yaml")
    assert providers["apiVersion"] == 1
    assert [Path(each["options"]["path"]).name for each in providers["providers"]] == list(LANGUAGES)
    assert {each["type"] for each in providers["providers"]} == {"file"}


def test_the_data_source_is_of_the_type_that_the_dashboards_choose_from() -> None:
    (source,) = _read("datasources/gpuwarden.yaml")["datasources"]
    assert source["type"] == "prometheus"
    assert source["url"].startswith("http")
