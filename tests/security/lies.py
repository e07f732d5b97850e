"""Malicious agent responses."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.support.snapshots import full_snapshot

Path = tuple[str | int, ...]
ABSURD: tuple[float | int, ...] = (
    -1, 2**63 - 1, -1e20, 10**400, 1e308,
)  # fmt: skip
NO_NUMBERS = ("NaN", "-Infinity", "1e999", '"1"', "[]")
MARK = "@@here@@"


def truth() -> dict[str, Any]:
    """Snapshot of a busy node in wire format."""
    plain: dict[str, Any] = json.loads(msgspec.json.encode(full_snapshot()))
    return plain


def numbers(value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of all numbers in a snapshot."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from numbers(inner, (*path, index))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def values(value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of all values in a snapshot, also of objects and lists."""
    if path:
        yield path
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from values(inner, (*path, key))


def with_value(written: str, *paths: Path) -> bytes:
    """The snapshot with another value at these paths."""
    lie = copy.deepcopy(truth())
    for path in paths:
        inner: Any = lie
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = MARK
    return json.dumps(lie).replace(f'"{MARK}"', written).encode()


def many(part: str, item: str, count: int) -> bytes:
    """A snapshot with this many items of a kind."""
    items = f"[{','.join([item] * count)}]"
    inner = f'{{"gpus":{items}}}' if part == "gpu" else items
    return f'{{"node":"n1","at":1.0,"agent_version":"0","{part}":{inner}}}'.encode()
