"""Label matchers in the syntax of Alertmanager: `node=gpu1`, `user!=zhang`, `node=~gpu[0-9]+`, `queue!~test-.*`."""

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
_SYNTAX = re.compile(r"\s*(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)\s*(?P<op>=~|!~|!=|=)\s*(?P<value>.*?)\s*", re.DOTALL)


class Matcher(Fact, frozen=True, kw_only=True):
    """A condition on one label. A missing label equals an empty one; patterns are anchored at both ends.

    Raise ValueError for an invalid pattern, so that every existing matcher can be evaluated.
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
        actual = labels.get(self.name, "")
        if self.op == "=":
            return actual == self.value
        if self.op == "!=":
            return actual != self.value
        return (_compiled(self.value).fullmatch(actual) is not None) == (self.op == "=~")


def parse_matcher(text: str) -> Matcher:
    """Matcher from its text form; the value may be quoted. Raise ValueError with a message for the user."""
    match = _SYNTAX.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not a matcher; write label=value, label!=value, label=~pattern or label!~pattern"
        )
    name, value = match["name"], match["value"]
    if value[:1] in ("~", "="):
        raise ValueError(f"{text!r} is not a matcher; write {name}=~pattern for a pattern and {name}=value for a value")
    return Matcher(name=name, op=_OPERATORS[match["op"]], value=_unquoted(value, text))


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


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            # Python only warns about syntax such as [[:alpha:]], which has another meaning for Alertmanager.
            warnings.simplefilter("error", FutureWarning)
            return re.compile(pattern, re.DOTALL)
    except (re.error, RecursionError, OverflowError, FutureWarning) as error:
        raise ValueError(f"invalid pattern {pattern!r}: {error}") from error


def matchers_of(match: tuple[str, ...]) -> tuple[Matcher, ...]:
    """Matchers from their text forms."""
    return tuple(parse_matcher(text) for text in match)


def known_matchers(match: tuple[str, ...]) -> tuple[str, ...]:
    """Check that matchers are valid and that alerts have their labels. Raise ValueError."""
    for text in match:
        known_label(parse_matcher(text).name)
    return match


def known_label(name: str) -> str:
    """Check that alerts have this label. Raise ValueError."""
    if name not in ALERT_LABELS:
        raise ValueError(f"{name!r}: {unknown('label', name, ALERT_LABELS)}")
    return name
