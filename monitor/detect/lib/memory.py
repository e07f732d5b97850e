"""What a rule remembers, as the type that it stored."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def recalled(memory: Any, kind: type[T]) -> T | None:
    """What a rule remembers; None if it remembers nothing, or something else from an older version."""
    try:
        return msgspec.convert(memory, kind)
    except msgspec.ValidationError:
        return None
