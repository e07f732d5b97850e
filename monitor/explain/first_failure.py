"""Which pod of a distributed job failed first: errors of the others are consequences."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.explain import crash
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

# Exits that processes of a job also have because another one of them has failed.
CONSEQUENCE_CAUSES = frozenset(
    {
        "crash-nccl", "crash-nccl-timeout", "crash-nccl-peer", "crash-nccl-system", "crash-rank-failed",
        "crash-asked-to-stop", "crash-timeout", "crash-refused", "crash-error", "crash-aborted", "crash-terminated",
    }
)  # fmt: skip
FailureOrder = tuple[bool, float, str]


def failure_order(cause: str, finished_at: float | None, pod: str) -> FailureOrder:
    """Sorts the failures of a job: causes before consequences, then by time."""
    return cause in CONSEQUENCE_CAUSES, finished_at if finished_at is not None else float("inf"), pod


def first_failed_pod(pod: PodFact, facts: ClusterFacts) -> PodFact | None:
    """The other pod of the same job whose failure explains that of this pod."""
    job = facts.identity(pod).job
    if job is None:
        return None
    members = (other for other in facts.pods if other.namespace == pod.namespace and facts.identity(other).job == job)
    failures = [(order, member) for member in members if (order := _order(member, facts))]
    first = min(failures, key=lambda failure: failure[0], default=None)
    return first[1] if first is not None and first[1].uid != pod.uid else None


def with_first_failure(pod: PodFact, diagnosis: PodDiagnosis, facts: ClusterFacts) -> Iterable[Text]:
    """Evidence that names the pod that failed first, if the failure of this one may be a consequence."""
    if diagnosis.cause in CONSEQUENCE_CAUSES and (first := first_failed_pod(pod, facts)):
        yield Text(Key.FIRST_FAILED_POD, {"first": first.name, "first_node": first.node or "?"})


def _order(pod: PodFact, facts: ClusterFacts) -> FailureOrder | None:
    """When and how a pod failed first; None if none of its containers has failed."""
    failed = crash.failed_containers(pod)
    orders = (
        failure_order(crash.crashed(pod, status, facts).cause, crash.last_termination(status).finished_at, pod.name)
        for status in failed
    )
    return min(orders, default=None)
