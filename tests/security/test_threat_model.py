"""Every line of the threat model names existing tests, the same in both languages."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs/threat-model.md", ROOT / "docs/zh/threat-model.md")
REFERENCE = re.compile(r"`tests/(?P<path>[\w/]+\.py)::(?P<name>test_\w+)`")


def rows(page: Path) -> list[list[str]]:
    """Rows of the attack tables; their last column lists the tests."""
    found: list[list[str]] = []
    attacks = False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            attacks = False
        elif cells[-1] in ("shown by", "由谁验证"):
            attacks = True
        elif attacks and not set(cells[0]) <= {"-"}:
            found.append(cells)
    return found


@functools.cache
def names_in(path: str) -> frozenset[str]:
    """Names of the tests in a file under tests/."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return frozenset(
        each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    )


@pytest.mark.parametrize("page", PAGES, ids=["en", "zh"])
def test_every_line_names_a_test_that_exists(page: Path) -> None:
    lines = rows(page)
    assert len(lines) > 40
    for cells in lines:
        named = REFERENCE.findall(cells[-1])
        assert named, f"no test for: {cells[0]}"
        assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []


def test_both_languages_say_the_same_of_the_same() -> None:
    ours, theirs = ([REFERENCE.findall(cells[-1]) for cells in rows(page)] for page in PAGES)
    assert ours == theirs


def test_every_test_of_this_folder_is_named() -> None:
    """Every test written for the threat model is listed in it."""
    named = {pair for cells in rows(PAGES[0]) for pair in REFERENCE.findall(cells[-1])}
    folder = Path(__file__).parent
    written = {
        (f"security/{path.name}", name)
        for path in folder.glob("test_*.py")
        for name in names_in(f"security/{path.name}")
    }
    about_itself = {pair for pair in written if pair[0] == "security/test_threat_model.py"}
    helpers = {("security/test_hostile_names.py", "test_every_kind_of_receiver_is_here")}
    assert written - about_itself - helpers - named == set()
