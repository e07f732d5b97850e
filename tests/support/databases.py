"""Damage to SQLite files, page by page, as a failing disk causes it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def pages_of(path: Path, table: str) -> list[int]:
    """Numbers of the leaf pages of a table, in the order of its keys."""
    with closing(sqlite3.connect(path)) as file:
        ((root,),) = file.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
        ((size,),) = file.execute("PRAGMA page_size")
    return _leaves(path.read_bytes(), root, size)


def _leaves(content: bytes, number: int, size: int) -> list[int]:
    page, start = content[(number - 1) * size : number * size], 100 if number == 1 else 0
    kind, cells = page[start], int.from_bytes(page[start + 3 : start + 5])
    if kind in (0x0D, 0x0A):  # leaf of a table, or of an index: a table without rowids is one
        return [number]
    pointers = [int.from_bytes(page[start + 12 + 2 * cell : start + 14 + 2 * cell]) for cell in range(cells)]
    children = [int.from_bytes(page[pointer : pointer + 4]) for pointer in pointers]
    children.append(int.from_bytes(page[start + 8 : start + 12]))
    return [leaf for child in children for leaf in _leaves(content, child, size)]


def damage_page_of(path: Path, table: str, *places: int) -> None:
    """Overwrite the leaf pages that lie at these places of a table, in percent."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((size,),) = file.execute("PRAGMA page_size")
    leaves = pages_of(path, table)
    with open(path, "r+b") as raw:
        for number in {leaves[len(leaves) * percent // 100] for percent in places}:
            raw.seek((number - 1) * size)
            raw.write(b"\xa5" * size)
