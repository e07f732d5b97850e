"""Evaluates a soak test: observations in, figures with bounds out.

The first quarter, and at least 150 s, is warm-up: caches fill, every change happens once (the rarest, relisting all
pods, after two minutes), every pod is explained once, and creations and deletions balance. The rest is split into
thirds. Memory growth is the larger of two estimates: last against first third by median, and the slope over all samples
by the Theil-Sen estimator, which is robust against outliers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Protocol, TypeVar

from bench.report import Goal
from monitor.config.daemon import DaemonConfig
from monitor.daemon.evaluator import MIN_PAUSE_SECONDS
from tests.soak.life import CANARY_LIVES
from tests.soak.retention import Kept
from tests.soak.run import Course
from tests.soak.samples import Sample

WARM_UP_SHARE, WARM_UP_LEAST = 0.25, 150.0
MEMORY, LOOKS = 0.05, 1.3
SHORT, LOOKS_IF_SHORT = 1200.0, 2.0  # seconds: in less, a third has too few evaluations, and chance alone exceeds 1.3
DESCRIPTORS, THREADS = 10, 3  # open connections and requests
ALERT_P99 = 2.0  # seconds from a failed pull to its message in a small cluster: the bound of bench/alert.py
LATEST = 30.0  # seconds: no evaluation may delay a message further
OVER_WITHIN = 90.0  # seconds until a resolution is reported: 30 s keep time plus the evaluations before and after
DRAINED = 20  # messages that may wait at the quietest time: what the group bot accepts in a minute
SLOPES = 100  # points for slopes: their number grows with the square of this
PRUNED = 5.0  # seconds
FILES = 1.5  # state file size, last third to first third


class _Timed(Protocol):
    @property
    def at(self) -> float: ...


T = TypeVar("T", bound=_Timed)
Thirds = tuple[list[T], list[T], list[T]]


def warm_up(seconds: float) -> float:
    """Length of the warm-up of a soak of this length."""
    return max(WARM_UP_LEAST, WARM_UP_SHARE * seconds)


def thirds(seen: Sequence[T], seconds: float) -> Thirds[T]:
    """Observations after the warm-up, in three parts of equal length."""
    start = warm_up(seconds)
    step = (seconds - start) / 3
    parts: Thirds[T] = ([], [], [])
    for each in seen:
        if start <= each.at <= seconds:
            parts[min(2, int((each.at - start) / step))].append(each)
    return parts


def growth(points: Sequence[tuple[float, float]]) -> float:
    """Relative growth of values over time."""
    some = points[:: max(1, len(points) // SLOPES)]
    slope = median((y - x) / (later - at) for (at, x), (later, y) in combinations(some, 2) if later > at)
    size = len(points) // 3
    first, last = (median(value for _, value in part) for part in (points[:size], points[-size:]))
    return max(slope * (points[-1][0] - points[0][0]) / first, last / first - 1)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed; NaN without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(len(ordered) * share) - 1)] if ordered else math.nan


def crowding(samples: Sequence[Sample]) -> float:
    """Slowdown of the daemon by other programs that used the cores; 1 without contention."""
    cpu, waited = samples[-1].cpu - samples[0].cpu, samples[-1].waited - samples[0].waited
    return (cpu + waited) / cpu if cpu else 1.0


@dataclass(frozen=True)
class Looks:
    """Evaluation durations. `ratio` is last to first third by median, corrected for contention."""

    first: float
    last: float
    longest: float
    ratio: float


def looks(course: Course) -> Looks:
    """Durations of evaluations."""
    seconds = course.plan.seconds
    parts = thirds([each for each in course.scrapes if each.look is not None], seconds)
    first, last = (median(each.look or 0.0 for each in part) for part in (parts[0], parts[2]))
    crowded = [crowding(part) for part in thirds(course.samples, seconds)]
    excuse = max(1.0, crowded[2] / crowded[0])
    return Looks(first, last, max(each.look or 0.0 for part in parts for each in part), last / first / excuse)


def canary_bound(longest_look: float) -> float:
    """Seconds in which a canary must be reported.

    A failure right after the start of an evaluation waits for its end, for the pause before the next and for that one;
    then for the usual time of a message. The total is capped.
    """
    return min(LATEST, ALERT_P99 + MIN_PAUSE_SECONDS + 2 * longest_look)


def judge(course: Course, kept: Kept) -> tuple[Goal, ...]:
    """All figures of a soak test, with bounds where defined."""
    return (*_memory(course), *_flat(course), *_late(course), *_files(course, kept), *_costs(course))


def _judged(course: Course) -> list[Sample]:
    return [each for part in thirds(course.samples, course.plan.seconds) for each in part]


def _memory(course: Course) -> tuple[Goal, ...]:
    after = _judged(course)
    grown = growth([(each.at, each.rss) for each in after])
    return (
        Goal("soak_memory_growth", grown, MEMORY, "growth of memory (RSS) after the warm-up, as a share"),
        Goal("soak_anonymous_growth", growth([(each.at, each.anonymous) for each in after]), MEMORY,
             "the same without mapped files"),
        Goal("soak_rss_mib", median(each.rss for each in after), None, "memory, MiB, median"),
        Goal("soak_rss_longest_mib", max(each.rss for each in course.samples), None, "memory, MiB, maximum"),
    )  # fmt: skip


def _flat(course: Course) -> tuple[Goal, ...]:
    seconds = course.plan.seconds
    fds, threads = (_grown(course, seconds, pick) for pick in (lambda s: s.fds, lambda s: s.threads))
    found = looks(course)
    return (
        Goal("soak_fds_growth", fds, DESCRIPTORS, "descriptors: the last third's 90th percentile less the first's"),
        Goal("soak_threads_growth", threads, THREADS, "threads: the same"),
        Goal("soak_look_growth", found.ratio, LOOKS if seconds >= SHORT else LOOKS_IF_SHORT,
             "evaluation time: last to first third by median, corrected for other programs"),
        Goal("soak_look_s", found.last, None, "evaluation time, seconds, last third"),
    )  # fmt: skip


def _grown(course: Course, seconds: float, pick: Callable[[Sample], int]) -> float:
    parts = thirds(course.samples, seconds)
    first, last = (percentile([pick(each) for each in part], 0.9) for part in (parts[0], parts[2]))
    return last - first


def _late(course: Course) -> tuple[Goal, ...]:
    start = warm_up(course.plan.seconds)
    judged = [each for each in course.canaries if each.at >= start]
    told = [each.told for each in judged if each.told is not None]
    due = [each for each in judged if each.at < course.plan.seconds - CANARY_LIVES - OVER_WITHIN]
    ages = [each.view_age for part in thirds(course.scrapes, course.plan.seconds) for each in part if each.view_age]
    bound = canary_bound(looks(course).longest)
    return (
        Goal("soak_canaries", len(course.canaries), None, "pods with a failed pull, one every 10 s", 1),
        Goal("soak_canaries_untold", sum(each.told is None for each in course.canaries), 0, "of them never reported"),
        Goal("soak_canaries_not_over", sum(each.over is None for each in due), 0, "of them never reported as resolved"),
        Goal("soak_canary_p50_s", percentile(told, 0.5), None, "seconds from the failure to the message, median"),
        Goal("soak_canary_p99_s", percentile(told, 0.99), bound,
             "99th percentile; at most 2 s, a pause and two evaluations"),
        Goal("soak_view_age_p99_s", percentile(ages, 0.99), DaemonConfig().cycle, "age of the view, 99th percentile"),
        Goal("soak_troubles", len(course.troubles), 0, "errors in the log, failed scrapes and failed pages"),
        Goal("soak_exit_code", -1 if course.exit_code is None else course.exit_code, 0, "of the daemon", 0),
    )  # fmt: skip


def _files(course: Course, kept: Kept) -> tuple[Goal, ...]:
    parts = thirds(course.samples, course.plan.seconds)
    first, last = (median(sum(_plain(each)) for each in part) for part in (parts[0], parts[2]))
    waiting = [each.outbox for each in thirds(course.scrapes, course.plan.seconds)[2] if each.outbox is not None]
    return (
        Goal("soak_outbox_least", min(waiting, default=math.nan), DRAINED, "pending messages, minimum"),
        Goal("soak_state_files_growth", last / first, FILES, "files besides SQLite's: the last third's to the first's"),
        Goal("soak_alerts_rows_kept", kept.rows, kept.rows_limit, "rows of history, and of messages, after a month"),
        Goal("soak_alerts_refill", kept.refilled / kept.full, 1.1, "alerts.db after another month to after the first"),
        Goal("soak_alerts_full_mib", kept.full / 2**20, None, "alerts.db, MiB, filled with twice what it keeps"),
        Goal("soak_alerts_prune_s", kept.pruned_in, PRUNED, "seconds of pruning, which blocks writers"),
        Goal("soak_record_rows_left", kept.record_left, 0, "rows of record.db beyond their retention"),
        Goal("soak_record_mib_a_year", kept.record_year / 2**20, None, "record.db, MiB, after a year like this hour"),
    )


def _plain(sample: Sample) -> list[int]:
    return [size for name, size in sample.files.items() if name.endswith(".json")]


def _costs(course: Course) -> tuple[Goal, ...]:
    after = _judged(course)
    share = (after[-1].cpu - after[0].cpu) / (after[-1].at - after[0].at)
    start = warm_up(course.plan.seconds)
    pages = [each.took for each in course.visits if each.at >= start]
    scrapes = [each.took for each in course.scrapes if each.at >= start]
    return (
        Goal("soak_cpu_cores", share, None, "CPU, as a share of one core"),
        Goal("soak_crowding", crowding(after), None, "slowdown by other programs on the cores"),
        Goal("soak_page_p95_s", percentile(pages, 0.95), None, "an update of the page, seconds, 95th percentile"),
        Goal("soak_scrape_p95_s", percentile(scrapes, 0.95), None, "a scrape of /metrics, the same"),
        Goal("soak_messages", course.messages, None, "messages to the group bot, at most 20 a minute", 1),
        Goal("soak_warnings", course.warnings, None, "warnings in the log"),
    )
