"""Why pods are pending, explained once per pod shape and a few shapes per evaluation.

An explanation examines every node, which is too expensive for a thousand pods every few seconds. Pods of the same
shape share one, and it is kept until its turn to be refreshed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from monitor.detect.lib.pods import REFRESH_SECONDS
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause
from monitor.explain.pod import explain_pod
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

MAX_NODES_PER_EVALUATION = 1000  # nodes examined, over all explanations
MAX_ANSWERS = 500
MIN_PAUSE_SECONDS = 2.0  # before further shapes are explained
PAUSE_SECONDS_PER_NODE = 0.0025  # the same in a large cluster: an explanation takes 0.03 ms per node
_OVERTAKEN = "overtaken"
_NOT_ENOUGH = (Key.NOT_ENOUGH_GPUS.value, Key.NO_GPU_NODES.value)


class PendingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Why pods of one shape are pending. `overtaken_at` is the creation time of the pod that overtook them."""

    at: float
    cause: str
    evidence: tuple[Text, ...]
    advice: tuple[Text, ...] = ()
    overtaken_at: float | None = None


def pod_shape(pod: PodFact, facts: ClusterFacts) -> tuple[object, ...]:
    """Everything the explanation of a pending pod depends on; pods with equal shapes share an explanation."""
    queued = facts.group_of(pod) or facts.workload_of(pod)
    return (
        queued.uid if queued else facts.identity(pod).queue,
        tuple(sorted(pod.requests.items())),
        tuple(sorted(pod.node_selector.items())),
        pod.node_affinity,
        pod.tolerations,
        (pod.scheduler, pod.priority, pod.nominated_node, pod.scheduling_gates, pod.pod_affinity),
        tuple((pod.namespace, volume.claim) for volume in pod.volumes if volume.claim),
        tuple((pod.namespace, each.template or each.claim, each.claim is None) for each in pod.device_claims),
        any(condition.type == "PodScheduled" and condition.status is False for condition in pod.conditions),
    )


def shape_id(pod: PodFact, facts: ClusterFacts) -> str:
    """Short key of the shape of a pod in the memory."""
    return _hash(pod_shape(pod, facts))


@lru_cache(maxsize=4096)  # most shapes recur in every evaluation
def _hash(shape: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(shape).encode()).hexdigest()[:16]


def update_answers(
    oldest: Mapping[str, PodFact], memory: Any, facts: ClusterFacts, now: float
) -> dict[str, PendingAnswer]:
    """Answers by shape, given the oldest pod of each: new shapes are explained first, then the stalest.

    A shape that is missing from the result waits for a later evaluation, at the earliest when the pause after the last
    explanation is over. `memory` holds earlier answers as JSON values.
    """
    before = _load(memory)
    answers = {name: before[name] for name in oldest if name in before and before[name].at <= now}
    if now < _pause_end(answers, len(facts.nodes)):
        return answers
    turn = sorted(
        (name for name in oldest if name not in answers or now - answers[name].at >= REFRESH_SECONDS),
        key=lambda name: (answers[name].at if name in answers else 0.0, oldest[name].created_at or 0.0),
    )
    for name in turn[: max(1, MAX_NODES_PER_EVALUATION // max(1, len(facts.nodes)))]:
        answers[name] = explain_pending(oldest[name], facts, now)
    return dict(sorted(answers.items(), key=lambda item: item[1].at)[-MAX_ANSWERS:])


def known_answer(memory: Any, shape: str) -> PendingAnswer | None:
    """An earlier answer from the memory of the rule."""
    return _load({shape: memory[shape]}).get(shape) if isinstance(memory, dict) and shape in memory else None


def _load(memory: Any) -> dict[str, PendingAnswer]:
    """Answers from the memory; unreadable ones are dropped."""
    try:
        return msgspec.convert(memory or {}, dict[str, PendingAnswer])
    except msgspec.ValidationError:
        return {}


def next_turn(names: Iterable[str], answers: Mapping[str, PendingAnswer], nodes: int, now: float) -> float | None:
    """When the first of these shapes has to be explained, for the first time or again."""
    turns = [answers[name].at + REFRESH_SECONDS if name in answers else now for name in names]
    return max(min(turns), _pause_end(answers, nodes)) if turns else None


def _pause_end(answers: Mapping[str, PendingAnswer], nodes: int) -> float:
    """When further shapes may be explained; at once if none has been."""
    last = max((answer.at for answer in answers.values()), default=-math.inf)
    return last + max(MIN_PAUSE_SECONDS, PAUSE_SECONDS_PER_NODE * nodes)


def explain_pending(pod: PodFact, facts: ClusterFacts, now: float) -> PendingAnswer:
    """Why a pod is pending."""
    answer = explain_pod(pod, facts, now)
    evidence = (answer.headline, *answer.evidence)
    later = next((item.values["later"] for item in evidence if item.key == Key.OVERTAKEN.value), None)
    overtaken_at = (pod.created_at or 0.0) + float(later) if later is not None else None
    return PendingAnswer(at=now, cause=answer.cause, evidence=evidence, advice=answer.advice, overtaken_at=overtaken_at)


def answer_for_pod(answer: PendingAnswer, pod: PodFact) -> PendingAnswer:
    """The answer for the oldest pod of a shape, adapted to another pod.

    The pod that overtook the oldest one may be older than this one.
    """
    created = pod.created_at or 0.0
    if answer.overtaken_at is None:
        return answer
    if created < answer.overtaken_at:
        return msgspec.structs.replace(answer, evidence=_later(answer.evidence, answer.overtaken_at - created))
    evidence = tuple(item for item in answer.evidence if not item.key.startswith(_OVERTAKEN))
    cause = answer.cause
    if cause == PendingCause.OVERTAKEN:
        short = bool(evidence) and evidence[0].key in _NOT_ENOUGH
        cause = PendingCause.NOT_ENOUGH_GPUS if short else PendingCause.NO_SINGLE_NODE_FITS
    return msgspec.structs.replace(answer, cause=str(cause), evidence=evidence, overtaken_at=None)


def _later(evidence: Sequence[Text], seconds: float) -> tuple[Text, ...]:
    return tuple(
        Text(key=item.key, values=item.values | {"later": seconds}) if item.key == Key.OVERTAKEN.value else item
        for item in evidence
    )
