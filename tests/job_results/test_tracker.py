"""Jobs are followed by what changes, also through restarts of the daemon and gaps of the watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from monitor.facts.changes import Changes
from monitor.facts.cluster import Identity, SourceView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import JobFact, OwnerFact, OwnerRef, PodFact
from monitor.facts.log_tails import LogTailFact
from monitor.job_results.endings import CONTROLLER_SETTLE_SECONDS, LOG_WAIT_SECONDS, QUICK_SETTLE_SECONDS, STUCK_SECONDS
from monitor.job_results.model import JobEnding, TrackedJob
from monitor.job_results.settings import LABEL, JobResultSettings
from monitor.job_results.tracker import MAX_LATE_SECONDS, MAX_PODS, JobTracker
from tests.explain.builders import NOW, agent, holding, node, running_container, waiting

ALL = JobResultSettings(receivers=("ops",), users=("*",))
JOB = OwnerRef(kind="Job", name="bert", uid="j1", api_version="batch/v1")
QUICK, LOG = QUICK_SETTLE_SECONDS, LOG_WAIT_SECONDS


def runs(name: str = "bert-0", **more: Any) -> PodFact:
    return holding(name, "n1", 1, **({"statuses": (running_container(),)} | more))


def ends(name: str = "bert-0", code: int = 0, at: float = NOW, **more: Any) -> PodFact:
    status = waiting(
        "Error" if code else "Completed", state="terminated", exit_code=code, started_at=NOW - 3600, finished_at=at,
        container_id="c" * 64,
    )  # fmt: skip
    return holding(name, "n1", 1, phase="Failed" if code else "Succeeded", **({"statuses": (status,)} | more))


class World:
    """A tracker with the facts that it follows."""

    def __init__(self, settings: JobResultSettings = ALL, since: float = NOW - 86400) -> None:
        self.settings = settings
        self.since = since
        self.pods: dict[str, PodFact] = {}
        self.jobs: dict[str, OwnerFact] = {}
        self.sources: tuple[SourceView, ...] = ()
        self.agents: tuple[Any, ...] = ()
        self.identity = Identity(user="zhang", job="bert", queue="nlp", workload_kind="Pod")
        self.tracker = JobTracker(settings, (), since)
        self._first = True

    def facts(self) -> ClusterFacts:
        facts = make_cluster_facts(
            pods=self.pods.values(), nodes=[node("n1")], agents=self.agents,
            identities=dict.fromkeys(self.pods, self.identity),
        )  # fmt: skip
        facts.sources = self.sources
        return facts

    def put(self, *pods: PodFact, now: float = NOW) -> tuple[JobEnding, ...]:
        self.pods |= {pod.uid: pod for pod in pods}
        return self.look(now, *(pod.uid for pod in pods))

    def delete(self, *pods: PodFact, now: float = NOW, seen: bool = True) -> tuple[JobEnding, ...]:
        gone = {pod.uid: self.pods.pop(pod.uid) for pod in pods}
        return self.look(now, *gone, gone=gone if seen else {})

    def look(self, now: float, *changed: str, gone: Mapping[str, PodFact] = {}) -> tuple[JobEnding, ...]:
        changes = Changes(pods=frozenset(changed), complete=self._first)
        self._first = False
        found = self.tracker.follow(self.facts(), changes, gone, self.jobs.get, now)
        return found.endings

    def restart(self, saved: list[bytes] | None = None) -> None:
        """Start again with what was saved."""
        bodies = self.saved() if saved is None else saved
        self.tracker = JobTracker(
            self.settings, (msgspec.json.decode(body, type=TrackedJob) for body in bodies), self.since
        )
        self._first = True

    def saved(self) -> list[bytes]:
        return [msgspec.json.encode(job) for job in self.tracker.jobs.values()]


def causes(endings: tuple[JobEnding, ...]) -> list[str]:
    return [ending.why.cause for ending in endings]


def test_a_job_is_reported_once_and_forgotten_with_its_pods() -> None:
    world = World()
    assert world.put(runs()) == ()
    assert world.put(ends()) == ()
    (ending,) = world.look(NOW + QUICK)
    assert (ending.why.cause, ending.user, ending.queue, ending.job) == ("done", "zhang", "nlp", "bert")
    assert ending.gpu_seconds == 3600.0
    assert world.look(NOW + 60) == ()
    assert world.delete(ends(), now=NOW + 90) == ()
    assert world.tracker.jobs == {}


def test_eight_pods_are_one_message() -> None:
    world = World()
    pods = [runs(f"bert-{rank}") for rank in range(8)]
    world.put(*pods)
    assert world.put(ends("bert-3", 1)) == ()
    for rank in (0, 1, 2, 4, 5, 6, 7):
        assert world.put(ends(f"bert-{rank}", 1, at=NOW + 5), now=NOW + 5) == ()
    (ending,) = world.look(NOW + 5 + LOG)
    assert (ending.pod, ending.count, ending.others) == ("bert-3", 8, 7)
    assert world.look(NOW + 3600) == ()


@pytest.mark.parametrize(
    ("last", "cause"),
    [(runs(), "deleted"), (runs(deletion_at=NOW + 30), "deleted"), (ends(code=1), "crash-error"), (ends(), "done")],
)
def test_a_pod_that_is_gone_before_its_end_was_seen(last: PodFact, cause: str) -> None:
    world = World()
    world.put(runs())
    world.pods[last.uid] = last
    endings = world.delete(last) or world.look(NOW + LOG)
    assert causes(endings) == [cause]
    assert world.tracker.jobs == {}


def test_a_restart_repeats_nothing() -> None:
    world = World()
    world.put(runs())
    world.put(ends())
    assert causes(world.look(NOW + QUICK)) == ["done"]
    world.restart()
    assert world.look(NOW + 60) + world.look(NOW + 600) == ()


def test_an_end_that_was_not_saved_is_found_again_with_its_id() -> None:
    world = World()
    world.put(runs())
    before = world.saved()
    world.put(ends())
    (ending,) = world.look(NOW + QUICK)
    world.restart(before)
    world.look(NOW + 60)
    (again,) = world.look(NOW + 60 + QUICK)
    assert again.id == ending.id


@pytest.mark.parametrize(
    ("after", "causes_found"),
    [("finished", ["crash-error"]), ("gone", ["unseen"]), ("going on", [])],
)
def test_a_job_that_ends_while_the_daemon_is_down(after: str, causes_found: list[str]) -> None:
    world = World()
    world.put(runs())
    world.restart()
    if after == "gone":
        world.pods.clear()
    elif after == "finished":
        world.pods["uid-bert-0"] = ends(code=1)
    assert causes(world.look(NOW + 600) + world.look(NOW + 600 + LOG)) == causes_found


def test_a_job_that_begins_and_ends_while_the_daemon_is_down_is_reported() -> None:
    world = World()
    world.look(NOW)
    world.restart()
    assert causes(world.put(ends(at=NOW + 60), now=NOW + 600) + world.look(NOW + 600 + QUICK)) == ["done"]


def test_what_ended_before_job_results_were_switched_on_is_not_reported() -> None:
    world = World(since=NOW + 1)
    assert world.put(ends()) + world.look(NOW + 600) == ()
    assert world.tracker.jobs == {}


def test_an_end_a_day_ago_is_no_news() -> None:
    world = World()
    world.put(runs())
    world.restart()
    late = NOW + MAX_LATE_SECONDS + 60
    assert world.put(ends(), now=late) + world.look(late + QUICK) == ()


def test_pods_that_cannot_be_seen_are_not_gone() -> None:
    world = World()
    world.put(runs())
    world.restart()
    world.sources = (SourceView(name="pods", ok=False, why="starting"),)
    kept, world.pods = world.pods, {}
    assert world.look(NOW + 5) + world.look(NOW + 600) == ()
    world.sources, world.pods = (), kept
    assert world.look(NOW + 700) == ()
    assert causes(world.put(ends(at=NOW + 800), now=NOW + 800) + world.look(NOW + 800 + QUICK)) == ["done"]


def test_a_retried_pod_of_a_job_is_not_the_end() -> None:
    world = World()
    world.identity = replace(world.identity, workload_kind="Job")
    world.jobs["j1"] = JobFact(uid="j1", name="bert", namespace="team-a")
    world.put(runs("bert-a", owner=JOB))
    assert world.put(ends("bert-a", 1, owner=JOB)) + world.look(NOW + 300) == ()
    retry = {"created_at": NOW + 301, "owner": JOB}
    assert world.put(runs("bert-b", **retry), now=NOW + 301) == ()
    world.put(ends("bert-b", 0, at=NOW + 400, **retry), now=NOW + 400)
    world.jobs["j1"] = JobFact(uid="j1", name="bert", namespace="team-a", completed=True)
    (ending,) = world.look(NOW + 410)
    assert (ending.why.cause, ending.count) == ("done", 1)


def test_a_job_whose_kind_of_controller_may_replace_pods_settles_first() -> None:
    world = World()
    world.identity = replace(world.identity, workload_kind="PyTorchJob")
    owner = OwnerRef(kind="PyTorchJob", name="bert", uid="p1")
    world.put(runs(owner=owner))
    world.delete(runs(owner=owner))
    again = runs(owner=owner, uid="uid-2", created_at=NOW + 20)
    assert world.put(again, now=NOW + 20) + world.look(NOW + 600) == ()
    world.put(ends(owner=owner, uid="uid-2", created_at=NOW + 20, at=NOW + 700), now=NOW + 700)
    assert causes(world.look(NOW + 700 + CONTROLLER_SETTLE_SECONDS)) == ["done"]


def test_a_job_of_the_same_name_is_reported_again() -> None:
    world = World()
    world.put(ends())
    (first,) = world.look(NOW + QUICK)
    world.put(runs(uid="uid-2", created_at=NOW + 60), now=NOW + 60)
    world.put(ends(uid="uid-2", created_at=NOW + 60, at=NOW + 90, code=1), now=NOW + 90)
    (second,) = world.look(NOW + 90 + LOG)
    assert (second.count, first.id == second.id) == (1, False)


def test_the_runs_of_a_cron_job_are_jobs_of_their_own() -> None:
    world = World()
    world.identity = replace(world.identity, workload_kind="CronJob")
    world.jobs |= {uid: JobFact(uid=uid, name=uid, namespace="team-a", completed=True) for uid in ("j1", "j2")}
    for number in (1, 2):
        owner = OwnerRef(kind="Job", name=f"bert-{number}", uid=f"j{number}", api_version="batch/v1")
        world.put(ends(f"bert-{number}", owner=owner))
    assert len(world.look(NOW + QUICK)) == 2


def test_a_job_that_does_not_start_is_reported_once_and_its_end_if_it_starts_after_all() -> None:
    world = World()
    pulls = holding("bert-0", "n1", 1, phase="Pending", statuses=(waiting("ImagePullBackOff", "manifest unknown"),))
    world.put(pulls)
    assert causes(world.look(NOW + STUCK_SECONDS)) == ["pull-not-found"]
    world.restart()
    assert world.look(NOW + 2 * STUCK_SECONDS) + world.look(NOW + 3600) == ()
    world.put(runs(), now=NOW + 3600)
    world.put(ends(at=NOW + 3700), now=NOW + 3700)
    assert causes(world.look(NOW + 3700 + QUICK)) == ["done"]


def test_the_log_of_a_failure_is_in_the_message_if_it_is_read_soon_after() -> None:
    world = World()
    world.put(ends(code=1))
    tail = LogTailFact(container_id="c" * 64, cause="cuda-oom", line="torch.OutOfMemoryError: CUDA out of memory.")
    world.agents = (agent("n1", log_tails=(tail,)),)
    (ending,) = world.look(NOW + LOG)
    assert ending.why.cause == "crash-gpu-memory"
    assert ending.why.evidence[0].values["message"] == tail.line


OPT_IN = [
    ("nothing", {}, Identity(user="li"), JobResultSettings(receivers=()), False),
    ("its user", {}, Identity(user="li"), JobResultSettings(receivers=(), users=("li",)), True),
    ("a pattern", {}, Identity(user="li-2"), JobResultSettings(receivers=(), users=("li*",)), True),
    ("another user", {}, Identity(user="wang"), JobResultSettings(receivers=(), users=("li",)), False),
    ("its queue", {}, Identity(queue="nlp"), JobResultSettings(receivers=(), queues=("nlp",)), True),
    ("its label", {LABEL: "true"}, Identity(), JobResultSettings(receivers=()), True),
    ("a label of ours", {"team/tell": "Yes"}, Identity(), JobResultSettings(receivers=(), label="team/tell"), True),
    ("its label says no", {LABEL: "false"}, Identity(user="li"), ALL, False),
    ("a service", {}, Identity(user="li", workload_kind="Deployment"), ALL, False),
    ("inference", {LABEL: "true"}, Identity(user="li", inference=True), ALL, False),
]


@pytest.mark.parametrize(
    ("labels", "identity", "settings", "wanted"), [case[1:] for case in OPT_IN], ids=[case[0] for case in OPT_IN]
)
def test_who_wants_to_know(
    labels: dict[str, str], identity: Identity, settings: JobResultSettings, wanted: bool
) -> None:
    world = World(settings)
    world.identity = identity
    world.put(runs(labels=labels))
    assert bool(world.tracker.jobs) == wanted


def test_a_job_with_very_many_pods_stays_bounded() -> None:
    world = World()
    world.put(runs("steady"))
    for number in range(MAX_PODS + 5):
        job = world.tracker.jobs["team-a/bert"]
        old = replace(next(iter(job.pods.values())), uid=f"old-{number}", end="removed", present=False)
        world.tracker._put("team-a/bert", old, NOW)
    (job,) = world.tracker.jobs.values()
    assert len(job.pods) == MAX_PODS
    assert "uid-steady" in job.pods
