"""Snapshots of a lying agent: as large as the daemon accepts, with the longest strings everywhere."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from monitor.base.text import MAX_TEXT_CHARS
from monitor.cluster.agents.client import MAX_BODY_BYTES, AgentError
from monitor.cluster.agents.snapshot import decode_snapshot
from monitor.facts.base import MAX_IDENTIFIER_CHARS
from tests.security.lies import Path, truth
from tests.support.snapshots import AT

NODE = "lying-node"
# Codes: with other values the facts would be ignored instead of reported.
CODES = frozenset(("node", "state", "kind", "runtime", "outcome", "source", "stage", "roles", "signal", "fstype"))
NUMBERED = frozenset(("index", "pid", "device"))
MAX_REPEATED = 256  # items of a list that are shown one by one
MIN_TIME_SECONDS = 1e9  # a number from here on is a time
MIN_PARTS = 8  # the bytes of a body are divided by at least this many lists
TICK = "@@tick@@"
WIDE = "\N{SKULL}"  # makes Python use four bytes for each character of the string


class Liar:
    """Produces another snapshot with each call."""

    def __init__(self) -> None:
        self.told = 0
        plain = truth() | {"node": NODE}
        lengths = {path: _longest(plain, path) for path in _strings(plain)}
        shift = time.time() - AT
        parts = MIN_PARTS
        while len(body := _encode(_lie(plain, lengths, shift, MAX_BODY_BYTES // parts))) > MAX_BODY_BYTES:
            parts += 1
        self._body = body

    def lie(self) -> bytes:
        """The next snapshot."""
        self.told += 1
        body = self._body.replace(TICK.encode(), b"%08d" % self.told)
        return body.replace(b'"at":@now@', b'"at":%.3f' % time.time())


def _encode(value: dict[str, Any]) -> bytes:
    text = json.dumps(value | {"at": "@now@"}, ensure_ascii=False, separators=(",", ":"))
    return text.replace('"@now@"', "@now@").encode()


def _strings(value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of all strings that are not codes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in CODES:
                yield from _strings(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _strings(inner, (*path, index))
    elif isinstance(value, str):
        yield path


def _longest(plain: dict[str, Any], path: Path) -> int:
    """The longest string that the daemon accepts at a path."""
    lie = json.loads(json.dumps(plain))
    inner = lie
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = "a" * MAX_TEXT_CHARS
    try:
        decode_snapshot(json.dumps(lie).encode())
    except AgentError:
        return MAX_IDENTIFIER_CHARS
    return MAX_TEXT_CHARS


def _lie(plain: dict[str, Any], lengths: dict[Path, int], shift: float, part_bytes: int) -> dict[str, Any]:
    """The snapshot with each list of objects repeated up to a number of bytes."""

    def grown(value: Any, path: Path, number: int) -> Any:
        if isinstance(value, dict):
            return {key: grown(inner, (*path, key), number) for key, inner in value.items()}
        if isinstance(value, list):
            return repeated(value, path) if value and isinstance(value[0], dict) and len(path) <= 3 else [
                grown(inner, (*path, index), number) for index, inner in enumerate(value)
            ]  # fmt: skip
        if path in lengths:
            return _text(number, lengths[path])
        if path and path[-1] in NUMBERED and isinstance(value, int):
            return value + number
        return value + shift if isinstance(value, float) and value > MIN_TIME_SECONDS else value

    def repeated(items: list[Any], path: Path) -> list[Any]:
        made: list[Any] = []
        room = part_bytes
        while room > 0 and len(made) < MAX_REPEATED:
            index = len(made) % len(items)
            made.append(grown(items[index], (*path, index), len(made)))
            room -= len(json.dumps(made[-1]))
        return made

    return dict(grown(plain, (), 0))


def _text(number: int, length: int) -> str:
    """A text that differs for each number and with each snapshot."""
    return f"/{number:04d}{TICK}{WIDE}".ljust(length, "a")
