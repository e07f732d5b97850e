"""The figures of the past: samples for the charts, and GPU time for the report."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from monitor.history.model import CLUSTER, HistorySubject, Sample, disk_name
from monitor.report.buckets import (
    ALLOCATED,
    FIGURES,
    FREE,
    IDLE,
    MEASURED,
    UNKNOWN,
    USED,
    ZOMBIE,
    Bucket,
    Priced,
    Sums,
    hours,
    new_sums,
)
from monitor.sim.node import CONTAINER_RECEIVED_BYTES_PER_SECOND, GPU_MEMORY_USED_RATIO, SimContainer
from monitor.sim.past import DAY_SECONDS, HOUR_SECONDS, ClusterPast, PastJob, is_working_time
from monitor.sim.past_outages import FULL_RATIO, HOT_CELSIUS, RUNTIME_MOUNT, PastOutage
from monitor.sim.snapshot import (
    BUSY_CELSIUS,
    BUSY_WATTS,
    CPU_COUNT,
    IDLE_CELSIUS,
    IDLE_WATTS,
    MEMORY_BYTES,
    MODEL,
    SYSTEM_CPU_COUNT,
    SYSTEM_MEMORY_BYTES,
    SYSTEM_RECEIVED_BYTES_PER_SECOND,
    TRANSMITTED_RATIO,
)

WOBBLE_RATIO = 0.06  # of the utilization, from minute to minute
COARSE_WOBBLE_RATIO = 0.02  # the same in the mean of several minutes
SWING_RATIO, SWING_SECONDS = 0.05, 5 * HOUR_SECONDS  # of the utilization, as evaluation follows training
WAITING_GPUS = (0, 0, 0, 2, 4, 8)  # by working hour, at random
CLEANUP_DAYS = 3.5  # between two cleanups of images
PILE_RATIO = 0.05  # of the disk, per day
FILLING_SECONDS = 5 * HOUR_SECONDS  # that a disk took to fill up
SHARE_GROWTH_RATIO = 0.003  # per day
WAVE_RATIO, WAVE_DAYS = 0.01, 5.0
_CPU_CORES, _MEMORY_BYTES, _SHM_BYTES = (
    SimContainer.cpu_cores, SimContainer.memory_bytes, SimContainer.shm_used,
)  # fmt: skip

_PRICED: Priced = (MODEL, 1.0)

Loads = list[tuple[int, PastJob | None, float]]  # index, job and utilization of each GPU of a node


class PastFigures:
    """Samples at a time, like those that the daemon records."""

    def __init__(self, past: ClusterPast, outages: Sequence[PastOutage]) -> None:
        self._past = past
        self._outages = outages
        self._chance = random.Random(past.seed)  # noqa: S311  # no secret
        waiting = random.Random(past.seed)  # noqa: S311  # no secret
        self._waiting = [waiting.choice(WAITING_GPUS) for _ in range(24 * 8)]  # by hour before now
        self._queues = sorted({job.queue for each in past.gpus.values() for gpu in each for job in gpu.jobs})

    def samples(self, at: float, wobble: float = WOBBLE_RATIO) -> Iterator[Sample]:
        """The figures of everything that could be seen at a time."""
        down = {outage.labels["node"] for outage in self._at(at, "node-down")}
        loads = {node: self._loads(node, at, wobble) for node in self._past.nodes if node not in down}
        yield from self._totals(loads, at)
        for node, own in loads.items():
            yield self._node(node, own)
            yield from self._gpus(node, own, at)
            for mount, used in self._past.disks[node].items():
                yield HistorySubject.DISK, disk_name(node, mount), (self._disk(node, mount, used, at),)
        yield from _workloads(loads)

    def _at(self, at: float, rule: str) -> Iterator[PastOutage]:
        return (outage for outage in self._outages if outage.rule == rule and outage.covers(at, self._past.now))

    def _loads(self, node: str, at: float, wobble: float) -> Loads:
        jobs = [gpu.at(at) for gpu in self._past.gpus[node]]
        return [(index, job, self._load(job, at, wobble)) for index, job in enumerate(jobs)]

    def _load(self, job: PastJob | None, at: float, wobble: float) -> float:
        if job is None or job.idle:
            return 0.0
        swing = SWING_RATIO * math.sin((at - job.begin) / SWING_SECONDS)
        return min(1.0, max(0.0, job.busy + swing + self._chance.uniform(-wobble, wobble)))

    def _totals(self, loads: dict[str, Loads], at: float) -> Iterator[Sample]:
        everything = [each for own in loads.values() for each in own]
        users: defaultdict[str, list[float]] = defaultdict(list)
        queues: defaultdict[str, list[float]] = defaultdict(list)
        for _, job, load in everything:
            if job is not None:
                users[job.user].append(load)
                queues[job.queue].append(load)
        held, waiting = sum(map(len, users.values())), self._waiting_gpus(at)
        mean = sum(load for _, _, load in everything) / len(everything) if everything else None
        yield HistorySubject.CLUSTER, CLUSTER, (mean, held, len(everything) - held, sum(waiting.values()))
        for user, own in users.items():
            yield HistorySubject.USER, user, (sum(own) / len(own), len(own))
        for queue in self._queues:
            own = queues.get(queue, [])
            values = (sum(own) / len(own) if own else None, len(own), waiting.get(queue, 0))
            yield HistorySubject.QUEUE, queue, values

    def _waiting_gpus(self, at: float) -> dict[str, int]:
        """GPUs for which jobs wait, by queue: in working hours the jobs of one queue may wait."""
        number = int((self._past.now - at) // HOUR_SECONDS)
        if not is_working_time(at) or not 0 < number < len(self._waiting) or not self._queues:
            return {}
        return {self._queues[number % len(self._queues)]: self._waiting[number]}

    def _node(self, node: str, loads: Loads) -> Sample:
        jobs = len({id(job) for _, job, _ in loads if job is not None})
        free = sum(job is None for _, job, _ in loads)
        factor = self._chance.uniform(0.9, 1.1)
        received = SYSTEM_RECEIVED_BYTES_PER_SECOND + jobs * CONTAINER_RECEIVED_BYTES_PER_SECOND * factor
        cpu = (SYSTEM_CPU_COUNT + jobs * _CPU_CORES * factor) / CPU_COUNT
        memory = (SYSTEM_MEMORY_BYTES + jobs * _MEMORY_BYTES) / MEMORY_BYTES
        load = sum(load for _, _, load in loads) / len(loads) if loads else None
        shm, sent = float(jobs * _SHM_BYTES), received * TRANSMITTED_RATIO
        return HistorySubject.NODE, node, (load, free, cpu, memory, shm, received, sent)

    def _gpus(self, node: str, loads: Loads, at: float) -> Iterator[Sample]:
        hot = {outage.labels["gpu"] for outage in self._at(at, "gpu-hot") if outage.labels["node"] == node}
        for index, job, load in loads:
            celsius = IDLE_CELSIUS + (BUSY_CELSIUS - IDLE_CELSIUS) * load
            celsius = max(celsius, HOT_CELSIUS + load) if str(index) in hot else celsius
            watts = IDLE_WATTS + (BUSY_WATTS - IDLE_WATTS) * load
            memory = GPU_MEMORY_USED_RATIO if job is not None else 0.0
            yield HistorySubject.GPU, f"{node}/{index}", (load, memory, watts, celsius)

    def _disk(self, node: str, mount: str, used: float, at: float) -> float:
        """Use of a disk that ends at what it is now."""
        days = (self._past.now - at) / DAY_SECONDS
        if mount == RUNTIME_MOUNT:
            return self._runtime_disk(node, used, days, at)
        if mount.startswith("/mnt"):
            return used - SHARE_GROWTH_RATIO * days
        return used + WAVE_RATIO * math.sin(2 * math.pi * days / WAVE_DAYS)

    def _runtime_disk(self, node: str, used: float, days: float, at: float) -> float:
        """Images pile up until a cleanup; the nodes are not cleaned up on the same day."""
        cleaned = 0.2 + 0.3 * self._past.nodes.index(node) / len(self._past.nodes)  # days before now
        piled = (cleaned - days) % CLEANUP_DAYS
        ratio = max(0.01, used + PILE_RATIO * (piled - cleaned))
        for outage in self._outages:
            begin = self._past.now - outage.ago
            fills = outage.rule == "disk-full" and outage.labels["node"] == node
            if fills and begin - FILLING_SECONDS <= at < begin + outage.lasts:
                ratio += (FULL_RATIO - ratio) * min(1.0, (at - begin + FILLING_SECONDS) / FILLING_SECONDS)
        return ratio


def _workloads(loads: dict[str, Loads]) -> Iterator[Sample]:
    """Pods that still run, and their jobs: a job is a pod here."""
    by_pod: defaultdict[str, list[float]] = defaultdict(list)
    for own in loads.values():
        for _, job, load in own:
            if job is not None and job.pod is not None:
                by_pod[job.pod].append(load)
    for pod, own_loads in by_pod.items():
        values = (sum(own_loads) / len(own_loads), len(own_loads))
        yield HistorySubject.POD, pod, values
        yield HistorySubject.JOB, pod, values


def past_buckets(past: ClusterPast, outages: Sequence[PastOutage], since: float, until: float) -> Iterator[Bucket]:
    """GPU time of a period by hour, node, user and queue."""
    sums = new_sums()
    for hour, seconds in hours(since, until):
        begin = max(since, float(hour))
        for node, gpus in past.gpus.items():
            unseen = sum(
                _overlap(outage, past.now, begin, begin + seconds)
                for outage in outages
                if outage.rule == "node-down" and outage.labels["node"] == node
            )
            for index, gpu in enumerate(gpus):
                _charge(sums, hour, node, list(gpu.between(begin, begin + seconds)), seconds, unseen)
                _charge_zombies(sums, hour, (node, str(index)), past.now, outages, (begin, begin + seconds))
    for (hour, node, user, queue, (model, share)), figures in sums.items():
        values = dict(zip(FIGURES, figures, strict=True))
        yield Bucket(hour=hour, node=node, user=user, queue=queue, model=model, share=share, **values)


def _charge(sums: Sums, hour: int, node: str, jobs: list[tuple[PastJob, float]], seconds: float, unseen: float) -> None:
    """Charge the time of a GPU to its jobs; of an hour in which its node was silent, only the rest is known."""
    known = 1 - unseen / seconds
    for job, held in jobs:
        figures = sums[hour, node, job.user, job.queue, _PRICED]
        figures[ALLOCATED] += held * known
        figures[MEASURED] += held * known
        figures[USED] += held * known * (0.0 if job.idle else job.busy)
        figures[IDLE] += held * known if job.idle else 0.0
    sums[hour, node, None, None, _PRICED][FREE] += (seconds - sum(held for _, held in jobs)) * known
    sums[hour, node, None, None, _PRICED][UNKNOWN] += unseen


def _charge_zombies(
    sums: Sums,
    hour: int,
    gpu: tuple[str, str],
    now: float,
    outages: Sequence[PastOutage],
    period: tuple[float, float],
) -> None:
    """Move free time of a GPU to the user whose finished pod held it."""
    for outage in outages:
        if outage.rule == "gpu-zombie" and (outage.labels["node"], outage.labels["gpu"]) == gpu:
            free = sums[hour, gpu[0], None, None, _PRICED]
            seconds = min(_overlap(outage, now, *period), free[FREE])
            free[FREE] -= seconds
            sums[hour, gpu[0], outage.labels["user"], f"vc-{outage.labels['namespace']}", _PRICED][ZOMBIE] += seconds


def _overlap(outage: PastOutage, now: float, since: float, until: float) -> float:
    begin = now - outage.ago
    return max(0.0, min(until, begin + outage.lasts) - max(since, begin))
