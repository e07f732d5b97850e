"""Captured values as text: one line per value, in the given order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any


def as_json(value: Any) -> str:
    """JSON with one value per line, in the given order of keys."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def of_json(raw: bytes | str) -> str:
    """The product's JSON, one value per line."""
    return as_json(json.loads(raw))


def rows(table: Iterable[Sequence[str]]) -> str:
    """A table with one tab-separated row per line."""
    return "".join("\t".join(row).rstrip() + "\n" for row in table)
