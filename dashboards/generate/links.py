"""Uids of the dashboards, and links from a value to the dashboard that shows its details."""

from __future__ import annotations

from typing import Literal

from grafana_foundation_sdk.builders.dashboard import DashboardLink

from dashboards.generate.words import Words

TAG = "gpuwarden"
Link = Literal["node-gpus", "node-storage", "user", "queue", "namespace"]
# Target dashboard, and the variable to set there: also the name of the label that carries the value.
TARGETS: dict[Link, tuple[str, str]] = {
    "node-gpus": ("gpus", "node"),
    "node-storage": ("storage", "node"),
    "user": ("gpus", "user"),
    "queue": ("gpus", "queue"),
    "namespace": ("gpus", "namespace"),
}


def uid(name: str, lang: str) -> str:
    """Uid of a dashboard in a language."""
    return f"{TAG}-{name}" if lang == "en" else f"{TAG}-{name}-{lang}"


def data_link(link: Link, words: Words, value: str = "") -> DashboardLink:
    """Data link that passes on `value`, by default the label of the series."""
    name, variable = TARGETS[link]
    value = value or f"${{__field.labels.{variable}}}"
    url = f"/d/{uid(name, words.lang)}?var-datasource=${{datasource}}&var-{variable}={value}&${{__url_time_range}}"
    return DashboardLink(words.terms[f"link.{link}"]).url(url)
