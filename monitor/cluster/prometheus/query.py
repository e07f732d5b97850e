"""PromQL queries that Prometheus, VictoriaMetrics and Thanos understand, and the form of their results."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from monitor.facts.base import BoundedText

REMEMBERED = "1h"  # an agent is known for this long after its last scrape
SNAPSHOT_TIME = "gpuwarden_snapshot_time_seconds"
AGENT = "gpuwarden_agent_info"
_SPECIAL = re.compile(r"[.+*?()|\[\]{}^$\\]")
LABEL = r'[A-Za-z_][A-Za-z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"'
SELECTOR = re.compile(rf"\s*{LABEL}\s*(?:,\s*{LABEL}\s*)*")


class QuerySeries(msgspec.Struct, gc=False):
    """One series of a result: labels, and time and value."""

    metric: dict[BoundedText, BoundedText]
    value: tuple[float, BoundedText]


def agents_known(selector: str) -> str:
    """Agents of the last hour."""
    return f"last_over_time({AGENT}{_braces(selector)}[{REMEMBERED}])"


def agents_up(selector: str) -> str:
    """Whether each agent can be scraped."""
    return f"up{_braces(selector)} and on (job, instance) {agents_known(selector)}"


def agents_scraped(selector: str) -> str:
    """Time of the last scrape of each agent, which may be minutes ago."""
    return f"timestamp({SNAPSHOT_TIME}{_braces(selector)})"


def families(names: Iterable[str], instances: Iterable[str], selector: str) -> str:
    """All series of these families of these instances."""
    wanted = "|".join(sorted(set(names)))
    who = "|".join(_escaped(instance) for instance in sorted(instances))
    return "{" + ",".join(part for part in (f'__name__=~"{wanted}"', f'instance=~"{who}"', selector) if part) + "}"


def _braces(selector: str) -> str:
    return "{" + selector + "}" if selector else ""


def _escaped(text: str) -> str:
    """String literal of a regular expression that matches exactly this text."""
    pattern = _SPECIAL.sub(lambda found: f"\\{found[0]}", text)
    return pattern.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
