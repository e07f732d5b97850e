"""The list of explained survivors is readable and names existing functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conventions.purity import pure_files
from tests.mutation.__main__ import PARTS, TOP
from tests.mutation.branches import PACKAGES
from tests.mutation.survivors import COLUMNS, Mutant, explained, function_of, mutant_of, unexplained

DIFF = """--- monitor/a.py
+++ monitor/a.py
@@ -1,3 +1,3 @@
 def f(x):
-    return  x or 0
-
+    return x or 1
"""
MUTANT = Mutant("monitor.a.f", "return x or 0", "return x or 1")


@pytest.mark.parametrize(
    ("name", "expect"),
    [
        ("monitor.a.x_f__mutmut_3", "monitor.a.f"),
        ("monitor.a.x__f__mutmut_30", "monitor.a._f"),
        ("monitor.a.xǁCǁ__init____mutmut_3", "monitor.a.C.__init__"),
    ],
)
def test_the_function_of_a_mutant(name: str, expect: str) -> None:
    assert function_of(name) == expect


def test_a_mutant_is_known_by_what_it_changes() -> None:
    assert mutant_of("monitor.a.x_f__mutmut_3", DIFF) == mutant_of("monitor.a.x_f__mutmut_9", DIFF) == MUTANT
    assert unexplained([MUTANT], {}) == [MUTANT]
    assert unexplained([MUTANT], {MUTANT: "same"}) == []


@pytest.mark.parametrize("kind", ["", "because"])
def test_a_reason_has_a_kind(tmp_path: Path, kind: str) -> None:
    listed = tmp_path / "survivors.tsv"
    listed.write_text("\t".join(COLUMNS) + f"\na.f\tx\ty\t{kind}\twhy\n", encoding="utf-8")
    with pytest.raises(ValueError, match="not explained"):
        explained(listed)


def test_every_explained_survivor_is_about_code_that_is_there() -> None:
    sources = {file: (TOP / file).read_text(encoding="utf-8") for part in PARTS.values() for file in part.files}
    texts = {file.removesuffix(".py").replace("/", "."): " ".join(text.split()) for file, text in sources.items()}
    assert explained()
    for mutant in explained():
        module = next(name for name in texts if mutant.function.startswith(f"{name}."))
        assert mutant.was in texts[module], mutant


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_that_decides_has_pure_files(package: str) -> None:
    assert pure_files(package)
