from __future__ import annotations

import pytest

from monitor.cluster.failures import NEW_FAILURE_SECONDS, nodes_with_new_failures
from monitor.facts.kube import ContainerStatusFact, PodFact, TerminationFact

NOW = 1_000_000.0
OLD = NOW - NEW_FAILURE_SECONDS
CASES: list[tuple[str, ContainerStatusFact, bool]] = [
    ("failed", ContainerStatusFact(name="c", state="terminated", exit_code=1, finished_at=NOW - 1), True),
    ("failed long ago", ContainerStatusFact(name="c", state="terminated", exit_code=1, finished_at=OLD), False),
    ("ended well", ContainerStatusFact(name="c", state="terminated", exit_code=0, finished_at=NOW - 1), False),
    ("runs", ContainerStatusFact(name="c", state="running"), False),
    ("unknown end", ContainerStatusFact(name="c", state="terminated", exit_code=1), False),
    (
        "waits for its next start",
        ContainerStatusFact(name="c", state="waiting", last=TerminationFact(exit_code=1, finished_at=NOW - 1)),
        True,
    ),
]


@pytest.mark.parametrize(("name", "status", "new"), CASES, ids=[case[0] for case in CASES])
def test_new_failures(name: str, status: ContainerStatusFact, new: bool) -> None:
    pod = PodFact(uid="u", name="p", namespace="team", node="n1", statuses=(status,))
    assert nodes_with_new_failures([None, pod], NOW) == (frozenset({"n1"}) if new else frozenset())


def test_a_pod_without_a_node() -> None:
    failed = ContainerStatusFact(name="c", state="terminated", exit_code=1, finished_at=NOW)
    assert not nodes_with_new_failures([PodFact(uid="u", name="p", namespace="team", statuses=(failed,))], NOW)
