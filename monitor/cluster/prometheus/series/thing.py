"""How the tables are written: a kind of thing, where it belongs in a snapshot, and which series carry its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from monitor.facts.base import Fact

Record = dict[str, Any]  # a fact in the making: what msgspec makes facts of


@dataclass(frozen=True)
class Take:
    """What one series says of a thing.

    `value` is the field that its value goes to; dots lead into a part of the thing, and `{label}` stands for the value
    of a label. `truth` is for values that mean yes or no. `words` are fields that labels carry; an empty label says
    nothing. `each` is a field that holds a label of every such series. `known` is a field that is known, if only to be
    empty, because the series is there.
    """

    value: str | None = None
    truth: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    each: tuple[str, str] | None = None
    known: str | None = None


@dataclass(frozen=True)
class Thing:
    """A kind of thing. `path` is its place in the snapshot: `gpu.gpus[gpu,uuid]` are told apart by two labels.

    `named` are the fields that hold those labels. `parts` are its own parts that are facts with fields of their own
    that they cannot be without. `tidy` is the last touch, where labels and fields do not map one to one.
    """

    path: str
    fact: type[Fact]
    takes: Mapping[str, Take]
    named: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, type[Fact]] = field(default_factory=dict)
    tidy: Callable[[Record], None] | None = None


def value(name: str) -> Take:
    """The value is the field."""
    return Take(value=name)


def truth(name: str) -> Take:
    """The value is the field: 1 is yes, 0 is no."""
    return Take(value=name, truth=True)


def words(**fields: str) -> Take:
    """Labels are fields."""
    return Take(words=fields)
