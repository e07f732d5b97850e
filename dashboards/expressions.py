"""Queries of the dashboards as Prometheus receives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dashboards.generate import documents

# All values selected; the intervals of the default time range with a scrape interval of 15 seconds.
CHOICES: Mapping[str, str] = {
    "node": ".*", "gpu": ".*", "user": ".*", "queue": ".*", "namespace": ".*", "mount": ".*", "receiver": ".*",
    "__rate_interval": "1m", "__range": "6h", "__interval": "15s",
}  # fmt: skip
VARIABLE = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)")


class Expression(NamedTuple):
    """A query: uid of the dashboard, title of the panel, and `ref` of the target."""

    dashboard: str
    panel: str
    ref: str
    expr: str
    instant: bool


def expressions(choices: Mapping[str, str] = CHOICES, lang: str = "en") -> list[Expression]:
    """Every query, with variables replaced by `choices`. Raise KeyError for a variable without a value."""
    return [
        query._replace(expr=VARIABLE.sub(lambda match: choices[match[1] or match[2]], query.expr))
        for (language, _), document in documents().items()
        if language == lang
        for query in _queries(document)
    ]


def _queries(document: Mapping[str, Any]) -> Iterable[Expression]:
    for annotation in document["annotations"]["list"]:
        if "expr" in annotation:
            yield Expression(document["uid"], annotation["name"], "", annotation["expr"], instant=False)
    for panel in document["panels"]:
        for target in panel.get("targets", ()):
            yield Expression(document["uid"], panel["title"], target["refId"], target["expr"], target["instant"])
