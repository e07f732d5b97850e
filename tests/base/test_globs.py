from __future__ import annotations

import pytest

from monitor.base.globs import compile_file_glob, matches_any_glob, matches_glob


@pytest.mark.parametrize(
    ("text", "pattern", "matched"),
    [
        ("gpu-01", "gpu-*", True),
        ("gpu-01", "gpu-0?", True),
        ("gpu-01", "gpu-0[12]", True),
        ("gpu-03", "gpu-0[!12]", True),
        ("gpu-01", "gpu", False),
        ("GPU-01", "gpu-*", False),
    ],
)
def test_shell_patterns(text: str, pattern: str, matched: bool) -> None:
    assert matches_glob(text, pattern) is matched
    assert matches_any_glob(text, ("nothing", pattern)) is matched
    assert not matches_any_glob(text, ())


@pytest.mark.parametrize(("name", "pattern", "matched"), [("a", "*", True), (".a", "*", False), (".a", ".*", True)])
def test_hidden_names_match_only_a_dot(name: str, pattern: str, matched: bool) -> None:
    assert bool(compile_file_glob(pattern).match(name)) is matched
