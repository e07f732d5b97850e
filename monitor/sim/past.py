"""Which jobs ran on the simulated cluster during the last seven days, with habits of users and a rhythm of days.

Everything that the demo shows of the past follows from these jobs, so that its figures agree with each other. The
latest job of a GPU is the one that holds it now. The same seed makes the same past.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from monitor.history.model import SPAN_SECONDS
from monitor.sim.cluster import SimCluster, SimPod
from monitor.sim.node import SimNode

HOUR_SECONDS = 3600.0
DAY_SECONDS = 24 * HOUR_SECONDS
PAST_SECONDS = SPAN_SECONDS + HOUR_SECONDS  # the oldest hour of a chart is complete
WORKING_HOURS = range(9, 20)
DAY_GAP_SECONDS, NIGHT_GAP_SECONDS = 0.8 * HOUR_SECONDS, 5 * HOUR_SECONDS  # mean time for which a GPU is free
MIN_JOB_SECONDS = 900.0
IDLE_BELOW_RATIO = 0.05


@dataclass(frozen=True)
class Habit:
    """How a user works: how often by day and by night, for how long, and how much of a GPU is used."""

    user: str
    team: str
    by_day: float
    by_night: float
    mean_hours: float
    busy: tuple[float, float]


HABITS = (
    Habit("zhang", "nlp", 3, 3, 14.0, (0.85, 0.97)),  # long training, day and night
    Habit("li", "vision", 5, 1, 3.0, (0.55, 0.85)),
    Habit("wang", "speech", 3, 1, 6.0, (0.0, 0.6)),  # notebooks, some of them forgotten
    Habit("zhao", "nlp", 1, 5, 8.0, (0.75, 0.95)),  # batches at night
    Habit("chen", "vision", 4, 1, 2.0, (0.5, 0.8)),
    Habit("liu", "rl", 2, 2, 5.0, (0.3, 0.6)),
)


@dataclass(frozen=True)
class PastJob:
    """A job on some GPUs of a node. `end` is None for one that still runs."""

    user: str
    team: str
    node: str
    gpus: tuple[int, ...]
    begin: float
    end: float | None
    busy: float
    pod: str | None = None  # of one that still runs

    @property
    def queue(self) -> str:
        return f"vc-{self.team}"

    @property
    def idle(self) -> bool:
        return self.busy < IDLE_BELOW_RATIO


@dataclass(frozen=True)
class GpuPast:
    """The jobs of one GPU, oldest first."""

    jobs: tuple[PastJob, ...]

    @cached_property
    def _begins(self) -> list[float]:
        return [job.begin for job in self.jobs]

    def at(self, moment: float) -> PastJob | None:
        """The job that held the GPU at a time."""
        index = bisect_right(self._begins, moment) - 1
        if index < 0:
            return None
        job = self.jobs[index]
        return job if job.end is None or moment < job.end else None

    def between(self, since: float, until: float) -> Iterator[tuple[PastJob, float]]:
        """Jobs that overlap a period, each with the seconds of the overlap."""
        for job in self.jobs[max(0, bisect_right(self._begins, since) - 1) :]:
            if job.begin >= until:
                return
            seconds = min(until, job.end or until) - max(since, job.begin)
            if seconds > 0:
                yield job, seconds


@dataclass(frozen=True)
class ClusterPast:
    """Jobs by node and GPU until `now`, and the current use of disks by node and mount."""

    now: float
    seed: int
    gpus: dict[str, tuple[GpuPast, ...]]
    disks: dict[str, dict[str, float]]

    @property
    def nodes(self) -> Sequence[str]:
        return tuple(self.gpus)


def make_past(cluster: SimCluster, seed: int = 21) -> ClusterPast:
    """The past of a cluster that runs what it runs now."""
    now, chance = cluster.clock(), random.Random(seed)  # noqa: S311  # no secret
    gpus = {name: _of_node(node, _running(cluster, node), now, chance) for name, node in cluster.nodes.items()}
    disks = {name: {disk.mount: disk.used / disk.size for disk in node.disks} for name, node in cluster.nodes.items()}
    return ClusterPast(now, seed, gpus, disks)


def is_working_time(at: float) -> bool:
    """Whether most users are at work, by the clock of this machine."""
    local = time.localtime(at)
    return local.tm_hour in WORKING_HOURS and local.tm_wday < 5


def _running(cluster: SimCluster, node: SimNode) -> list[PastJob]:
    jobs = []
    for container in node.containers.values():
        pod: SimPod = cluster.pods[container.pod_uid]
        if container.gpus:
            jobs.append(
                PastJob(
                    pod.work.user, pod.work.queue.removeprefix("vc-"), node.name, container.gpus,
                    container.started_at, None, container.busy, f"{pod.work.namespace}/{pod.work.name}",
                )
            )  # fmt: skip
    return jobs


def _of_node(node: SimNode, running: Iterable[PastJob], now: float, chance: random.Random) -> tuple[GpuPast, ...]:
    """Jobs of the GPUs of a node: those that share a job now have shared their earlier ones, too."""
    jobs: dict[int, list[PastJob]] = {gpu.index: [] for gpu in node.gpus}
    latest = [(job.gpus, job.begin, [job]) for job in running]
    held = {gpu for job in running for gpu in job.gpus}
    free = [index for index in jobs if index not in held]
    latest += [(tuple(free[first : first + 2]), now, []) for first in range(0, len(free), 2)]
    for gpus, begin, own in latest:
        earlier = _earlier_jobs(node.name, gpus, begin, now - PAST_SECONDS, chance)
        for gpu in gpus:
            jobs[gpu] = [*reversed(list(earlier)), *own]
    return tuple(GpuPast(tuple(each)) for each in jobs.values())


def _earlier_jobs(node: str, gpus: tuple[int, ...], until: float, since: float, chance: random.Random) -> list[PastJob]:
    """Jobs before a time, the latest first."""
    found, end = [], until - _gap(until, chance)
    while end > since:
        habit = _someone(end, chance)
        begin = end - max(MIN_JOB_SECONDS, chance.expovariate(1 / (habit.mean_hours * HOUR_SECONDS)))
        found.append(PastJob(habit.user, habit.team, node, gpus, begin, end, _busy(habit, chance)))
        end = begin - _gap(begin, chance)
    return found


def _gap(at: float, chance: random.Random) -> float:
    return chance.expovariate(1 / (DAY_GAP_SECONDS if is_working_time(at) else NIGHT_GAP_SECONDS))


def _someone(at: float, chance: random.Random) -> Habit:
    day = is_working_time(at)
    weight: Callable[[Habit], float] = (lambda habit: habit.by_day) if day else (lambda habit: habit.by_night)
    return chance.choices(HABITS, [weight(habit) for habit in HABITS])[0]


def _busy(habit: Habit, chance: random.Random) -> float:
    """Utilization of a job; 0 for one that does nothing with its GPUs."""
    busy = chance.uniform(*habit.busy)
    return 0.0 if habit.busy[0] == 0.0 and busy < habit.busy[1] / 4 else busy
