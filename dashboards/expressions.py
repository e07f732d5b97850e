"""Every query of the dashboards, as Prometheus would get it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dashboards.generate import documents

# Everything chosen, and the intervals of the default time range with a scrape every 15 seconds.
CHOICES: Mapping[str, str] = {
    "node": ".*", "gpu": ".*", "user": ".*", "queue": ".*", "namespace": ".*", "mount": ".*", "receiver": ".*",
    "__rate_interval": "1m", "__range": "6h", "__interval": "15s",
}  # fmt: skip
VARIABLE = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)")


class Expression(NamedTuple):
    """A query: the dashboard's uid, the panel's title, the target's letter, the expression, and how it is asked."""

    dashboard: str
    panel: str
    ref: str
    expr: str
    instant: bool


def expressions(choices: Mapping[str, str] = CHOICES, lang: str = "en") -> list[Expression]:
    """Given values of variables, return every query. Raise KeyError for a variable that has no value."""
    return [
        each._replace(expr=VARIABLE.sub(lambda match: choices[match[1] or match[2]], each.expr))
        for (language, _), document in documents().items()
        if language == lang
        for each in _queries(document)
    ]


def _queries(document: Mapping[str, Any]) -> Iterable[Expression]:
    for annotation in document["annotations"]["list"]:
        if "expr" in annotation:
            yield Expression(document["uid"], annotation["name"], "", annotation["expr"], instant=False)
    for panel in document["panels"]:
        for target in panel.get("targets", ()):
            yield Expression(document["uid"], panel["title"], target["refId"], target["expr"], target["instant"])
