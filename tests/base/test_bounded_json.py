from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.base.bounded_json import cut_strings, decode_bounded
from monitor.base.text import MAX_TEXT_CHARS, shortened_prefix
from monitor.facts.base import BoundedText, Identifier

LONG = "x" * (MAX_TEXT_CHARS + 1)


class Thing(msgspec.Struct):
    id: Identifier = ""
    text: BoundedText = ""
    texts: dict[BoundedText, tuple[BoundedText, ...]] = {}


_decoder = msgspec.json.Decoder(Thing)


def decoded(**fields: Any) -> Thing:
    return decode_bounded(_decoder, msgspec.json.encode(fields))


def test_what_is_short_enough_is_unchanged() -> None:
    assert decoded(text=LONG[1:], id="1") == Thing(text=LONG[1:], id="1")
    assert cut_strings(msgspec.json.encode({"a": [LONG[1:], 1, None]})) is None


def test_a_long_text_is_cut_wherever_it_is() -> None:
    thing = decoded(text=LONG, texts={LONG: [LONG, "b"]}, other=[{"unknown": LONG}])
    assert len(thing.text) == MAX_TEXT_CHARS
    assert shortened_prefix(thing.text) is not None
    assert [(len(key), len(values[0]), values[1]) for key, values in thing.texts.items()] == [
        (MAX_TEXT_CHARS, MAX_TEXT_CHARS, "b")
    ]


def test_a_long_identifier_is_refused_and_never_cut() -> None:
    with pytest.raises(msgspec.ValidationError, match="length <= 256"):
        decoded(id="x" * 257)
    with pytest.raises(msgspec.ValidationError, match="length <= 256"):
        decoded(id=LONG, text=LONG)


@pytest.mark.parametrize("body", [b"[]", b'{"id": 1}', b"{", b'{"text": 5}'])
def test_other_errors_stay_what_they_are(body: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_bounded(_decoder, body)


def test_numbers_beyond_64_bits_survive_a_cut() -> None:
    assert decoded(text=LONG, number=10**30).text != LONG
