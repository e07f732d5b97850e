"""What to connect while there is neither a cluster nor a GPU to monitor."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.facts.cluster import SourceView
from monitor.facts.text import Text

KUBERNETES = "kubernetes"  # the source without credentials; with them, each resource is a source


def is_absent(source: SourceView) -> bool:
    """Whether the source is a cluster that is not configured."""
    return source.name == KUBERNETES and not source.ok


def connect_hints(sources: Iterable[SourceView], *, has_gpus: bool) -> tuple[Text, ...]:
    """Ways to connect something; none if a cluster is watched or GPUs are known."""
    missing = next((source for source in sources if is_absent(source)), None)
    if missing is None or has_gpus:
        return ()
    return (
        Text(key="connect.cluster", values={"why": missing.why or "?"}),
        Text(key="connect.gpu"),
        Text(key="connect.agents"),
        Text(key="connect.demo"),
    )
