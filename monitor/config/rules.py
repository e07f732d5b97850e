"""Limits of the rules: a section for each rule, derived from its `Limits` dataclass.

daemon:
  rules:
    disk_full:
      warning: 85%
      overrides:
        - match: {mount: "/scratch*"}
          warning: 95%
    gpu_hot: {enabled: false}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema, create_model

from monitor.base.text import unknown
from monitor.base.units import parse_duration, quoted
from monitor.config.routes import Zone
from monitor.config.types import Duration, Ratio, Section, Size, check_with
from monitor.detect.base import Limits, Override, Rule, Threshold, TimeZone
from monitor.detect.rules import RULES
from monitor.facts.findings import LABELS

MAX_EVENTS = 1_000_000


def parse_threshold(value: object) -> Threshold:
    """`3 in 1h`: a number of events and the time in which they occur."""
    if isinstance(value, Threshold):
        return value
    count, _, window = value.partition(" in ") if isinstance(value, str) else ("", "", "")
    if not count.strip().isdecimal() or not 1 <= int(count[:9]) <= MAX_EVENTS or not window.strip():
        raise ValueError(f"{quoted(value)} is not a number of events in a time; write for example 3 in 1h")
    return Threshold(int(count), parse_duration(window.strip()))


EventThreshold = Annotated[
    Threshold, BeforeValidator(parse_threshold), PlainSerializer(str), WithJsonSchema({"type": "string"})
]
MARKS: Mapping[str, Any] = {
    "duration": Duration,
    "ratio": Ratio,
    "size": Size,
    "threshold": EventThreshold,
    "zone": Zone,
}


def _check_match(match: dict[str, str]) -> None:
    if not match:
        raise ValueError('is empty; say what the exception is for, for example {node: "gpu-0*"}')
    for name in match:
        if name not in LABELS:
            raise ValueError(f"{name!r}: {unknown('label', name, LABELS)}")


LabelPatterns = Annotated[dict[str, str], check_with(_check_match)]


class RulesSection(Section):
    """The sections of all rules, each under the rule's name with _ for -."""

    def limits(self, rules: Iterable[Rule] = RULES, timezone: str | None = None) -> dict[str, Limits[Any]]:
        """Limits of each rule, for the detection engine; `timezone` is that of limits without their own."""
        return {rule.rule: _limits(rule, getattr(self, field_name(rule)), timezone) for rule in rules}


def rules_config(rules: Iterable[Rule]) -> type[RulesSection]:
    """Model of the sections of these rules."""
    sections: dict[str, Any] = {}
    for rule in rules:
        section = _section(rule)
        sections[field_name(rule)] = (section, section())
    return create_model("RulesConfig", __base__=RulesSection, **sections)


def field_name(rule: Rule) -> str:
    """Key of a rule's section."""
    return rule.rule.replace("-", "_")


def setting_type(hint: Any) -> Any:
    """Type of the setting for the type of a limit, whose unit mark allows 10m, 80% or 50GiB."""
    if get_origin(hint) is Annotated:
        plain, *marks = get_args(hint)
        return next((MARKS[mark] for mark in marks if mark in MARKS), plain)
    options = get_args(hint)
    if get_origin(hint) is dict:
        return dict[options[0], setting_type(options[1])]  # type: ignore[valid-type, misc]  # types made at run time
    if type(None) in options:
        return next(setting_type(option) for option in options if option is not type(None)) | None
    return hint


def _section(rule: Rule) -> type[Section]:
    hints, defaults = get_type_hints(rule.limits, include_extras=True), rule.limits()
    base: dict[str, Any] = {}
    override: dict[str, Any] = {}
    for limit in dataclasses.fields(rule.limits):
        kind = setting_type(hints[limit.name])
        base[limit.name] = (kind, getattr(defaults, limit.name))
        override[limit.name] = (kind | None, None)  # unset limits are those of the rule
    name = rule.rule.title().replace("-", "")
    exception: Any = create_model(f"{name}Exception", __base__=Section, match=(LabelPatterns, ...), **override)
    always: dict[str, Any] = {"enabled": (bool, True), "overrides": (tuple[exception, ...], ())}
    section: type[Section] = create_model(f"{name}Rule", __base__=Section, **(base | always))
    return section


def _limits(rule: Rule, section: Any, timezone: str | None) -> Limits[Any]:
    hints = get_type_hints(rule.limits, include_extras=True)
    names = [limit.name for limit in dataclasses.fields(rule.limits)]
    values = {name: getattr(section, name) for name in names}
    values |= {name: timezone for name in names if values[name] is None and TimeZone in get_args(hints[name])}
    default = rule.limits(**values)
    overrides = []
    for exception in section.overrides:
        changed = {name: getattr(exception, name) for name in names if name in exception.model_fields_set}
        overrides.append(Override(dict(exception.match), dataclasses.replace(default, **changed)))
    return Limits(default, tuple(overrides), section.enabled)


if TYPE_CHECKING:
    RulesConfig = RulesSection  # the created model also has a field for each rule
else:
    RulesConfig = rules_config(RULES)
