"""Names that users write into configurations and queries: rules, causes, limits, labels, receivers, collectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

from monitor.agent.build import COLLECTORS, AgentDeps
from monitor.agent.runtime import Runtimes
from monitor.alert.receivers.registry import KINDS
from monitor.config.root import Config
from monitor.detect.base import Threshold
from monitor.detect.meta import META_RULE_NAMES
from monitor.detect.rules import RULES
from monitor.facts.findings import LABELS
from monitor.i18n import LANGUAGES
from tests.golden.text import as_json, rows


def rules() -> str:
    """Every rule with its causes and limits: name, unit, default."""
    told = [
        {
            "rule": each.rule,
            "causes": list(each.causes),
            "limits": [list(row) for row in _limits(each.limits)],
        }
        for each in RULES
    ]
    return as_json([*told, *({"rule": name} for name in META_RULE_NAMES)])


def receivers() -> str:
    """Every kind of receiver."""
    return rows([kind] for kind in KINDS)


def collectors() -> str:
    """Every collector with interval, timeout and dependencies, in start order."""
    settings = Config.model_validate({"agent": {"node_name": "HOST"}}).agent_settings()
    runtimes = Runtimes(settings.paths.docker_socket, settings.paths.cri_sockets)
    sources = AgentDeps(settings, runtimes, lambda _: None)
    table = []
    for factory, after in COLLECTORS:
        name = factory(sources).name
        schedule = settings.collectors[name]
        table.append([name, f"{schedule.interval:g}s", f"{schedule.limit:g}s", ",".join(after)])
    return rows(table)


def words() -> str:
    """Alert labels and languages."""
    return rows([["labels", ",".join(LABELS)], ["languages", ",".join(LANGUAGES)]])


def _limits(kind: type[Any]) -> Iterator[tuple[str, str, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    defaults = kind()
    for field in dataclasses.fields(kind):
        default = getattr(defaults, field.name)
        yield field.name, _unit(hints[field.name]), str(default) if isinstance(default, Threshold) else default


def _unit(hint: Any) -> str:
    """Notation of a limit (duration, ratio, size), or the name of its type."""
    marks = getattr(hint, "__metadata__", ())
    if marks:
        return ",".join(map(str, marks))
    if get_origin(hint) is None:
        return str(getattr(hint, "__name__", hint))
    return "|".join(_unit(each) for each in get_args(hint))
