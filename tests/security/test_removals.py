"""Every protection of the threat model has a removal that fits the tree; `make threats` tries them."""

from __future__ import annotations

import msgspec
import pytest

from tests.security.removals.model import Removal, applied, load, problem_with, without_removal
from tests.security.removals.trial import outcome_of, problem_of
from tests.security.threat_model import protected_tests

REMOVALS = [(name, removal) for name, removals in load().items() for removal in removals]
SAMPLE = Removal(
    protection="p",
    test="tests/a.py::test_a",
    file="monitor/a.py",
    before="if bad:\n    stop()",
    after="if False:\n    stop()",
)


@pytest.mark.parametrize(("name", "removal"), REMOVALS, ids=[f"{name}-{each.protection}" for name, each in REMOVALS])
def test_a_removal_fits(name: str, removal: Removal) -> None:
    assert problem_with(removal) is None


def test_every_protection_has_a_removal() -> None:
    assert without_removal(protected_tests(), [removal for _, removal in REMOVALS]) == []


def test_rows_that_are_not_stopped_need_none() -> None:
    known = protected_tests()
    assert "tests/cleanup/plan/test_properties_pods.py::test_no_pod_goes_that_a_protection_covers" not in known
    assert without_removal({"tests/a.py::test_a": "attack"}, [SAMPLE]) == []
    assert without_removal({"tests/a.py::test_b": "attack"}, [SAMPLE]) == ["tests/a.py::test_b (attack)"]


@pytest.mark.parametrize(
    ("text", "more", "problem"),
    [
        ("", {}, "occurs 0 times"),
        (f"{SAMPLE.before}\n{SAMPLE.before}\n", {}, "occurs 2 times"),
        (SAMPLE.before, {"after": SAMPLE.before}, "changes nothing"),
        (SAMPLE.before, {"after": "if"}, "is not Python"),
    ],
)
def test_a_removal_that_does_not_fit(text: str, more: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        applied(msgspec.structs.replace(SAMPLE, **more), text)


PASSED, FAILED = "PASSED tests/a.py::test_a[x]\n", "FAILED tests/a.py::test_a[y - z] - assert 1 == 2\n"


@pytest.mark.parametrize(
    ("code", "output", "problem"),
    [
        (1, PASSED + FAILED, None),
        (0, PASSED, "passes without the protection"),
        (0, "SKIPPED [1] tests/a.py:1: needs docker\n", "is skipped"),
        (1, "ERROR tests/a.py::test_a - at setup\n", "did not run to its end"),
        (2, "ERROR tests/a.py\n", "did not run to its end"),
        (4, "", "did not run to its end"),
        (-9, "no end within 120 s", "did not run to its end"),
        (1, f"E   NameError: name 'x' is not defined\n{FAILED}", "replacement is broken"),
    ],
)
def test_what_shows_that_a_test_depends_on_its_protection(code: int, output: str, problem: str | None) -> None:
    found = problem_of(SAMPLE, outcome_of(code, output))
    assert found is None if problem is None else problem in (found or "")
