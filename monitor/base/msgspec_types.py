"""Warms up msgspec before threads start.

msgspec 0.22 analyses a type on first use, and that is not thread-safe: a thread may read what another has only half
written, and the process crashes.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


def warm_up_msgspec(module: str | None = None) -> int:
    """Analyse every Struct defined so far, or those of one module, and return their number.

    A module that is imported lazily calls this for itself: the import lock keeps other threads waiting until then.
    """
    known = 0
    for each in {each for each in struct_types(msgspec.Struct) if module in (None, each.__module__)}:
        try:
            msgspec.json.Decoder(each)
        except (TypeError, NameError):  # never decoded by itself
            continue
        known += 1
    return known


def struct_types(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """All subclasses, recursively."""
    for each in kind.__subclasses__():
        yield each
        yield from struct_types(each)
