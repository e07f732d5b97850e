"""JSON from outside with a limit on every string.

The limits are part of the types (`Meta(max_length=...)`), so checking them costs nothing. Only input that exceeds one
is decoded a second time with its long strings cut: free text and names survive, marked, while an identifier with a
lower limit is still too long and invalidates what it identifies.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from monitor.base.text import MAX_TEXT_CHARS, shorten_name

T = TypeVar("T")


def decode_bounded(decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw) -> T:
    """Decode input, with strings cut that are too long. Raise as `decoder.decode` does."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        cut = cut_strings(data)
        if cut is None:
            raise
    return decoder.decode(cut)


def cut_strings(data: bytes | msgspec.Raw) -> bytes | None:
    """The JSON with every string and key cut to MAX_TEXT_CHARS; None if there is nothing to cut."""
    before = msgspec.json.decode(data)
    after = _cut(before)
    return None if after is before else msgspec.json.encode(after)


def _cut(value: Any) -> Any:
    """The value with its strings cut; the same object if nothing was."""
    if isinstance(value, str):
        return shorten_name(value, MAX_TEXT_CHARS)
    if isinstance(value, list):
        items = [_cut(item) for item in value]
        return value if all(map(_is_same, items, value)) else items
    if isinstance(value, dict):
        return _cut_object(value)
    return value


def _cut_object(value: dict[str, Any]) -> dict[str, Any]:
    fields = {_cut(key): _cut(item) for key, item in value.items()}
    same = len(fields) == len(value) and all(map(_is_same, fields, value))
    return value if same and all(map(_is_same, fields.values(), value.values())) else fields


def _is_same(one: object, other: object) -> bool:
    return one is other
