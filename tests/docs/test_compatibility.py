"""Compatibility: every proof names tests and cases that exist, and both languages name the same ones."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from monitor.cluster.platforms import PLATFORMS
from tests.cluster.test_identity import ROWS
from tests.deploy.test_chart import VERSIONS
from tests.docs.pages import ROOT, prose
from tests.e2e.platforms.test_platforms import ADAPTERS
from tests.lab.v1_20.build import VERSION

PAGES = {"en": ROOT / "docs" / "compatibility.md", "zh": ROOT / "docs" / "zh" / "compatibility.md"}
# The words of the first table, in its order; the last one says that there is no test.
PROOFS = {
    "en": ("real", "objects", "samples", "cases", "not tested"),
    "zh": ("真实", "对象", "样本", "用例", "未测试"),
}
LAB = ROOT / "tests" / "lab" / "modern"
_REFERENCE = re.compile(r"`(?:(?P<file>tests/[\w/]+\.py)(?:::(?P<test>\w+))?)?(?:\[(?P<case>[^`]+)\])?`")
Reference = tuple[str, str | None, str | None]


def tables(page: Path) -> list[list[list[str]]]:
    """Cells of the rows of each table, without header and separator."""
    found = re.findall(r"(?:^\|.*\n)+", prose(page), flags=re.MULTILINE)
    return [[[cell.strip() for cell in line.split("|")[1:-1]] for line in each.splitlines()[2:]] for each in found]


def proofs(language: str) -> list[list[str]]:
    """Rows that say what is proven and how."""
    return [row for table in tables(PAGES[language])[1:] for row in table]


def references(row: list[str]) -> list[Reference]:
    """File, function and case; a case without a file belongs to the test before it."""
    found: list[Reference] = []
    for match in _REFERENCE.finditer(row[2]):
        file, test, case = match.groups()
        if file is None:
            file, test, _ = found[-1]
        found.append((file, test, case))
    return found


@cache
def contents(file: str) -> tuple[frozenset[str], frozenset[str]]:
    """Functions of a file, and its strings."""
    nodes = list(ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(functions), frozenset(strings)


def exists(reference: Reference) -> bool:
    file, test, case = reference
    if not (ROOT / file).is_file():
        return False
    functions, strings = contents(file)
    return (test is None or test in functions) and (case is None or case in strings)


@pytest.mark.parametrize("language", PAGES)
def test_every_named_test_exists(language: str) -> None:
    named = [reference for row in proofs(language) for reference in references(row)]
    assert len(named) > 100
    assert [reference for reference in named if not exists(reference)] == []


@pytest.mark.parametrize("language", PAGES)
def test_a_proof_names_a_test_or_says_that_there_is_none(language: str) -> None:
    assert tuple(word for word, _ in tables(PAGES[language])[0]) == PROOFS[language]
    for row in proofs(language):
        what, proof, *_ = row
        assert proof in PROOFS[language], what
        assert bool(references(row)) is (proof != PROOFS[language][-1]), what


def test_both_languages_prove_the_same() -> None:
    english, chinese = (
        [[(PROOFS[language].index(row[1]), references(row)) for row in table] for table in tables(page)[1:]]
        for language, page in PAGES.items()
    )
    assert english == chinese


@pytest.mark.parametrize("language", PAGES)
def test_every_known_platform_has_a_proof(language: str) -> None:
    cases = {case for row in proofs(language) for file, _, case in references(row) if file.endswith("test_identity.py")}
    proven = {row.expect.platform for row in ROWS if row.name in cases}
    assert {rule.name for rule in PLATFORMS if rule.job} - proven == set()


@pytest.mark.parametrize("language", PAGES)
def test_versions_are_those_of_the_labs_and_of_the_schemas(language: str) -> None:
    text = PAGES[language].read_text(encoding="utf-8")
    modules = (("kubernetes", "k8s.io/kubernetes"), ("containerd", "github.com/containerd/containerd/v2"))
    for directory, module in modules:
        found = re.search(rf"{re.escape(module)} v([\d.]+)", (LAB / directory / "go.mod").read_text(encoding="utf-8"))
        assert found, module
        assert f" {found[1]}" in text
    for name, kind in ADAPTERS.items():
        if len(kind.platforms) == 1:
            assert f"| {name} {kind.platforms[0].module.version()[1:].rpartition('.')[0]}" in text
    assert f"| {VERSION}" in text
    assert all(version in text for version in VERSIONS)


@pytest.mark.parametrize(
    "reference",
    [
        ("tests/docs/test_missing.py", None, None),
        ("tests/docs/test_compatibility.py", "test_that_was_renamed", None),
        ("tests/docs/test_compatibility.py", "test_what_does_not_exist_is_found", "no " + "such case"),
    ],
)
def test_what_does_not_exist_is_found(reference: Reference) -> None:
    assert not exists(reference)
