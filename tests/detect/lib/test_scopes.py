from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitor.detect.lib.scopes import ScopeIndex
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text

labels = st.dictionaries(st.sampled_from(["node", "mount", "pod"]), st.sampled_from(["a", "b", ""]), max_size=3)
rules = st.lists(st.sampled_from(["r1", "r2"]), max_size=2).map(tuple)
scopes = st.lists(st.builds(Scope, labels=labels, rules=rules), max_size=8)


def finding(rule: str, subject: dict[str, str]) -> Finding:
    return Finding(rule=rule, severity=Severity.INFO, cause="x", labels=subject, headline=Text(key="x"))


@given(scopes, st.sampled_from(["r1", "r2", "r3"]), labels)
def test_it_finds_what_trying_each_would_find_in_the_same_order(
    given: list[Scope], rule: str, subject: dict[str, str]
) -> None:
    about = finding(rule, subject)
    expect = [number for number, scope in enumerate(given) if scope.covers(about)]
    assert list(ScopeIndex((scope, number) for number, scope in enumerate(given)).covering(about)) == expect


def test_only_scopes_with_the_same_values_are_tried() -> None:
    tried = []

    class Counting(Scope, frozen=True):
        def covers(self, finding: Finding) -> bool:
            tried.append(self.labels["node"])
            return super().covers(finding)

    index = ScopeIndex((Counting(labels={"node": f"n{number}"}), number) for number in range(1000))
    assert list(index.covering(finding("r1", {"node": "n7", "pod": "p"}))) == [7]
    assert tried == ["n7"]
