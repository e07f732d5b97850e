"""The questions, in PromQL that Prometheus, VictoriaMetrics and Thanos understand, and how they are answered. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

REMEMBERED = "1h"  # for how long after its last scrape an agent is known to have been one
SNAPSHOT_TIME = "gpuwarden_snapshot_time_seconds"
AGENT = "gpuwarden_agent_info"
_SPECIAL = re.compile(r"[.+*?()|\[\]{}^$\\]")
LABEL = r'[A-Za-z_][A-Za-z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"'
SELECTOR = re.compile(rf"\s*{LABEL}\s*(?:,\s*{LABEL}\s*)*")


class QuerySeries(msgspec.Struct, gc=False):
    """One series of an answer: its labels, and when and what."""

    metric: dict[str, str]
    value: tuple[float, str]


def agents_known(selector: str) -> str:
    """Which agents there are, or were of late."""
    return f"last_over_time({AGENT}{_braces(selector)}[{REMEMBERED}])"


def agents_up(selector: str) -> str:
    """Whether each agent can be scraped."""
    return f"up{_braces(selector)} and on (job, instance) {agents_known(selector)}"


def agents_scraped(selector: str) -> str:
    """When each agent was last scraped: an answer for this moment may be minutes old."""
    return f"timestamp({SNAPSHOT_TIME}{_braces(selector)})"


def families(names: Iterable[str], instances: Iterable[str], selector: str) -> str:
    """All series of these families of these instances."""
    wanted = "|".join(sorted(set(names)))
    who = "|".join(_escaped(instance) for instance in sorted(instances))
    return "{" + ",".join(part for part in (f'__name__=~"{wanted}"', f'instance=~"{who}"', selector) if part) + "}"


def _braces(selector: str) -> str:
    return "{" + selector + "}" if selector else ""


def _escaped(text: str) -> str:
    """Given any text, return what matches exactly that: a regular expression in a string."""
    pattern = _SPECIAL.sub(lambda found: f"\\{found[0]}", text)
    return pattern.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
