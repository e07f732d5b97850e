"""Suggestions for the search."""

from __future__ import annotations

import pytest

from monitor.facts.cluster import ClusterView, Identity, NodeView, PodView, QueueView, UsageView
from monitor.present.suggestions import MAX_PER_KIND, suggestions


def pod(name: str, namespace: str = "nlp", user: str | None = None, job: str | None = None) -> PodView:
    owner = Identity(user=user, job=job)
    return PodView(uid=name, name=name, namespace=namespace, phase="Running", identity=owner)


VIEW = ClusterView(
    at=1.0,
    nodes=tuple(NodeView(name=f"gpu-{number}") for number in (1, 2, 10, 11, 12, 13)),
    pods=(pod("bert-0", user="zhang", job="bert"), pod("bert-1", user="zhang", job="bert"), pod("albert-0", "cv")),
    queues=(QueueView(name="vc-nlp", used=1, waiting=0),),
    users={"zhang": UsageView(), "Bertram": UsageView()},
)
FOUND = [
    ("", []),
    ("  ", []),
    ("zzz", []),
    ("ZHANG", ["user zhang"]),
    ("bert", ["user Bertram", "job bert", "pod nlp/bert-0", "pod nlp/bert-1", "pod cv/albert-0"]),
    ("nlp", ["queue vc-nlp", "pod nlp/bert-0", "pod nlp/bert-1"]),
    ("gpu-1", ["node gpu-1", "node gpu-10", "node gpu-11", "node gpu-12", "node gpu-13"]),
    ("<", []),
]


@pytest.mark.parametrize(("typed", "expect"), FOUND)
def test_what_is_suggested(typed: str, expect: list[str]) -> None:
    assert [f"{each.kind} {each.value}" for each in suggestions(VIEW, typed)] == expect


def test_of_very_many_names_a_few_are_suggested() -> None:
    many = ClusterView(at=1.0, nodes=tuple(NodeView(name=f"n{number}") for number in range(5000)))
    assert [each.value for each in suggestions(many, "n")] == [f"n{number}" for number in range(MAX_PER_KIND)]
