"""Tables of text, printed in the terminal and shown on the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monitor.base.logs import printable

Rows = list[tuple[str | None, ...]]
UNKNOWN = "?"
MAX_ROWS = 200
# Right-aligned columns.
NUMERIC_COLUMNS = frozenset(
    {"containers", "count", "every", "for", "free", "images", "inodes %", "processes", "size", "temp", "took", "used"}
    | {"used %", "util", "GPUs", "GPUs used", "GPUs waiting", "GPU memory", "CPU cores", "memory", "shm", "disk"}
)


@dataclass(frozen=True)
class TextTable:
    """Rows under a title. Without rows, `note` says why there are none."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def make_table(title: str, columns: str, rows: Rows, note: str = "") -> TextTable:
    """A table of printable text; None is shown as unknown. `columns` are separated by |."""
    cells = tuple(tuple(UNKNOWN if cell is None else printable(cell) for cell in row) for row in rows)
    return TextTable(title, tuple(name.strip() for name in columns.split("|")), cells, printable(note))


def make_limited_table(title: str, columns: str, rows: Rows, note: str = "", remarks: Iterable[str] = ()) -> TextTable:
    """A table of the first MAX_ROWS rows, whose title mentions that there are more, and the remarks."""
    more = [f"the first {MAX_ROWS} of {len(rows)}"] if len(rows) > MAX_ROWS else []
    remark = ", ".join((*more, *remarks))
    return make_table(f"{title} ({remark})" if remark else title, columns, rows[:MAX_ROWS], note)
