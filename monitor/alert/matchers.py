"""Matchers: `node=gpu1`, `user!=zhang`, `node=~gpu[0-9]+`, `queue!~test-.*`, as Alertmanager writes them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

from monitor.base.text import unknown
from monitor.facts.base import Fact
from monitor.facts.findings import LABELS

ALERT_LABELS = ("alertname", "severity", "cause", *LABELS)
Operator = Literal["=", "!=", "=~", "!~"]

_OPERATORS: dict[str, Operator] = {"=": "=", "!=": "!=", "=~": "=~", "!~": "!~"}
_WRITTEN = re.compile(r"\s*(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)\s*(?P<op>=~|!~|!=|=)\s*(?P<value>.*?)\s*", re.DOTALL)


class Matcher(Fact, frozen=True, kw_only=True):
    """One condition on one label. A label that is missing is as good as an empty one. Patterns match the whole value.

    Raise ValueError when the pattern cannot be understood: there is no matcher that cannot be asked.
    """

    name: str
    op: Operator
    value: str

    def __post_init__(self) -> None:
        if self.op in ("=~", "!~"):
            _compiled(self.value)

    def __str__(self) -> str:
        return f"{self.name}{self.op}{self.value}"

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet this condition."""
        actual = labels.get(self.name, "")
        if self.op == "=":
            return actual == self.value
        if self.op == "!=":
            return actual != self.value
        return (_compiled(self.value).fullmatch(actual) is not None) == (self.op == "=~")


def parse_matcher(text: str) -> Matcher:
    """Given a matcher as it is written, with quotes or without, return it. Raise ValueError, in words for a user."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no matcher: write label=value, label!=value, label=~pattern or label!~pattern")
    name, value = found["name"], found["value"]
    if value[:1] in ("~", "="):
        raise ValueError(f"{text!r} is no matcher: write {name}=~pattern for a pattern and {name}=value for a value")
    return Matcher(name=name, op=_OPERATORS[found["op"]], value=_unquoted(value, text))


def matches(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """Return whether the labels meet every condition. No conditions are met by all."""
    for matcher in matchers:  # noqa: SIM110 (thousands of alerts meet dozens of these: half the time of `all`)
        if not matcher.matches(labels):
            return False
    return True


def _unquoted(value: str, text: str) -> str:
    if value[:1] not in ('"', "'"):
        return value
    if len(value) < 2 or value[-1] != value[0]:
        raise ValueError(f"{text!r} is no matcher: the quote is not closed")
    return re.sub(r"\\([\\\"'])", r"\1", value[1:-1])


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            # What Python only warns of, such as [[:alpha:]], means something else to Alertmanager.
            warnings.simplefilter("error", FutureWarning)
            return re.compile(pattern, re.DOTALL)
    except (re.error, RecursionError, OverflowError, FutureWarning) as error:
        raise ValueError(f"the pattern {pattern!r} cannot be understood: {error}") from error


def matchers_of(match: tuple[str, ...]) -> tuple[Matcher, ...]:
    """Given matchers as they are written, return them."""
    return tuple(parse_matcher(text) for text in match)


def known_matchers(match: tuple[str, ...]) -> tuple[str, ...]:
    """Given matchers, return them. Raise ValueError if one cannot be understood, or alerts have no such label."""
    for text in match:
        known_label(parse_matcher(text).name)
    return match


def known_label(name: str) -> str:
    """Given the name of a label, return it. Raise ValueError if alerts have no such label."""
    if name not in ALERT_LABELS:
        raise ValueError(f"{name!r}: {unknown('label', name, ALERT_LABELS)}")
    return name
