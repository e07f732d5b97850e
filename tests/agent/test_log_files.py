# ruff: noqa: E501  # tables: one row is one line
"""The end of logs as Docker and the kubelet write and rotate them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.agent.log_files import READ_BYTES, TAIL_CHARS, read_tail

AT = "2026-03-02T11:20:41.123456789Z"


def docker(*texts: str, stream: str = "stderr") -> bytes:
    entries = ({"log": text, "stream": stream, "time": AT} for text in texts)
    return b"".join(json.dumps(entry, separators=(",", ":")).encode() + b"\n" for entry in entries)


def cri(*lines: tuple[str, bytes], stream: str = "stderr") -> bytes:
    return b"".join(f"{AT} {stream} {tag} ".encode() + text + b"\n" for tag, text in lines)


CASES = [
    ("Docker", docker("one\n", "two\n"), "one\ntwo\n"),
    ("Docker, a line in parts", docker("one ", "and ", "two\n", "three\n"), "one and two\nthree\n"),
    ("Docker, the last line has no end", docker("one\n", "tw"), "one\ntw\n"),
    ("Docker, not UTF-8", docker("\ufffd\ufffd\n"), "\ufffd\ufffd\n"),
    ("Docker, a torn entry", docker("one\n") + b'{"log":"tw', 'one\n{"log":"tw\n'),
    ("CRI", cri(("F", b"one"), ("F", b"two")), "one\ntwo\n"),
    ("CRI, a line in parts", cri(("P", b"one "), ("P", b"and "), ("F", b"two")), "one and two\n"),
    ("CRI, parts of two streams", cri(("P", b"er")) + cri(("F", b"out"), stream="stdout") + cri(("F", b"ror")), "out\nerror\n"),
    ("CRI, an empty line", f"{AT} stdout F \n{AT} stdout F\n".encode(), "\n\n"),
    ("CRI, GBK", cri(("F", "错误".encode("gbk") + b": KeyError")), "\ufffd\ufffd\ufffd\ufffd: KeyError\n"),
    ("CRI, Latin-1", cri(("F", "Schlüssel".encode("latin-1"))), "Schl\ufffdssel\n"),
    ("CRI, more tags", cri(("F:x", b"one")), "one\n"),
    ("another format", b"plain\ntext\n", "plain\ntext\n"),
    ("empty", b"", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), CASES, ids=[case[0] for case in CASES])
def test_formats(name: str, content: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(content)
    assert read_tail(str(tmp_path / "x.log")) == expected


ROTATIONS = [
    ("Docker", "x-json.log", {"x-json.log.1": b"old\n", "x-json.log.2": b"oldest\n", "x-json.log": b"new\n"}, "old\nnew\n"),
    ("kubelet", "0.log", {"0.log.20240430-101500": b"older\n", "0.log.20240501-101500": b"old\n", "0.log": b"new\n"}, "old\nnew\n"),
    ("compressed", "0.log", {"0.log.20240501-101500.gz": b"\x1f\x8b", "0.log": b"new\n"}, "new\n"),
    ("another container's", "0.log", {"1.log.20240501-101500": b"other\n", "0.log": b"new\n"}, "new\n"),
    ("just rotated", "0.log", {"0.log.20240501-101500": b"old\n", "0.log": b""}, "old\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "log", "files", "expected"), ROTATIONS, ids=[case[0] for case in ROTATIONS])
def test_rotation(name: str, log: str, files: dict[str, bytes], expected: str, tmp_path: Path) -> None:
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    assert read_tail(str(tmp_path / log)) == expected


def test_a_large_log_is_not_read_as_a_whole(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    with log.open("wb") as file:
        file.truncate(1 << 40)  # a sparse file of 1 TiB
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + cri(*(("F", b"line %d" % number) for number in range(10_000))))
    tail = read_tail(str(log))
    assert tail.endswith("line 9999\n")
    assert TAIL_CHARS / 2 < len(tail) <= TAIL_CHARS
    assert all(line.startswith("line ") for line in tail.splitlines()[1:])


def test_a_beginning_that_is_missing_is_no_line(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(b"x" * READ_BYTES + b"\nlast\n")
    assert read_tail(str(tmp_path / "0.log")) == "last\n"


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name in ("fifo", "link", "missing"):
        with pytest.raises(OSError, match=name):
            read_tail(str(tmp_path / name))


@given(st.binary(max_size=4000))
def test_any_bytes_are_text(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("log") / "0.log"
    path.write_bytes(content)
    read_tail(str(path)).encode()
