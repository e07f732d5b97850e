"""Rows of the corpus as Kubernetes objects: what the daemon knows when the failure is reported."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from monitor.explain.model import Explanation
from monitor.explain.not_created import explain_name
from monitor.explain.pod import explain_pod
from monitor.facts.cluster_facts import GROUP_ANNOTATIONS
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import ConditionFact, EventFact, OwnerRef, PodContainerFact, PodFact, PodVolumeFact
from monitor.facts.queues import PodGroupFact, WorkloadFact
from monitor.kube.decode.values import parse_quantity
from tests.explain.builders import GPU, NOW, event, looping, node, pod, unschedulable, waiting
from tests.explain.corpus_rows import CorpusRow

NODE = "gpu-01"
JOB = OwnerRef(kind="Job", name="bert", uid="uid-job")
_PENDING = re.compile(r"(\d+) Pending")
_MIN_AVAILABLE = re.compile(r"(\d+) minAvailable")
_YUNIKORN_REASONS = (("is queued and waiting", "Scheduling"), ("taskGroup", "GangScheduling"))


@dataclass
class _Case:
    """A pod with the other facts, or the name of an object without pods."""

    pod: PodFact | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    name: str = "bert"


def explain_row(row: CorpusRow) -> Explanation:
    """What the product answers to the row."""
    case = _BUILDERS[row.path.stem](row)
    if case.pod is None:
        return explain_name(case.name, None, make_cluster_facts(**case.facts), NOW)
    return explain_pod(case.pod, make_cluster_facts(pods=(case.pod,), **case.facts), NOW)


def _pull(row: CorpusRow) -> _Case:
    containers = (PodContainerFact(name="main", image=row.subject),)
    reason = "ImagePullBackOff" if row.messages[0].startswith("Back-off") else "ErrImagePull"
    return _Case(pod(node=NODE, containers=containers, statuses=(waiting(reason, row.messages[0]),)))


_WAITING = {"start": "RunContainerError", "create": "CreateContainerError", "config": "CreateContainerConfigError"}
_EVENTS = {
    "sandbox": "FailedCreatePodSandBox",
    "mount": "FailedMount",
    "attach": "FailedAttachVolume",
    "dra": "FailedPrepareDynamicResources",
}


def _start(row: CorpusRow) -> _Case:
    kind, *details = row.subject.split(":")
    if kind in _WAITING:
        return _Case(pod(node=NODE, statuses=(waiting(_WAITING[kind], row.messages[0]),)))
    if kind in _EVENTS:
        return _Case(
            pod(node=NODE, started_at=NOW - 300), {"nodes": [node(NODE)], "events": _events(_EVENTS[kind], row)}
        )
    if kind == "exit":
        status = looping(int(details[0]), reason=details[1], message=row.messages[0] or None)
        return _Case(pod(node=NODE, statuses=(status,)))
    reason = details[0] if kind == "admission" else "Evicted"
    return _Case(
        pod(node=NODE, phase="Failed", reason=reason, message=row.messages[0]),
        {"events": _events("Evicted", row)[1:]},
    )


def _events(reason: str, row: CorpusRow, **more: Any) -> list[EventFact]:
    return [event(reason, message, ago=100.0 - number, **more) for number, message in enumerate(row.messages)]


def _scheduling(row: CorpusRow) -> _Case:
    subject, *requests = row.subject.split(";")
    kind, _, detail = subject.partition(":")
    fields = _requests(requests)
    facts: dict[str, Any] = {"nodes": [node(NODE)]}
    if kind == "create":
        event_ = event("FailedCreate", row.messages[0], kind="Job", name="bert", involved_uid="uid-job")
        return _Case(facts=facts | {"events": [event_]})
    if kind == "podgroup":
        return _Case(facts=facts | _pod_group(row))
    if kind == "workload":
        return _Case(facts=facts | {"workloads": [_workload(row, detail)]})
    if kind == "failed":
        return _Case(pod(phase="Failed", reason=detail, message=row.messages[0], **fields), facts)
    if kind == "gate":
        return _Case(pod(scheduling_gates=(detail,), conditions=unschedulable(row.messages[0]), **fields), facts)
    if kind in ("filter", "event", "claim"):
        events = [
            event(_event_reason(kind, message), message, ago=100.0 - number)
            for number, message in enumerate(row.messages)
        ]
        return _Case(pod(scheduler=detail or None, **fields), facts | {"events": events})
    return _Case(pod(scheduler=detail or None, conditions=unschedulable(row.messages[0]), **fields), facts)


def _event_reason(kind: str, message: str) -> str:
    if kind == "event":
        return next((reason for fragment, reason in _YUNIKORN_REASONS if fragment in message), "Informational")
    return {"filter": "FilteringFailed", "claim": "FailedResourceClaimCreation"}[kind]


def _requests(requests: list[str]) -> dict[str, Any]:
    """Fields of the pod from `gpu=`, `cpu=`, `mem=`, `res=<resource>=<amount>` and `pvc=`."""
    fields: dict[str, Any] = {}
    amounts = {"cpu": 1.0}
    names = {"gpu": GPU, "cpu": "cpu", "mem": "memory"}
    for request in requests:
        key, _, value = request.partition("=")
        if key == "pvc":
            fields["volumes"] = (PodVolumeFact(name="data", kind="persistentVolumeClaim", claim=value),)
        elif key == "res":
            resource, _, amount = value.partition("=")
            amounts[resource] = parse_quantity(amount) or 0.0
        elif key in names:
            amounts[names[key]] = parse_quantity(value) or 0.0
    return fields | {"requests": amounts}


def _pod_group(row: CorpusRow) -> dict[str, Any]:
    found = _MIN_AVAILABLE.search(" ".join(row.messages))
    group = PodGroupFact(
        uid="uid-pg", name="bert-pg", namespace="team-a", owner=JOB, queue="nlp", phase="Pending",
        min_member=int(found[1]) if found else 1,
    )  # fmt: skip
    # The pods of a job exist once Volcano counts them.
    pending = _PENDING.search(" ".join(row.messages))
    more: dict[str, Any] = {"scheduler": "volcano", "owner": JOB, "annotations": {GROUP_ANNOTATIONS[0]: "bert-pg"}}
    return {
        "pods": [pod(f"bert-{number}", **more) for number in range(int(pending[1]) if pending else 0)],
        "pod_groups": [group],
        "events": _events("Unschedulable", row, kind="PodGroup", name="bert-pg", involved_uid="uid-pg"),
    }


def _workload(row: CorpusRow, reason: str) -> WorkloadFact:
    condition = ConditionFact(type="QuotaReserved", status=False, reason=reason, message=row.messages[0])
    return WorkloadFact(
        uid="uid-w", name="job-bert", namespace="team-a", owner=JOB, queue="nlp", phase="pending",
        conditions=(condition,),
    )  # fmt: skip


_BUILDERS: dict[str, Callable[[CorpusRow], _Case]] = {"pulls": _pull, "starts": _start, "scheduling": _scheduling}
