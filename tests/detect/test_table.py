"""The rules that were asked for, with their causes, are the rules that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.detect.rules import RULES

# A rule and its causes on each line; a rule without causes names its own.
ASKED = {
    line.split("\t")[0]: tuple(line.split("\t")[1:])
    for line in (Path(__file__).parents[1] / "fixtures" / "rules.tsv").read_text().splitlines()
}
# What came with later work: cleanup.
SINCE = {"actions-refused": ("token", "replayed", "expired", "too-many")}
ASKED |= SINCE
BY_NAME = {rule.rule: rule for rule in RULES}


def test_no_rule_is_missing_and_none_is_extra() -> None:
    assert sorted(BY_NAME) == sorted(ASKED)
    assert len(RULES) == len(BY_NAME)


@pytest.mark.parametrize("rule", [rule for rule, causes in ASKED.items() if causes])
def test_its_causes_are_those_of_the_table(rule: str) -> None:
    assert sorted(BY_NAME[rule].causes) == sorted(ASKED[rule])


def test_every_module_with_a_rule_is_listed() -> None:
    directory = Path(__file__).parents[2] / "monitor" / "detect" / "rules"
    with_rule = {path.stem for path in directory.glob("*.py") if "\nRULE = " in path.read_text()}
    assert {name.replace("-", "_") for name in BY_NAME} == with_rule
