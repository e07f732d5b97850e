"""Tables of the threat model: which attack, which defence, which tests."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs/threat-model.md", ROOT / "docs/zh/threat-model.md")
REFERENCE = re.compile(r"`tests/(?P<path>[\w/]+\.py)::(?P<name>test_\w+)`")
NOT_STOPPED = "not stopped"


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


def protected_tests() -> dict[str, str]:
    """Attack by test, for every row that claims a defence."""
    return {
        f"tests/{path}::{name}": cells[0]
        for cells in rows(PAGES[0])
        if not cells[1].startswith(NOT_STOPPED)
        for path, name in REFERENCE.findall(cells[-1])
    }


@functools.cache
def names_in(path: str) -> frozenset[str]:
    """Names of the tests in a file under tests/; none if there is no such file."""
    file = ROOT / "tests" / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(
        each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    )
