"""When a job has ended, and which of its pods decides how."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from monitor.facts.kube import JobFact
from monitor.facts.text import Text
from monitor.job_results.endings import (
    CONTROLLER_SETTLE_SECONDS,
    LOG_WAIT_SECONDS,
    QUICK_SETTLE_SECONDS,
    RECHECK_SECONDS,
    STUCK_SECONDS,
    Controllers,
    JobDecision,
    decide,
)
from monitor.job_results.model import JobEnding, JobOutcome, PodEnd, TrackedJob, TrackedPod, Why

NOW = 1_763_260_000.0
LATER = NOW + 3600
NO_JOBS = Controllers({}, known=True)


def pod(name: str = "bert-0", end: str | None = None, cause: str = "crash-error", **more: Any) -> TrackedPod:
    """A pod that ran from an hour before NOW, until NOW if it has ended."""
    fields: dict[str, Any] = {
        "uid": f"uid-{name}-{more.get('created_at', 0)}", "name": name, "created_at": NOW - 3700,
        "started_at": NOW - 3600, "node": "n1", "gpus": 1.0,
    }  # fmt: skip
    if end is not None:
        why = Why(cause="done" if end == "succeeded" else cause, headline=Text("failed"))
        fields |= {"end": PodEnd(end), "why": why, "finished_at": NOW, "seen_over_at": NOW}
    return TrackedPod(**(fields | more))


def job(*pods: TrackedPod, kind: str = "Pod", **more: Any) -> TrackedJob:
    return TrackedJob(namespace="team-a", name="bert", kind=kind, pods={each.uid: each for each in pods}, **more)


def controllers(*jobs: JobFact) -> Controllers:
    return Controllers({each.uid: each for each in jobs}, known=True)


def batch(**more: Any) -> JobFact:
    return JobFact(uid="j1", name="bert", namespace="team-a", **more)


def ending_of(given: TrackedJob, known: Controllers = NO_JOBS, now: float = LATER) -> JobEnding:
    found = decide(given, known, now).ending
    assert found is not None
    return found


def of_job(pods: Iterable[TrackedPod]) -> list[TrackedPod]:
    return [replace(each, controller="j1", owned=True) for each in pods]


ENDINGS = [
    ("succeeds", [pod("a", "succeeded")], JobOutcome.FINISHED, "done", "a"),
    ("fails", [pod("a", "failed")], JobOutcome.FAILED, "crash-error", "a"),
    ("is deleted", [pod("a", "removed", "deleted")], JobOutcome.STOPPED, "deleted", "a"),
    ("is gone unseen", [pod("a", "removed", "unseen")], JobOutcome.STOPPED, "unseen", "a"),
    ("is preempted", [pod("a", "removed", "preempted")], JobOutcome.STOPPED, "preempted", "a"),
    ("is evicted", [pod("a", "failed", "evicted-emptydir")], JobOutcome.STOPPED, "evicted-emptydir", "a"),
    ("loses its node", [pod("a", "removed", "node-lost")], JobOutcome.STOPPED, "node-lost", "a"),
    ("exceeds its deadline", [pod("a", "failed", "deadline")], JobOutcome.FAILED, "deadline", "a"),
    (
        "fails in one pod, then in the others as a consequence",
        [pod("a", "failed", "crash-nccl"), pod("b", "failed", "crash-gpu-memory", finished_at=NOW + 9)],
        JobOutcome.FAILED, "crash-gpu-memory", "b",
    ),
    (
        "fails in one pod, and its controller deletes the others",
        [pod("a", "removed", "deleted", finished_at=NOW - 1), pod("b", "failed", "crash-error")],
        JobOutcome.FAILED, "crash-error", "b",
    ),
    (
        "fails in one pod, and the others are stopped in the same second",
        [pod("a", "failed", "crash-terminated"), pod("b", "failed", "crash-error")],
        JobOutcome.FAILED, "crash-error", "b",
    ),
    (
        "is preempted in one pod, and the others fail",
        [pod("a", "failed", "crash-nccl"), pod("b", "removed", "preempted")], JobOutcome.STOPPED, "preempted", "b",
    ),
    (
        "succeeds in its launcher, and the workers are deleted",
        [pod("launcher", "succeeded"), pod("worker", "removed", "deleted")], JobOutcome.FINISHED, "done", "launcher",
    ),
    (
        "fails, and a pod of the same name succeeds",
        [pod("a", "failed"), pod("a", "succeeded", created_at=NOW + 1, finished_at=NOW + 9)],
        JobOutcome.FINISHED, "done", "a",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("pods", "outcome", "cause", "decisive"), [case[1:] for case in ENDINGS], ids=[case[0] for case in ENDINGS]
)
def test_a_job(pods: list[TrackedPod], outcome: JobOutcome, cause: str, decisive: str) -> None:
    found = ending_of(job(*pods))
    assert (found.outcome, found.why.cause, found.pod) == (outcome, cause, decisive)


def test_eight_pods_are_one_end_with_the_time_of_all_their_gpus() -> None:
    pods = [pod(f"bert-{rank}", "failed", "crash-nccl" if rank else "crash-error", gpus=8.0) for rank in range(8)]
    found = ending_of(job(*pods))
    assert (found.count, found.others, found.gpu_seconds) == (8, 7, 8 * 8 * 3600.0)
    assert (found.started_at, found.ended_at) == (NOW - 3600, NOW)


def test_pods_that_begin_and_fail_in_one_second_do_not_replace_each_other() -> None:
    pods = of_job([pod(f"bert-{rank}", "failed", created_at=NOW) for rank in range(3)])
    found = ending_of(job(*pods, kind="Job"), controllers(batch(failed_by="BackoffLimitExceeded")))
    assert (found.count, found.others) == (3, 2)


def test_a_job_goes_on_while_one_of_its_pods_does() -> None:
    assert decide(job(pod("a", "failed"), pod("b")), NO_JOBS, LATER) == JobDecision()


RETRIES = [
    ("goes on", batch(), None),
    ("has completed", batch(completed=True), JobOutcome.FINISHED),
    ("has given up", batch(failed_by="BackoffLimitExceeded"), JobOutcome.FAILED),
]


@pytest.mark.parametrize(("fact", "outcome"), [case[1:] for case in RETRIES], ids=[case[0] for case in RETRIES])
def test_a_failed_pod_of_a_job_that_retries_is_not_the_end(fact: JobFact, outcome: JobOutcome | None) -> None:
    given = job(
        *of_job([pod("a", "failed"), pod("b", "failed", created_at=NOW + 10, finished_at=NOW + 20)]), kind="Job"
    )
    found = decide(given, controllers(fact), LATER)
    assert (found.ending and found.ending.outcome) == outcome
    assert found.check_at == (None if outcome else LATER + RECHECK_SECONDS)


def test_the_last_attempt_of_a_job_decides() -> None:
    pods = of_job([
        pod("a", "removed", "preempted"),
        pod("b", "failed", "crash-out-of-memory", created_at=NOW + 10, finished_at=NOW + 20),
    ])  # fmt: skip
    found = ending_of(job(*pods, kind="Job"), controllers(batch(failed_by="BackoffLimitExceeded")))
    assert (found.why.cause, found.count, found.others) == ("crash-out-of-memory", 1, 0)


def test_a_job_that_exceeds_its_deadline_has_its_pods_deleted() -> None:
    given = job(*of_job([pod("a", "removed", "deleted")]), kind="Job")
    found = ending_of(given, controllers(batch(failed_by="DeadlineExceeded")))
    assert (found.outcome, found.why.cause) == (JobOutcome.FAILED, "deadline")


SETTLING = [
    ("success of a bare pod", job(pod("a", "succeeded")), NO_JOBS, QUICK_SETTLE_SECONDS),
    ("failure of a bare pod, whose log is read", job(pod("a", "failed")), NO_JOBS, LOG_WAIT_SECONDS),
    ("deletion with its Job", job(*of_job([pod("a", "removed", "deleted")]), kind="Job"), NO_JOBS,
     QUICK_SETTLE_SECONDS),
    ("a controller that we do not see through", job(pod("a", "succeeded", owned=True), kind="PyTorchJob"), NO_JOBS,
     CONTROLLER_SETTLE_SECONDS),
    ("Jobs that cannot be read", job(*of_job([pod("a", "succeeded")]), kind="Job"), Controllers({}, known=False),
     CONTROLLER_SETTLE_SECONDS),
    ("Jobs of a JobSet, which it may create again", job(*of_job([pod("a", "failed")]), kind="JobSet"),
     controllers(batch(failed_by="BackoffLimitExceeded")), CONTROLLER_SETTLE_SECONDS),
]  # fmt: skip


@pytest.mark.parametrize(("given", "known", "seconds"), [case[1:] for case in SETTLING], ids=[c[0] for c in SETTLING])
def test_an_end_is_certain_after(given: TrackedJob, known: Controllers, seconds: float) -> None:
    assert decide(given, known, NOW + seconds - 0.1) == JobDecision(check_at=NOW + seconds)
    assert decide(given, known, NOW + seconds).ending is not None


def stuck(**more: Any) -> TrackedPod:
    why = Why(cause="pull-not-found", headline=Text("failed"))
    return pod("a", started_at=None, stuck_at=NOW, why=why, **more)


def test_a_job_that_cannot_start_is_reported_once() -> None:
    given = job(stuck())
    assert decide(given, NO_JOBS, NOW) == JobDecision(check_at=NOW + STUCK_SECONDS)
    found = ending_of(given, now=NOW + STUCK_SECONDS)
    assert (found.outcome, found.why.cause, found.gpu_seconds) == (JobOutcome.NOT_STARTED, "pull-not-found", None)
    assert decide(job(stuck(), stuck_reported=True), NO_JOBS, LATER).ending is None


def test_deleting_a_job_of_which_its_owner_knows_that_it_does_not_start_is_no_news() -> None:
    gone = pod("a", "removed", "deleted", started_at=None)
    assert decide(job(gone, stuck_reported=True), NO_JOBS, LATER) == JobDecision()
    assert ending_of(job(gone)).why.cause == "deleted"
    assert ending_of(job(pod("a", "succeeded"), stuck_reported=True)).outcome is JobOutcome.FINISHED


def test_a_pod_that_cannot_start_beside_running_ones_is_not_the_end() -> None:
    assert decide(job(stuck(), pod("b")), NO_JOBS, LATER) == JobDecision()


def test_a_pod_that_is_being_deleted_is_looked_at_again() -> None:
    leaving = pod("a", why=Why(cause="deleted", headline=Text("job-stopped.deleted")))
    assert decide(job(leaving), NO_JOBS, NOW) == JobDecision(check_at=NOW + RECHECK_SECONDS)


def test_both_messages_about_a_job_have_ids_of_their_own_and_all_replicas_the_same() -> None:
    assert ending_of(job(stuck())).id != ending_of(job(pod("a", "failed"))).id
    assert (
        ending_of(job(pod("a", "failed"), pod("b", "failed"))).id
        == ending_of(job(pod("b", "failed", seen_over_at=NOW + 5), pod("a", "failed"))).id
    )


def test_a_reported_pod_is_not_reported_again() -> None:
    assert decide(job(pod("a", "failed", reported=True)), NO_JOBS, LATER) == JobDecision()
