"""Label matchers in the syntax of Alertmanager: `node=gpu1`, `user!=zhang`, `node=~gpu[0-9]+`, `queue!~test-.*`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from monitor.base.patterns import MAX_PATTERN_CHARS, check_pattern, matches_pattern, pattern_problem
from monitor.base.text import unknown
from monitor.base.units import quoted
from monitor.facts.base import Fact
from monitor.facts.findings import LABELS

ALERT_LABELS = ("alertname", "severity", "cause", *LABELS)
Operator = Literal["=", "!=", "=~", "!~"]

_OPERATORS: dict[str, Operator] = {"=": "=", "!=": "!=", "=~": "=~", "!~": "!~"}
_SYNTAX = re.compile(r"(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)\s*(?P<op>=~|!~|!=|=)")
_PATTERN_OPERATORS = ("=~", "!~")
MAX_MATCHER_CHARS = MAX_PATTERN_CHARS + 100
MAX_MATCHERS = 100


class Matcher(Fact, frozen=True, kw_only=True):
    """A condition on one label. A missing label equals an empty one; patterns are anchored at both ends.

    A pattern that an older version or an Alertmanager accepted may be invalid here; such a matcher matches nothing.
    """

    name: str
    op: Operator
    value: str

    @property
    def problem(self) -> str | None:
        """Why the pattern is invalid; None if it is not."""
        return pattern_problem(self.value) if self.op in _PATTERN_OPERATORS else None

    def __str__(self) -> str:
        return f"{self.name}{self.op}{self.value}"

    def matches(self, labels: Mapping[str, str]) -> bool:
        actual = labels.get(self.name, "")
        if self.op == "=":
            return actual == self.value
        if self.op == "!=":
            return actual != self.value
        return matches_pattern(self.value, actual) is (self.op == "=~")  # None, for an invalid pattern, is neither


def parse_matcher(text: str) -> Matcher:
    """Matcher from its text form; the value may be quoted. Raise ValueError with a message for the user."""
    if len(text) > MAX_MATCHER_CHARS:
        raise ValueError(f"{quoted(text)} is too long for a matcher; the most are {MAX_MATCHER_CHARS} characters")
    text = text.strip()
    match = _SYNTAX.match(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a matcher; write label=value, label!=value, label=~pattern or label!~pattern"
        )
    name, value = match["name"], text[match.end() :].lstrip()
    if value[:1] in ("~", "="):
        raise ValueError(f"{text!r} is not a matcher; write {name}=~pattern for a pattern and {name}=value for a value")
    matcher = Matcher(name=name, op=_OPERATORS[match["op"]], value=_unquoted(value, text))
    if matcher.op in _PATTERN_OPERATORS:
        check_pattern(matcher.value)
    return matcher


def exact_matcher(name: str, value: str) -> str:
    """Text form of the matcher for exactly this value."""
    plain = value.strip() == value and value[:1] not in ("~", "=", '"', "'")
    return f"{name}={value}" if plain else name + '="' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def matches(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy all matchers; true without matchers."""
    for matcher in matchers:  # noqa: SIM110 (hot: thousands of alerts by dozens of matchers; `all` takes twice as long)
        if not matcher.matches(labels):
            return False
    return True


def _unquoted(value: str, text: str) -> str:
    if value[:1] not in ('"', "'"):
        return value
    if len(value) < 2 or value[-1] != value[0]:
        raise ValueError(f"{text!r} is not a matcher: the quote is not closed")
    return re.sub(r"\\([\\\"'])", r"\1", value[1:-1])


def matchers_of(match: tuple[str, ...]) -> tuple[Matcher, ...]:
    """Matchers from their text forms."""
    return tuple(parse_matcher(text) for text in match)


def known_matchers(match: tuple[str, ...]) -> tuple[str, ...]:
    """Check that matchers are few and valid and that alerts have their labels. Raise ValueError."""
    if len(match) > MAX_MATCHERS:
        raise ValueError(f"{len(match)} matchers are too many; the most are {MAX_MATCHERS}; write a pattern: node=~a|b")
    for text in match:
        known_label(parse_matcher(text).name)
    return match


def known_label(name: str) -> str:
    """Check that alerts have this label. Raise ValueError."""
    if name not in ALERT_LABELS:
        raise ValueError(f"{name!r}: {unknown('label', name, ALERT_LABELS)}")
    return name
