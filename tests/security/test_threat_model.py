"""Every line of the threat model names existing tests, the same in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security.threat_model import PAGES, REFERENCE, names_in, rows


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
    own = ("security/test_threat_model.py", "security/test_removals.py")
    about_itself = {pair for pair in written if pair[0] in own}
    helpers = {("security/test_hostile_names.py", "test_every_kind_of_receiver_is_here")}
    assert written - about_itself - helpers - named == set()
