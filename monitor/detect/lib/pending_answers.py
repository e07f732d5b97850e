"""Why waiting pods wait, explained once for all that are alike and a few at a time. Pure.

An explanation looks at every node: too dear for each of a thousand pods every few seconds. Alike pods share one, and it
is remembered until it is its turn to be made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from monitor.explain.explain import explain_pod
from monitor.explain.keys import Key
from monitor.explain.reasons import PendingCause
from monitor.facts.cluster_facts import World
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

MAX_NODES_PER_EVALUATION = 2000  # that are looked at in one pass, over all explanations
MAX_ANSWERS = 500
_OVERTAKEN = "overtaken"
_NOT_ENOUGH = (Key.NOT_ENOUGH_GPUS.value, Key.NO_GPU_NODES.value)


class PendingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Why pods of one shape wait. `overtaken_at` is when the pod was created that overtook them, if one did."""

    at: float
    cause: str
    evidence: tuple[Text, ...]
    advice: tuple[Text, ...] = ()
    overtaken_at: float | None = None


def pod_shape(pod: PodFact, facts: World) -> tuple[object, ...]:
    """Given a waiting pod, return what its explanation depends on: pods for which it is equal are explained alike."""
    queued = facts.group_of(pod) or facts.workload_of(pod)
    return (
        queued.uid if queued else facts.identity(pod).queue,
        tuple(sorted(pod.requests.items())),
        tuple(sorted(pod.node_selector.items())),
        pod.node_affinity,
        pod.tolerations,
        (pod.scheduler, pod.priority, pod.nominated_node, pod.scheduling_gates, pod.pod_affinity),
        tuple((pod.namespace, volume.claim) for volume in pod.volumes if volume.claim),
        any(each.type == "PodScheduled" and each.status is False for each in pod.conditions),
    )


def shape_id(of: tuple[object, ...]) -> str:
    """Given a shape, return a short name by which it is remembered."""
    return hashlib.sha256(repr(of).encode()).hexdigest()[:16]


def load_answers(memory: Any) -> dict[str, PendingAnswer]:
    """Given what was remembered, return the answers; what cannot be read is forgotten."""
    try:
        return msgspec.convert(memory or {}, dict[str, PendingAnswer])
    except msgspec.ValidationError:
        return {}


def update_answers(
    oldest: Mapping[str, PodFact], before: Mapping[str, PendingAnswer], facts: World, now: float
) -> dict[str, PendingAnswer]:
    """Given the oldest pod of each shape, return their answers: new ones first, then those that are longest ago.

    A shape that is not in the result has to wait for its turn.
    """
    known = {name: before[name] for name in oldest if name in before}
    turn = sorted(oldest, key=lambda name: (known[name].at if name in known else 0.0, oldest[name].created_at or 0.0))
    for name in turn[: max(2, MAX_NODES_PER_EVALUATION // max(1, len(facts.nodes)))]:
        known[name] = _explain(oldest[name], facts, now)
    return dict(list(known.items())[:MAX_ANSWERS])


def _explain(pod: PodFact, facts: World, now: float) -> PendingAnswer:
    found = explain_pod(pod, facts, now)
    evidence = (found.headline, *found.evidence)
    later = next((note.values["later"] for note in evidence if note.key == Key.OVERTAKEN.value), None)
    overtaken_at = (pod.created_at or 0.0) + float(later) if later is not None else None
    return PendingAnswer(at=now, cause=found.cause, evidence=evidence, advice=found.advice, overtaken_at=overtaken_at)


def answer_for_pod(answer: PendingAnswer, pod: PodFact) -> PendingAnswer:
    """Given the answer for the oldest pod of a shape, return what of it is true for another one.

    Who overtook the oldest may have been there before this one.
    """
    created = pod.created_at or 0.0
    if answer.overtaken_at is None:
        return answer
    if created < answer.overtaken_at:
        return msgspec.structs.replace(answer, evidence=_later(answer.evidence, answer.overtaken_at - created))
    evidence = tuple(note for note in answer.evidence if not note.key.startswith(_OVERTAKEN))
    cause = answer.cause
    if cause == PendingCause.OVERTAKEN:
        short = bool(evidence) and evidence[0].key in _NOT_ENOUGH
        cause = PendingCause.NOT_ENOUGH_GPUS if short else PendingCause.NO_SINGLE_NODE_FITS
    return msgspec.structs.replace(answer, cause=str(cause), evidence=evidence, overtaken_at=None)


def _later(evidence: Sequence[Text], seconds: float) -> tuple[Text, ...]:
    return tuple(
        Text(key=note.key, values=note.values | {"later": seconds}) if note.key == Key.OVERTAKEN.value else note
        for note in evidence
    )
