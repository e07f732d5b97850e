"""Has msgspec look at every type that is decoded before threads begin.

It does so when a type is first used, and that is not safe in several threads at once (0.22): one of them may read what
another has only half written, and the process dies.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


def know_types(module: str | None = None) -> int:
    """Have every Struct that is defined so far looked at, or those of one module. Return how many there are.

    A module that is imported only when somebody needs it does so for itself: until it has, others wait for it.
    """
    known = 0
    for each in {each for each in structs(msgspec.Struct) if module in (None, each.__module__)}:
        try:
            msgspec.json.Decoder(each)
        except (TypeError, NameError):  # one that only other code can decode, or nobody ever does
            continue
        known += 1
    return known


def structs(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """Return every kind of it."""
    for each in kind.__subclasses__():
        yield each
        yield from structs(each)
