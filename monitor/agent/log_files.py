"""The end of a container's log on the node, in the formats of Docker (json-file) and CRI, across a rotation.

Only the last bytes are read. Whatever they contain, the result is text: bytes that are not UTF-8 are replaced.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

import msgspec

TAIL_CHARS = 16 * 1024  # of what the container wrote
# Formats add about 60 bytes to each line, and JSON escapes up to five to a character.
READ_BYTES = 3 * TAIL_CHARS
_COMPRESSED = (".gz", ".zst", ".tmp")
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_CRI_STREAMS = (b"stdout", b"stderr")


class _DockerEntry(msgspec.Struct):
    """A line of a json-file log. A line longer than 16 KiB is split; only its last part ends with a line break."""

    log: str = ""
    stream: str = ""


_decoder = msgspec.json.Decoder(_DockerEntry)


def read_tail(path: str) -> str:
    """What the container wrote last. Raise OSError if its log cannot be read."""
    content, complete = _last_bytes(path, READ_BYTES)
    if complete and len(content) < READ_BYTES and (older := _rotated(path)) is not None:
        try:
            before, complete = _last_bytes(older, READ_BYTES - len(content))
            content = before + content
        except FileNotFoundError:
            pass  # removed or compressed meanwhile
    lines = content.split(b"\n")
    if not complete and len(lines) > 1:
        del lines[0]  # the beginning of this line is missing
    return "".join(_decode(lines))[-TAIL_CHARS:]


def _last_bytes(path: str, most: int) -> tuple[bytes, bool]:
    """The last bytes of a regular file, and whether these are all."""
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        start = max(0, status.st_size - most)
        return os.pread(descriptor, most, start), start == 0
    finally:
        os.close(descriptor)


def _rotated(path: str) -> str | None:
    """The newest rotated file: `x-json.log.1` of Docker, `0.log.20240501-101500` of the kubelet."""
    directory, name = os.path.split(path)
    prefix = f"{name}."
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(prefix)]
    plain = [other for other in names if not other.endswith(_COMPRESSED)]
    if f"{prefix}1" in plain:
        return os.path.join(directory, f"{prefix}1")
    return os.path.join(directory, max(plain)) if plain else None


def _decode(lines: Iterable[bytes]) -> Iterator[str]:
    """Text of the entries. Parts of a split line are joined, separately for each stream."""
    parts: dict[str, list[str]] = {}
    for line in lines:
        if not line:
            continue
        stream, text, complete = _docker(line) or _cri(line) or ("", line.decode("utf-8", "replace"), True)
        parts.setdefault(stream, []).append(text)
        if complete:
            yield "".join(parts.pop(stream)) + "\n"
    yield from ("".join(pending) + "\n" for pending in parts.values())


def _docker(line: bytes) -> tuple[str, str, bool] | None:
    if not line.startswith(b'{"log":'):
        return None
    try:
        entry = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return entry.stream, entry.log.removesuffix("\n"), entry.log.endswith("\n")


def _cri(line: bytes) -> tuple[str, str, bool] | None:
    """`2026-03-02T11:20:41.123456789Z stderr F text`; tag P is a part of a line, F its end."""
    fields = line.split(b" ", 3)
    if len(fields) < 3 or fields[1] not in _CRI_STREAMS or not fields[0][:4].isdigit():
        return None
    text = fields[3] if len(fields) == 4 else b""
    return fields[1].decode(), text.decode("utf-8", "replace"), fields[2].split(b":")[0] != b"P"
