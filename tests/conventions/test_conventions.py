"""The tree follows its conventions."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.conventions import constants, prose, purity
from tests.conventions.sources import ROOT, docstrings, module_of, python_files, tree_of

# Constants whose name cannot carry a unit, with the reason.
UNITLESS: dict[str, str] = {}
# Class names that several modules define, with the reason.
SHARED_NAMES = {
    "Limits": "each rule has its own limits, addressed as <rule>.Limits; detect.base has the generic one",
}
SOURCES = python_files("monitor")
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")})
ENGLISH = [path for path in DOCUMENTS if "zh" not in path.parts and "zh-CN" not in path.name]


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def objections(paths: Iterable[Path], check: Callable[[Path], Iterable[object]]) -> dict[str, list[object]]:
    """What a check finds in these files, by file. One test per file would take longer than the check."""
    found = {place(path): list(check(path)) for path in paths}
    return {name: each for name, each in found.items() if each}


def unitless(path: Path) -> Iterator[str]:
    for line, name in constants.unitless(path):
        if f"{module_of(path)}.{name}" not in UNITLESS:
            yield f"{line}: {name}"


def test_numeric_constants_carry_a_unit() -> None:
    assert objections(SOURCES, unitless) == {}


def test_the_exceptions_are_few_and_needed() -> None:
    assert len(UNITLESS) <= 30
    present = {f"{module_of(path)}.{name}" for path in SOURCES for _, name in constants.unitless(path)}
    assert set(UNITLESS) == present


def test_a_class_name_is_defined_once() -> None:
    modules = defaultdict(list)
    for path in SOURCES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(module_of(path))
    repeated = {name: where for name, where in modules.items() if len(where) > 1}
    assert {name: where for name, where in repeated.items() if name not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) <= set(repeated)


def claims(path: Path) -> Iterator[tuple[int, str]]:
    module = module_of(path)
    for line, text in docstrings(tree_of(path)):
        yield from ((line, claim) for claim in purity.objections(module, text))


def test_docstrings_claim_only_what_a_contract_guarantees() -> None:
    assert objections(SOURCES, claims) == {}


def test_comments_and_docstrings_are_free_of_prose_markers() -> None:
    assert objections(python_files("monitor", "bench", "dashboards", "docs", "tests"), prose.of_python) == {}


def test_english_texts_are_free_of_prose_markers() -> None:
    assert objections(python_files("monitor/i18n/en"), prose.of_strings) == {}


def test_documents_are_free_of_prose_markers() -> None:
    assert objections(ENGLISH, prose.of_text) == {}


def test_only_packages_lie_in_the_root() -> None:
    assert [path.name for path in (ROOT / "monitor").glob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize("name", ["TIMEOUT", "PATIENCE", "BRIEF", "_BEAT", "SECONDARY"])
def test_a_name_without_a_unit(name: str) -> None:
    assert not constants.has_unit(name)


@pytest.mark.parametrize("name", ["TIMEOUT_SECONDS", "MAX_ROWS", "MIN_SHARE", "_TAIL_BYTES", "HTTP_PORT", "EXIT_CODE"])
def test_a_name_with_a_unit(name: str) -> None:
    assert constants.has_unit(name)


def test_constants_of_classes_and_in_tuples_count(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("A, B_SECONDS = 1, 2\nclass C:\n    QUIET = 4 * 60\n    FLAG = True\n    NAME = 'x'\n")
    assert list(constants.unitless(source)) == [(1, "A"), (3, "QUIET")]


@pytest.mark.parametrize(
    "text",
    [
        "Nobody waits for it.",
        "The receiver is told again.",
        "what it was told before",
        "word of an old one's end",
        "of which the first counts",
        "so many threads as it has",
        "it does not wait any more",
        "that is no reason to stop",
        "this lasts 2 min",
        "whom to ask",
        "for want of facts",
    ],
)
def test_markers_are_found(text: str) -> None:
    assert len(prose.markers(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "It is no longer used.",
        "There is no such file.",
        "there is no driver",
        "is no more than a hint",
        "anymore",
        "the keyword of the rule",
    ],
)
def test_ordinary_uses_are_allowed(text: str) -> None:
    assert prose.markers(text) == []


def test_a_claim_about_imports_or_purity_is_found() -> None:
    assert purity.objections("monitor.detect.engine", "Decides. Pure.") == []
    assert purity.objections("monitor.web.app", "Pure.") == ["pure, but not in the contract"]
    assert purity.objections("monitor.facts", "May import: msgspec.") == ["May import"]
    assert purity.objections("monitor.base.sqlite", "The only importer of sqlite3.") == ["only importer"]
