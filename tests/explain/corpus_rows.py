"""Rows of the corpus in tests/explain/corpus: failure messages, log tails and the table of classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CORPUS_DIR = Path(__file__).parent / "corpus"
KEPT_DIR = CORPUS_DIR / "kept"
MESSAGE_FILES = ("pulls", "starts", "scheduling")
LOG_FILE = "logs"
FILES = (*MESSAGE_FILES, LOG_FILE)
FILE_KINDS = {
    "pulls": frozenset({"pull"}),
    "starts": frozenset({"start", "mount", "exit"}),
    "scheduling": frozenset({"scheduling"}),
    "logs": frozenset({"log"}),
}
MAX_FILE_BYTES = 4 * 1024**2
MAX_LINE_CHARS = 32 * 1024

_ROW_COLUMNS = 6
_CLASS_COLUMNS = 5
_SEPARATOR = " ||| "
_GIVEN, _NEW = "# given", "# new"
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class CorpusError(ValueError):
    """A malformed line of the corpus; the message begins with the file and the line."""


@dataclass(frozen=True)
class FailureClass:
    """A class of failures. An answer that names the parent is coarse, not wrong."""

    name: str
    parent: str | None
    kinds: frozenset[str]
    meaning: str
    action: str


@dataclass(frozen=True)
class CorpusRow:
    """A failure with its expected classes: each of them is right.

    `subject` is the image (pulls), the kind of object that speaks (starts, scheduling) or the line that proves the
    class (logs). `messages` is one message or log tail, or several events of one pod.
    """

    path: Path
    line: int
    given: bool
    expect: tuple[str, ...]
    source: str
    action: str
    subject: str
    messages: tuple[str, ...]
    must_say: tuple[str, ...]
    must_not_say: tuple[str, ...]

    @property
    def where(self) -> str:
        return f"{self.path.name}:{self.line}"


def load_classes(path: Path = CORPUS_DIR / "classes.tsv") -> dict[str, FailureClass]:
    """The table of classes by name."""
    classes: dict[str, FailureClass] = {}
    for number, line in _lines(path):
        if line.startswith("#"):
            continue
        name, parent, kinds, meaning, action = _columns(path, number, line, _CLASS_COLUMNS)
        if not _NAME.fullmatch(name) or not kinds or not meaning or not action:
            raise CorpusError(f"{path}:{number}: a class needs a name, kinds, a meaning and an action")
        if name in classes:
            raise CorpusError(f"{path}:{number}: class {name} appears twice")
        classes[name] = FailureClass(name, parent or None, frozenset(kinds.split(",")), meaning, action)
    for failure in classes.values():
        if failure.parent is not None and failure.parent not in classes:
            raise CorpusError(f"{path}: parent {failure.parent} of class {failure.name} is not in the table")
    return classes


def load_rows(path: Path, classes: dict[str, FailureClass]) -> tuple[CorpusRow, ...]:
    """Rows of one file; every expected class has to be in the table."""
    rows, given = [], False
    for number, line in _lines(path):
        if line.startswith("#"):
            given = line.startswith(_GIVEN) or (given and not line.startswith(_NEW))
            continue
        rows.append(_row(path, number, line, given=given))
        for name in rows[-1].expect:
            if name not in classes:
                raise CorpusError(f"{path}:{number}: class {name} is not in classes.tsv")
    return tuple(rows)


def _row(path: Path, number: int, line: str, *, given: bool) -> CorpusRow:
    expect, source, action, subject, message, must = _columns(path, number, line, _ROW_COLUMNS)
    if not expect or not source or not action:
        raise CorpusError(f"{path}:{number}: a row needs a class, a source and an action")
    text = unescape(path, number, message)
    demands = [demand for demand in must.split(";") if demand]
    if any(demand[0] not in "+-" or not demand[1:] for demand in demands):
        raise CorpusError(f"{path}:{number}: a demand begins with + or -: {must}")
    return CorpusRow(
        path,
        number,
        given,
        tuple(expect.split(",")),
        source,
        action,
        unescape(path, number, subject),
        tuple(text.split(_SEPARATOR)),
        tuple(demand[1:] for demand in demands if demand[0] == "+"),
        tuple(demand[1:] for demand in demands if demand[0] == "-"),
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines without empty ones."""
    if path.stat().st_size > MAX_FILE_BYTES:
        raise CorpusError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    # Split at line feeds alone: a log tail may contain the other characters that str.splitlines() splits at.
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if len(line) > MAX_LINE_CHARS:
            raise CorpusError(f"{path}:{number}: longer than {MAX_LINE_CHARS} characters")
        if line:
            yield number, line


def _columns(path: Path, number: int, line: str, expected: int) -> list[str]:
    columns = line.split("\t")
    if len(columns) != expected:
        raise CorpusError(f"{path}:{number}: {len(columns)} columns instead of {expected}")
    return columns


def unescape(path: Path, number: int, text: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPED:
            raise CorpusError(f"{path}:{number}: unknown escape {match[0]}")
        return _ESCAPED[match[1]]

    return _ESCAPE.sub(character, text)
