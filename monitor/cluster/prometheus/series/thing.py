"""Form of the tables: a kind of object, its position in a snapshot, and the series of its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from monitor.facts.base import Fact

Record = dict[str, Any]  # fields of a fact, before conversion by msgspec


@dataclass(frozen=True)
class Take:
    """Mapping of one series to fields of an object.

    `value` is the field of its value; dots lead into a part of the object, and `{label}` stands for the value of a
    label. `truth` marks boolean values. `words` maps fields to labels; empty labels are ignored. `each` is a field that
    collects a label of every such series. `known` is a field that is at least empty if the series exists.
    """

    value: str | None = None
    truth: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    each: tuple[str, str] | None = None
    known: str | None = None


@dataclass(frozen=True)
class Thing:
    """A kind of object. `path` is its position in the snapshot: two labels identify `gpu.gpus[gpu,uuid]`.

    `named` maps fields to those labels. `parts` are nested facts with required fields. `tidy` is applied last, where
    labels and fields do not map one to one.
    """

    path: str
    fact: type[Fact]
    takes: Mapping[str, Take]
    named: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, type[Fact]] = field(default_factory=dict)
    tidy: Callable[[Record], None] | None = None


def value(name: str) -> Take:
    """Field from the value."""
    return Take(value=name)


def truth(name: str) -> Take:
    """Boolean field from the value."""
    return Take(value=name, truth=True)


def words(**fields: str) -> Take:
    """Fields from labels."""
    return Take(words=fields)
