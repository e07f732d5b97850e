"""How captured values become text: one line per value, in the order given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any


def as_json(value: Any) -> str:
    """Return JSON that a diff shows line by line. The order of keys is kept."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def of_json(raw: bytes | str) -> str:
    """Given JSON as the product writes it, return it line by line."""
    return as_json(json.loads(raw))


def rows(table: Iterable[Sequence[str]]) -> str:
    """Return a table, one row per line, separated by tabs."""
    return "".join("\t".join(row).rstrip() + "\n" for row in table)
