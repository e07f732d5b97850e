"""Selection of the situation, and properties of every explanation."""

from __future__ import annotations

import ast
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import monitor.explain
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodStatus
from monitor.explain.pod import explain_pod
from monitor.facts.cluster import Identity
from monitor.facts.facts_index import make_cluster_facts
from monitor.present import explanation
from monitor.queries import search
from tests.explain.builders import (
    NOW,
    assert_renders,
    event,
    holding,
    looping,
    node,
    pod,
    running_container,
    unschedulable,
    waiting,
)

PACKAGE = Path(monitor.explain.__file__).parent
GONE = NOW - 100

DISPATCH: list[tuple[str, dict[str, Any], PodStatus]] = [
    ("no node", {}, PodStatus.PENDING),
    ("no phase and no node", {"phase": None}, PodStatus.PENDING),
    ("deleted before it had a node", {"deletion_at": GONE}, PodStatus.TERMINATING),
    ("deleted and crashing", {"deletion_at": GONE, "node": "gpu-01", "statuses": (looping(1),)}, PodStatus.TERMINATING),
    ("deleted and ended", {"deletion_at": GONE, "phase": "Succeeded"}, PodStatus.TERMINATING),
    ("ended", {"phase": "Succeeded", "node": "gpu-01"}, PodStatus.FINISHED),
    ("bound, no word yet", {"node": "gpu-01"}, PodStatus.CREATING),
    ("bound, creating", {"node": "gpu-01", "statuses": (waiting("ContainerCreating"),)}, PodStatus.CREATING),
    ("runs", {"node": "gpu-01", "phase": "Running", "statuses": (running_container(),)}, PodStatus.RUNNING),
    (
        "one of two runs, the other one is creating",
        {"node": "gpu-01", "statuses": (running_container(), waiting("ContainerCreating", name="b"))},
        PodStatus.RUNNING,
    ),
    ("crashes", {"node": "gpu-01", "phase": "Running", "statuses": (looping(1),)}, PodStatus.CRASHING),
    (
        "an init container ended well",
        {
            "node": "gpu-01",
            "statuses": (running_container(name="i", init=True, state="terminated", exit_code=0), running_container()),
        },
        PodStatus.RUNNING,
    ),
    (
        "an init container runs",
        {"node": "gpu-01", "statuses": (running_container(init=True), waiting("PodInitializing"))},
        PodStatus.CREATING,
    ),
    ("pull", {"node": "gpu-01", "statuses": (waiting("ErrImagePull"),)}, PodStatus.PULLING),
]


@pytest.mark.parametrize(("name", "fields", "expect"), DISPATCH, ids=[d[0] for d in DISPATCH])
def test_dispatch(name: str, fields: dict[str, Any], expect: PodStatus) -> None:
    explanation = explain_pod(pod(**fields), make_cluster_facts(nodes=[node("gpu-01")]), NOW)
    assert explanation.status is expect
    assert_renders(explanation)


def test_who_it_is_about() -> None:
    given_pod = pod(node="gpu-01")
    facts = make_cluster_facts(identities={given_pod.uid: Identity(user="alice", job="bert", queue="nlp")})
    ref = explain_pod(given_pod, facts, NOW).pod
    assert (ref.namespace, ref.name, ref.node, ref.user, ref.job, ref.queue) == (
        "team-a",
        "bert-0",
        "gpu-01",
        "alice",
        "bert",
        "nlp",
    )


def test_the_words_of_the_pending_causes() -> None:
    """The pending-pod rule uses exactly these causes."""
    assert [cause.value for cause in PendingCause] == [
        "no-single-node-fits",
        "not-enough-gpus",
        "quota",
        "queue-closed",
        "gang-incomplete",
        "taint",
        "selector",
        "volume",
        "vgpu",
        "device-claim",
        "topology",
        "priority",
        "overtaken",
        "unschedulable-other",
    ]


words = st.text(max_size=60)
maybe = st.one_of(st.none(), words)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(reason=maybe, message=maybe, event_reason=words, event_message=words, says=words, bound=st.booleans())
def test_no_text_breaks_it(
    reason: str | None, message: str | None, event_reason: str, event_message: str, says: str, bound: bool
) -> None:
    status = waiting(reason or "", message)
    given_pod = pod(gpus=1, node="gpu-01" if bound else None, statuses=(status,), conditions=unschedulable(says))
    events = [event(event_reason, event_message), event("FailedMount", event_message), event("Failed", says)]
    assert_renders(explain_pod(given_pod, make_cluster_facts(nodes=[node("gpu-01")], events=events), NOW))


@given(
    phase=st.sampled_from(["Pending", "Running", "Failed", "Succeeded", "Unknown", None]), reason=maybe, message=maybe
)
def test_no_phase_breaks_it(phase: str | None, reason: str | None, message: str | None) -> None:
    given_pod = pod(phase=phase, reason=reason, message=message, created_at=None)
    assert_renders(explain_pod(given_pod, make_cluster_facts(), NOW))


def test_pure() -> None:
    """No clock, no I/O, and nothing of the project but facts and the mask of secrets."""
    allowed = {"__future__", "collections", "dataclasses", "enum", "functools", "itertools", "re", "typing"}
    for path in PACKAGE.glob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text())):
            for name in _imported(statement):
                internal = name.startswith(("monitor.facts", "monitor.explain", "monitor.base.masking"))
                assert internal or name.partition(".")[0] in allowed, f"{path.name} imports {name}"


def _imported(statement: ast.AST) -> list[str]:
    if isinstance(statement, ast.ImportFrom):
        return [statement.module or ""]
    return [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []


def test_every_key_is_used() -> None:
    """A key that no code refers to is dead. Families are built from their prefix: `Key[f"PULL_{...}"]`."""
    paths = [path for path in PACKAGE.rglob("*.py") if path.name != "keys.py"]
    source = "".join(path.read_text() for path in [*paths, Path(explanation.__file__), Path(search.__file__)])
    families = ("PULL_", "MOUNT_", "SANDBOX_", "START_", "CRASH_", "SCHED_", "STATUS_")
    unused = [name for name in Key.__members__ if f"Key.{name}" not in source and not name.startswith(families)]
    # monitor/explain/scheduler_says.py builds the advice from the headline.
    assert [name for name in unused if f": Key.{name.removesuffix('_ADVICE')}," not in source] == []


@pytest.mark.timeout(300)
def test_a_large_cluster_does_not_make_it_slow() -> None:
    nodes = [node(f"gpu-{index:04}") for index in range(1000)]
    held = [holding(f"p-{index}", f"gpu-{index % 1000:04}", 1, cpu=0.5) for index in range(8000)]
    waiting_pods = [pod(f"w-{index}", gpus=8) for index in range(20)]
    facts = make_cluster_facts(nodes=nodes, pods=[*held, *waiting_pods])
    before = time.process_time()
    causes = {explain_pod(waiting_pod, facts, NOW).cause for waiting_pod in waiting_pods}
    assert causes == {"not-enough-gpus"}
    assert (time.process_time() - before) / len(waiting_pods) < 1.0
