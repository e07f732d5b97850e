"""When running jobs end, by earlier runs."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.explain.fits.jobs import MIN_RUNS, EarlierRuns, Job, jobs_of, together
from monitor.explain.fits.model import Estimate
from monitor.facts.cluster import Identity
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import ContainerStatusFact, OwnerRef, PodFact
from tests.explain.builders import NOW, holding

HOUR = 3600.0


def ended(number: int, hours: float, **more: Any) -> PodFact:
    """A pod of the job `nightly` that has run for some hours."""
    status = ContainerStatusFact(name="main", state="terminated", exit_code=0, finished_at=NOW - 90_000)
    fields: dict[str, Any] = {
        "phase": "Succeeded",
        "started_at": NOW - 90_000 - hours * HOUR,
        "statuses": (status,),
        "owner": OwnerRef(kind="Job", name=f"nightly-{29000000 + number}", uid=f"j{number}"),
    }
    return holding(f"nightly-{number}", "gpu-01", 8, **(fields | more))


def running(hours: float, gpus: float = 8, **more: Any) -> PodFact:
    owner = OwnerRef(kind="Job", name="nightly-29999999", uid="now")
    return holding("now", "gpu-01", gpus, **({"started_at": NOW - hours * HOUR, "owner": owner} | more))


RUNS = [ended(number, hours) for number, hours in enumerate((2.0, 3.0, 4.0, 5.0, 6.0, 7.0))]


def estimate(pod: PodFact, runs: list[PodFact], **identities: Identity) -> Estimate | None:
    facts = make_cluster_facts(pods=[pod, *runs], identities=identities)
    (job,) = jobs_of([pod], facts)
    return EarlierRuns(facts).estimate(job, NOW)


def test_the_rest_of_the_runs_that_took_longer() -> None:
    assert estimate(running(1.0), RUNS) == Estimate(seconds=3.5 * HOUR, earliest=HOUR, latest=6 * HOUR, runs=6)
    assert estimate(running(2.5), RUNS) == Estimate(seconds=2.5 * HOUR, earliest=0.5 * HOUR, latest=4.5 * HOUR, runs=5)


@pytest.mark.parametrize(
    ("pod", "runs"),
    [
        (running(1.0), RUNS[: MIN_RUNS - 1]),
        (running(6.5), RUNS),  # only one run took longer
        (running(1.0, gpus=4), RUNS),
        (running(1.0, started_at=None), RUNS),
        (running(1.0, namespace="team-b"), RUNS),
        (running(1.0, owner=OwnerRef(kind="Job", name="weekly-1", uid="w")), RUNS),
        (running(1.0, owner=OwnerRef(kind="StatefulSet", name="nightly", uid="s")), RUNS),
        (running(1.0), [ended(number, 5.0, phase="Failed") for number in range(9)]),
        (running(1.0), [ended(number, 5.0, statuses=()) for number in range(9)]),
    ],
)
def test_no_estimate_without_such_runs(pod: PodFact, runs: list[PodFact]) -> None:
    assert estimate(pod, runs) is None


def test_runs_of_other_users_do_not_count() -> None:
    others = {f"uid-nightly-{number}": Identity(user="li") for number in range(9)}
    assert estimate(running(1.0), RUNS, **others) is None


def test_several_jobs_end_with_the_last_one() -> None:
    one, other = (Estimate(seconds=n, earliest=n / 2, latest=n * 2, runs=int(n)) for n in (10.0, 20.0))
    assert together([one, other]) == Estimate(seconds=20.0, earliest=10.0, latest=40.0, runs=10)
    assert together([one, None]) is None
    assert together([]) is None


def test_pods_of_a_job_belong_together() -> None:
    pods = [holding("a-0", "n1", 8), holding("a-1", "n2", 8), holding("b", "n1", 1)]
    facts = make_cluster_facts(pods=pods, identities={f"uid-a-{n}": Identity(job="a") for n in (0, 1)})
    found: dict[tuple[str, str], Job] = {job.key: job for job in jobs_of(pods, facts)}
    assert found.keys() == {("team-a", "a"), ("team-a", "b")}
    assert found["team-a", "a"].nodes == ("n1", "n2")
    assert found["team-a", "a"].amount("nvidia.com/gpu") == 16
