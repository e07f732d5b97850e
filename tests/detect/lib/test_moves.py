"""The search for moves is limited: fit checks are remembered, and it gives up when they are used up."""

from __future__ import annotations

from monitor.detect.lib.moves import _MoveSearch
from monitor.facts.facts_index import make_cluster_facts
from tests.explain.builders import GPU, node, pod


def test_fit_checks_are_limited_and_remembered() -> None:
    facts = make_cluster_facts(nodes=[node("n1"), node("n2")])
    small, other = pod("small", gpus=1), pod("other", gpus=1)
    search = _MoveSearch(small, facts, {}, GPU, 1, left=2)
    assert [search.fits(each, "n1") for each in (small, other)] == [True, True]
    assert search.fits(small, "n2") is False, "it may fit, but nobody checks any more"
    assert [search.fits(each, "n1") for each in (small, other)] == [True, True]
