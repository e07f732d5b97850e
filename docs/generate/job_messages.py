"""Samples of the messages about how jobs ended."""

from __future__ import annotations

from typing import Any

from monitor.alert.model import Batch
from monitor.explain.keys import Key
from monitor.facts.text import Text, Value
from monitor.job_results.model import JobEnding, JobOutcome, Why
from monitor.job_results.notices import result_notifications

TITLE = {"en": "Job results", "zh": "作业结果"}
_AT = 1_763_259_600.0  # 2025-11-16 02:20:00 UTC
_POD: dict[str, Value] = {"pod": "bert-0", "namespace": "team-a", "node": "gpu-01", "container": "train"}


def _why(cause: str, headline: str, advice: str | None = None, evidence: tuple[Text, ...] = (), **more: Value) -> Why:
    values = _POD | more
    steps = (Text(advice, values),) if advice is not None else ()
    return Why(cause=cause, headline=Text(headline, values), evidence=evidence, advice=steps)


def _log(message: str) -> tuple[Text, ...]:
    return (Text(Key.LOG_SAYS, {"message": message}),)


_ENDINGS: tuple[tuple[JobOutcome, Why, dict[str, Any]], ...] = (
    (JobOutcome.FINISHED, _why("done", "job-finished.done"), {"count": 8}),
    (JobOutcome.FAILED, _why("crash-gpu-memory", Key.CRASH_GPU_MEMORY, Key.CRASH_GPU_MEMORY_ADVICE,
                          _log("torch.OutOfMemoryError: CUDA out of memory.")), {"count": 8, "others": 7}),
    (JobOutcome.FAILED, _why("crash-error", Key.CRASH_ERROR, Key.CRASH_ERROR_ADVICE, code=1), {}),
    (JobOutcome.FAILED, _why("crash-out-of-memory", Key.CRASH_OUT_OF_MEMORY, Key.CRASH_OUT_OF_MEMORY_ADVICE,
                          (Text(Key.MEMORY_LIMIT, {"limit": 64 * 2**30}),)), {}),
    (JobOutcome.FAILED, _why("deadline", Key.DEADLINE, Key.DEADLINE_ADVICE), {}),
    (JobOutcome.FAILED, _why("start-no-start-file", Key.START_NO_START_FILE, Key.START_NO_START_FILE_ADVICE,
                          file="trian.py"), {"started_at": None, "gpu_seconds": None}),
    (JobOutcome.STOPPED, _why("evicted", Key.EVICTED, Key.EVICTED_ADVICE), {}),
    (JobOutcome.STOPPED, _why("preempted", Key.PREEMPTED, Key.PRIORITY_ADVICE), {}),
    (JobOutcome.STOPPED, _why("node-lost", Key.NODE_WENT_DOWN, Key.SUBMIT_AGAIN_ADVICE), {"count": 8}),
    (JobOutcome.STOPPED, _why("deleted", "job-stopped.deleted"), {}),
    (JobOutcome.STOPPED, _why("unseen", "job-stopped.unseen"), {}),
    (JobOutcome.NOT_STARTED, _why("pull-not-found", Key.PULL_NOT_FOUND, Key.PULL_NOT_FOUND_ADVICE,
                               image="harbor.lab/team-a/train:2.1", registry="harbor.lab"),
     {"started_at": None, "gpu_seconds": None}),
)  # fmt: skip


def job_messages() -> list[tuple[str, Batch]]:
    """Each outcome and cause with its message."""
    return [(f"{outcome} {why.cause}", _batch(outcome, why, more)) for outcome, why, more in _ENDINGS]


def _batch(outcome: JobOutcome, why: Why, more: dict[str, Any]) -> Batch:
    fields: dict[str, Any] = {
        "id": why.cause, "key": "team-a/bert", "namespace": "team-a", "job": "bert", "user": "zhang", "pod": "bert-0",
        "node": "gpu-01", "started_at": _AT - 3 * 3600, "ended_at": _AT - 15, "gpu_seconds": 8 * 3 * 3600.0,
    }  # fmt: skip
    ending = JobEnding(outcome=outcome, why=why, **(fields | more))
    return Batch(id="", receiver="", notifications=result_notifications(ending, 0.71, ("",), _AT), at=_AT)
