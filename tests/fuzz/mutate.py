"""Almost valid inputs: a corpus entry that is cut, spliced, repeated and mixed with known troublemakers."""

from __future__ import annotations

from random import Random

TOKENS = (
    b"0", b"-1", b"1e308", b"-1e308", b"1e999", b"9" * 25, b"1" + b"0" * 400, b"9" * 5000, b"NaN", b"null", b"true",
    b'""', b"[]", b"{}", b"[" * 2000, b'{"a":' * 500, b"\xff", b"\xed\xa0\x80", b"\x00", b"\n", b"\r", b"\x1b[31m",
    b"\\u0000",
    b"\\ud800", b"\\x0a", b"\\134", b"%", b"{{", b"}}", b"{%", b"&a", b"*a", b"<<: ", b"!!python/object", b"../../",
    b"(", b")", b" ", b":", b"/", b";", b",", b"\xe2\x80\xae", "长".encode(), b"x" * 3000, b"0001-01-01T00:00:00Z",
    b"99999-01-01T00:00:00Z", b"2026-02-30T00:00:00Z", b"1e", b"0x10", b"1Ki", b"1E", b"-9223372036854775809",
)  # fmt: skip
LONGEST = 200_000


def mutated(rng: Random, kept: list[bytes]) -> bytes:
    """A new input derived from the corpus."""
    data = bytearray(rng.choice(kept)) if kept and rng.random() < 0.97 else bytearray(rng.randbytes(rng.randrange(64)))
    for _ in range(1 + min(int(rng.expovariate(0.5)), 12)):
        rng.choice(_WAYS)(rng, data, kept)
    return bytes(data[:LONGEST])


def _place(rng: Random, data: bytearray) -> tuple[int, int]:
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + int(rng.expovariate(0.05)) + 1)


def _insert(rng: Random, data: bytearray, kept: list[bytes]) -> None:
    begin, _ = _place(rng, data)
    data[begin:begin] = rng.choice(TOKENS)


def _replace(rng: Random, data: bytearray, kept: list[bytes]) -> None:
    begin, end = _place(rng, data)
    data[begin:end] = rng.choice(TOKENS)


def _value(rng: Random, data: bytearray, kept: list[bytes]) -> None:
    """Replace the text between two value delimiters."""
    marks = [at for at, byte in enumerate(data[:5000]) if byte in b':,[]{}= \n"'] or [0]
    begin = rng.choice(marks) + 1
    end = next((at for at in range(begin, min(len(data), begin + 400)) if data[at] in b',]}= \n"'), begin)
    data[begin:end] = rng.choice(TOKENS)


def _flip(rng: Random, data: bytearray, kept: list[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _cut(rng: Random, data: bytearray, kept: list[bytes]) -> None:
    begin, end = _place(rng, data)
    del data[begin : len(data) if rng.random() < 0.1 else end]


def _repeat(rng: Random, data: bytearray, kept: list[bytes]) -> None:
    begin, end = _place(rng, data)
    data[begin:begin] = bytes(data[begin:end]) * rng.choice((1, 2, 50))


def _splice(rng: Random, data: bytearray, kept: list[bytes]) -> None:
    if kept:
        other = rng.choice(kept)
        begin, end = _place(rng, bytearray(other))
        at, _ = _place(rng, data)
        data[at:at] = other[begin : end * 4]


_WAYS = (_insert, _replace, _value, _value, _value, _flip, _cut, _repeat, _splice)
