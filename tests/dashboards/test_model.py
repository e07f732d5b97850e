"""Consistency of the dashboards in Grafana's model: ids, grid positions, variables and links. No Grafana runs here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import combinations
from string import ascii_uppercase
from typing import Any

import pytest

from dashboards.expressions import VARIABLE
from dashboards.generate import documents

DOCUMENTS = {document["uid"]: document for document in documents().values()}
TYPES = {"timeseries", "stat", "table", "bargauge", "state-timeline", "status-history", "row"}
# Variables that Grafana sets.
BUILT_IN = {"__rate_interval", "__range", "__interval", "__field", "__value", "__url_time_range"}
every_dashboard = pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for each in value.values() for text in _strings(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in _strings(each))


def test_there_are_four_in_each_language() -> None:
    names = {"gpuwarden-cluster", "gpuwarden-gpus", "gpuwarden-storage", "gpuwarden-monitor"}
    assert set(DOCUMENTS) == names | {f"{name}-zh" for name in names}
    assert len({document["title"] for document in DOCUMENTS.values()}) == 8


@every_dashboard
def test_the_frame(document: dict[str, Any]) -> None:
    assert document["time"] == {"from": "now-6h", "to": "now"}
    assert document["refresh"] == "30s"
    assert document["schemaVersion"] == 41
    assert "id" not in document  # Grafana assigns it
    datasource = document["templating"]["list"][0]
    assert (datasource["name"], datasource["type"], datasource["query"]) == ("datasource", "datasource", "prometheus")


@every_dashboard
def test_panels_have_their_own_numbers_and_places(document: dict[str, Any]) -> None:
    panels = document["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {panel["type"] for panel in panels} <= TYPES
    for panel in panels:
        position = panel["gridPos"]
        assert 0 <= position["x"] < position["x"] + position["w"] <= 24, panel["title"]
        assert position["h"] > 0, panel["title"]
    for one, other in combinations(panels, 2):
        assert not _overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])


def _overlap(a: dict[str, int], b: dict[str, int]) -> bool:
    beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
    above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
    return not beside and not above


@every_dashboard
def test_every_panel_says_what_it_is_and_asks_something(document: dict[str, Any]) -> None:
    titles = [panel["title"] for panel in document["panels"] if panel["type"] != "row"]
    assert len(titles) == len(set(titles))
    for panel in document["panels"]:
        if panel["type"] == "row":
            continue
        assert len(panel["description"]) > 5, panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == list(ascii_uppercase[: len(letters) or 1])
        assert "unit" in panel["fieldConfig"]["defaults"] or panel["fieldConfig"]["defaults"]["mappings"]
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["value"] is None


@every_dashboard
def test_every_data_source_is_the_variable(document: dict[str, Any]) -> None:
    targets = [target for panel in document["panels"] for target in panel.get("targets", ())]
    panels = [panel for panel in document["panels"] if panel["type"] != "row"]
    variables = [each for each in document["templating"]["list"] if each["type"] == "query"]
    annotations = [each for each in document["annotations"]["list"] if not each.get("builtIn")]
    for each in (*targets, *panels, *variables, *annotations):
        assert each["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@every_dashboard
def test_variables_are_defined_and_used(document: dict[str, Any]) -> None:
    defined = {each["name"] for each in document["templating"]["list"]}
    used = {match[1] or match[2] for text in _strings(document) for match in VARIABLE.finditer(text)}
    assert used - BUILT_IN - {"__all"} == defined


@every_dashboard
def test_links_lead_to_a_dashboard_of_the_language_that_has_the_variable(document: dict[str, Any]) -> None:
    links = re.findall(r"/d/([\w-]+)(?:\?([^\"]*))?", json.dumps(document, ensure_ascii=False))
    assert links
    for uid, query in links:
        known = {each["name"] for each in DOCUMENTS[uid]["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", query)) <= known
        if query:
            assert DOCUMENTS[uid]["tags"] == document["tags"]
    (others,) = (link for link in document["links"] if link["type"] == "dashboards")
    assert len([each for each in DOCUMENTS.values() if each["tags"] == others["tags"]]) == 4


@every_dashboard
def test_columns_of_tables_exist(document: dict[str, Any]) -> None:
    """A column is a label that its query keeps or the value of a query, and every value is either shown or hidden."""
    for panel in document["panels"]:
        if panel["type"] != "table":
            continue
        organize = next(each["options"] for each in panel["transformations"] if each["id"] == "organize")
        letters = [target["refId"] for target in panel["targets"]]
        values = {f"Value #{letter}" for letter in letters} if len(letters) > 1 else {"Value"}
        kept = {
            label.strip()
            for target in panel["targets"]
            for labels in re.findall(r" by \(([^)]*)\)", target["expr"])
            for label in labels.split(",")
        }
        named = set(organize["renameByName"])
        assert named <= kept | values, panel["title"]
        assert values <= named | set(organize["excludeByName"]), panel["title"]
        titles = list(organize["renameByName"].values())
        assert len(titles) == len(set(titles)), panel["title"]
        overridden = {each["matcher"]["options"] for each in panel["fieldConfig"]["overrides"]}
        assert overridden <= set(titles)
        assert {each["displayName"] for each in panel["options"]["sortBy"]} <= set(titles)
