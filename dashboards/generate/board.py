"""A dashboard around its panels: variables, links, annotations and layout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from dashboards.generate.links import TAG, uid
from dashboards.generate.panels import PROMETHEUS, Localized
from dashboards.generate.styles import CRITICAL
from dashboards.generate.words import LANGUAGES, Words

# The SDK's version of Grafana. Without it, Grafana migrates panels as if they came from a much older version.
GRAFANA_VERSION = "11.6.0"
# Queries of the variables, by name.
VARIABLES = {
    "node": "label_values(gpuwarden_node_ready, node)",
    "gpu": 'label_values(gpuwarden_gpu_state{node=~"$node"}, gpu)',
    "user": "label_values(gpuwarden_user_gpus, user)",
    "queue": "label_values(gpuwarden_queue_used_gpus, queue)",
    "namespace": "label_values(gpuwarden_pod_requested_gpus, namespace)",
    "mount": "label_values(gpuwarden_disk_read_only, mount)",
    "receiver": "label_values(gpuwarden_outbox_messages, receiver)",
}


class Row(NamedTuple):
    """A heading with the panels below it."""

    key: str
    panels: Sequence[Localized]


class Board(NamedTuple):
    """A dashboard: `name` is the stem of its file and the end of its uid."""

    name: str
    variables: Sequence[str]
    rows: Sequence[Row]


class _PrometheusAnnotation(model.AnnotationQuery):
    """Annotation with the formats of Prometheus' data source, which the SDK lacks."""

    def to_json(self) -> dict[str, object]:
        return super().to_json() | {
            "step": "60s",
            "tagKeys": "cause,namespace,pod",
            "textFormat": "{{node}} {{gpu}} {{service}} {{namespace}} {{pod}}",
            "titleFormat": "{{alertname}}",
            "useValueForTime": False,
        }


def document(board: Board, words: Words) -> dict[str, Any]:
    """Grafana's JSON of a dashboard in a language."""
    title, description = words.dashboards[board.name]
    built = sdk.Dashboard(title).description(description).uid(uid(board.name, words.lang)).tags([TAG, words.lang])
    built.time("now-6h", "now").refresh("30s").tooltip(model.DashboardCursorSync.CROSSHAIR).links(_links(board, words))
    built.with_variable(sdk.DatasourceVariable("datasource").label(words.terms["var.datasource"]).type("prometheus"))
    for name in board.variables:
        built.with_variable(_variable(name, words))
    for row in board.rows:
        built.with_row(sdk.Row(words.rows[row.key]))
        for panel in row.panels:
            built.with_panel(panel(words))
    result = built.build()
    result.annotations = model.AnnotationContainer([_built_in(), _critical_findings(words)])
    for number, panel_or_row in enumerate(result.panels or [], 1):
        panel_or_row.id_val = number
        if isinstance(panel_or_row, model.Panel):
            panel_or_row.plugin_version = GRAFANA_VERSION
    encoded: dict[str, Any] = json.loads(json.dumps(result, cls=JSONEncoder))
    return encoded


def _variable(name: str, words: Words) -> sdk.QueryVariable:
    query = {"qryType": 1, "query": VARIABLES[name], "refId": "PrometheusVariableQueryEditor-VariableQuery"}
    variable = sdk.QueryVariable(name).label(words.terms[f"var.{name}"]).datasource(PROMETHEUS).query(query)
    variable.multi(True).include_all(True).all_value(".*").current(model.VariableOption(True, ["All"], ["$__all"]))
    return variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.NATURAL_ASC)


def _links(board: Board, words: Words) -> list[Builder[model.DashboardLink]]:
    """The other dashboards of this language, and this dashboard in the other languages."""
    others = sdk.DashboardLink("gpuwarden").type(model.DashboardLinkType.DASHBOARDS).tags([TAG, words.lang])
    twins = [
        sdk.DashboardLink(words.terms[f"language.{lang}"]).url(f"/d/{uid(board.name, lang)}")
        for lang in LANGUAGES
        if lang != words.lang
    ]
    return [link.icon("external link").include_vars(True).keep_time(True) for link in (others, *twins)]


def _built_in() -> model.AnnotationQuery:
    return model.AnnotationQuery(
        name="Annotations & Alerts",
        datasource=model.DataSourceRef("grafana", "-- Grafana --"),
        hide=True,
        icon_color="rgba(0, 211, 255, 1)",
        type_val="dashboard",
        built_in=1,
    )


def _critical_findings(words: Words) -> model.AnnotationQuery:
    """Critical findings, without those that another finding explains."""
    labels = "alertname, cause, node, gpu, namespace, pod, service"
    return _PrometheusAnnotation(
        name=words.terms["annotation.critical"],
        datasource=PROMETHEUS,
        icon_color=CRITICAL,
        expr=f'max by ({labels}) (gpuwarden_finding{{severity="critical",explained="false"}})',
    )
