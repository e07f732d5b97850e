"""Tables of text, printed in the terminal and shown on the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from monitor.base.logs import printable
from monitor.facts.cluster import GpuState
from monitor.facts.text import Text
from monitor.i18n import CATALOGS, Value, code, say
from monitor.i18n.notes import sentence

Rows = list[tuple[str | None, ...]]
UNKNOWN = "?"
MAX_ROWS = 200
_GPU_STATES = frozenset(state.value for state in GpuState)
# Columns whose cells are codes, and those with names, which are never broken.
CODED_COLUMNS = frozenset({"severity", "state", "phase", "event", "result", "STATE", "OUTCOME"})
NAME_COLUMNS = frozenset(
    {"node", "pod", "GPU", "user", "queue", "subject", "source", "held by", "name", "mount", "device", "container"}
    | {"image", "id", "receiver", "rule", "severity", "path", "address", "WHAT", "POLICY", "NODE", "TRASH ID"}
)
# Right-aligned columns.
NUMERIC_COLUMNS = frozenset(
    {"containers", "count", "every", "for", "free", "images", "inodes %", "processes", "size", "temp", "took", "used"}
    | {"used %", "util", "GPUs", "GPUs used", "GPUs waiting", "GPU memory", "CPU cores", "memory", "shm", "disk"}
)


@dataclass(frozen=True)
class TextTable:
    """Rows under a title. Without rows, `note` says why there are none; `remarks` belong to the title.

    Titles, columns and notes are English; `in_language` translates them.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    remarks: tuple[Text, ...] = ()


def make_table(title: str, columns: str, rows: Rows, note: str = "") -> TextTable:
    """A table of printable text; None is shown as unknown. `columns` are separated by |."""
    cells = tuple(tuple(UNKNOWN if cell is None else printable(cell) for cell in row) for row in rows)
    return TextTable(title, tuple(name.strip() for name in columns.split("|")), cells, printable(note))


def make_limited_table(title: str, columns: str, rows: Rows, note: str = "", remarks: Iterable[Text] = ()) -> TextTable:
    """A table of the first MAX_ROWS rows, with a remark that there are more."""
    more = [Text("table.first", {"shown": MAX_ROWS, "count": len(rows)})] if len(rows) > MAX_ROWS else []
    return replace(make_table(title, columns, rows[:MAX_ROWS], note), remarks=(*more, *remarks))


def heading(table: TextTable, lang: str) -> str:
    """Title with its remarks in one language."""
    title = table_word(table.title, lang)
    if not table.remarks:
        return title
    remarks = say(lang, "alert.list", {}).join(sentence(remark, lang) for remark in table.remarks)
    return say(lang, "table.titled", {"title": title, "remarks": remarks})


def table_word(word: str, lang: str) -> str:
    """A heading, note or state in one language; as it is if it names something."""
    return CATALOGS[lang].get(f"page.state.{word}" if word in _GPU_STATES else f"table.{word}", word)


def table_text(lang: str, key: str, **values: Value) -> str:
    """A sentence or part of one that tables contain, in one language."""
    return say(lang, f"tables.{key}", values)


def page_word(lang: str, group: str, word: str) -> str:
    """The name of a code that the pages have. English uses the code itself."""
    return word if lang == "en" else CATALOGS[lang].get(f"page.{group}.{word}", word)


def table_list(lang: str, words: Iterable[str]) -> str:
    """Words as a list in one language."""
    return (", " if lang == "en" else say(lang, "alert.list", {})).join(words)


def in_language(table: TextTable, lang: str) -> TextTable:
    """The table in one language: its headings, and the codes among its cells."""
    coded = [name in CODED_COLUMNS for name in table.columns]
    rows = tuple(
        tuple(_code(cell, lang) if is_code else cell for cell, is_code in zip(row, coded, strict=True))
        for row in table.rows
    )
    columns = tuple(table_word(name, lang) for name in table.columns)
    return TextTable(heading(table, lang), columns, rows, table_word(table.note, lang))


def _code(word: str, lang: str) -> str:
    """A code such as a severity, state or cause. English uses the code itself."""
    if lang == "en":
        return word
    severity = CATALOGS[lang].get(f"page.severity.{word}")
    parts = (code(lang, table_word(part, lang)) for part in word.split(", "))
    return severity or say(lang, "alert.list", {}).join(parts)
