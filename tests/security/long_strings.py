"""Input in which every string is very long, derived from the types so that no field is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from monitor.facts.base import MAX_IDENTIFIER_CHARS
from monitor.kube.decode.values import Wire

LONG_CHARS = 20_000
LONG = "x" * LONG_CHARS
SHORT = "i" * 40
MAX_DEPTH = 14  # some types contain themselves


def unbounded(form: Any) -> set[str]:
    """Paths of the strings below a type that have no limit."""
    return set(_unbounded(inspect.type_info(form), form.__name__ if isinstance(form, type) else "value", 0))


def _unbounded(info: Any, path: str, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    if isinstance(info, inspect.StrType) and info.max_length is None:
        yield path
    for name, part in _parts(info):
        inner = f"{info.cls.__name__}.{name}" if isinstance(info, inspect.StructType) else f"{path}.{name}"
        yield from _unbounded(part, inner, depth + 1)


def _parts(info: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(info, inspect.StructType):
        yield from ((field.name, field.type) for field in info.fields)
    elif isinstance(info, inspect.DictType):
        yield from (("key", info.key_type), ("value", info.value_type))
    elif isinstance(info, inspect.UnionType):
        yield from ((str(number), part) for number, part in enumerate(info.types))
    elif isinstance(info, (inspect.ListType, inspect.VarTupleType)):
        yield "item", info.item_type
    elif isinstance(info, inspect.TupleType):
        yield from ((str(number), part) for number, part in enumerate(info.item_types))
    elif isinstance(info, inspect.Metadata):
        yield "type", info.type


def filled(form: Any, raw: dict[str, Any] | None = None) -> Any:
    """JSON value of a type with every field set: long texts, and identifiers of a permitted length.

    `raw` are the values of fields that the type leaves undecoded, by name.
    """
    return _filled(inspect.type_info(form), raw or {}, 0)


def _filled(info: Any, raw: dict[str, Any], depth: int) -> Any:  # one case per type
    if isinstance(info, inspect.Metadata):
        return _filled(info.type, raw, depth)
    if isinstance(info, inspect.StrType):
        return SHORT if info.max_length == MAX_IDENTIFIER_CHARS else LONG
    if isinstance(info, (inspect.IntType, inspect.FloatType)):
        return 1
    if isinstance(info, inspect.BoolType):
        return True
    if isinstance(info, inspect.StructType):
        return _filled_struct(info, raw, depth) if depth < MAX_DEPTH else None
    if isinstance(info, inspect.DictType):
        return {_filled(info.key_type, raw, depth + 1): _filled(info.value_type, raw, depth + 1)}
    if isinstance(info, inspect.UnionType):
        first = next(part for part in info.types if not isinstance(part, inspect.NoneType))
        return _filled(first, raw, depth)
    if isinstance(info, (inspect.ListType, inspect.VarTupleType)):
        item = _filled(info.item_type, raw, depth + 1)
        return [] if item is None else [item]
    return None


def _filled_struct(info: Any, raw: dict[str, Any], depth: int) -> dict[str, Any]:
    values = {}
    for field in info.fields:
        undecoded = isinstance(field.type, inspect.RawType)
        value = raw.get(field.encode_name) if undecoded else _filled(field.type, raw, depth + 1)
        if value is not None:
            values[field.encode_name] = value
    return values


def longest(value: object) -> int:
    """Length of the longest string in a fact, at any depth."""
    plain = msgspec.to_builtins(value)
    return max((len(text) for text in _strings(plain)), default=0)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings(item)


def wire_types(base: type[Wire] = Wire) -> Iterator[type[Wire]]:
    """All types that mirror Kubernetes JSON."""
    for form in base.__subclasses__():
        if form.__module__.startswith("monitor.kube."):
            yield form
            yield from wire_types(form)
