"""A daemon in clusters of 1,000 and 5,000 nodes, with the constant changes of the soak test.

Agents report new GPU figures at every poll, pods come, change and go, a page is open, and Prometheus scrapes. Canaries
are pods whose image cannot be pulled: the time until a webhook receives the alert is measured.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.report import Goal, Report
from tests.soak.run import Course, Plan
from tests.soak.run import run as soak
from tests.soak.verdict import percentile

WARM_UP_SECONDS = 60.0
PLANS = (Plan(5.0, 1000, 50.0), Plan(15.0, 5000, 100.0))
LIMITS = {  # cores, MiB, seconds until an alert, of a scrape and of a page update
    1000: (0.3, 320.0, 1.5, 0.3, 0.2),
    5000: (0.9, 1200.0, 2.0, None, 0.5),
}
COLD_SECONDS = 30.0


def run() -> Report:
    """Measure both sizes."""
    goals: list[Goal] = []
    for plan in PLANS:
        with TemporaryDirectory() as folder:
            goals += judge(soak(plan, Path(folder)))
    return Report("scale", "1,000 and 5,000 nodes", __doc__ or "", goals)


def judge(course: Course) -> list[Goal]:
    """Figures of one size, after the first minute."""
    nodes, rate = course.plan.nodes, course.plan.rate
    cores, rss, alert, scrape, page = LIMITS[nodes]
    samples = [each for each in course.samples if each.at >= WARM_UP_SECONDS]
    used = (samples[-1].cpu - samples[0].cpu) / (samples[-1].at - samples[0].at)
    told = [each.told for each in course.canaries if each.told is not None and each.at >= WARM_UP_SECONDS]
    scrapes = [each.took for each in course.scrapes if each.at >= WARM_UP_SECONDS]
    visits = [each.took for each in course.visits if each.at >= WARM_UP_SECONDS]
    name, where = f"scale_{nodes}", f"{nodes:,} nodes, {10 * nodes:,} pods, {rate:.0f} changes/s"
    goals = [
        Goal(f"{name}_cpu_cores", used, cores, f"cores that the daemon uses; {where}"),
        Goal(f"{name}_rss_mib", max(each.rss for each in samples), rss, "its memory, MiB, maximum"),
        Goal(f"{name}_alert_p50_s", percentile(told, 0.5), None, "seconds from a failed pull to the alert, median"),
        Goal(f"{name}_alert_p99_s", percentile(told, 0.99), alert, "99th percentile"),
        Goal(f"{name}_scrape_p95_s", percentile(scrapes, 0.95), scrape, "seconds of a scrape, 95th percentile"),
        Goal(f"{name}_page_p95_s", percentile(visits, 0.95), page, "seconds of a page update, 95th percentile"),
        Goal(f"{name}_lost", sum(each.told is None for each in course.canaries), 0, "alerts that never came"),
        Goal(f"{name}_errors", len(course.troubles), 0, "errors in the log, failed scrapes and failed pages"),
        Goal(f"{name}_look_s", median(each.look or 0.0 for each in course.scrapes), None, "seconds of an evaluation"),
    ]
    if nodes == PLANS[-1].nodes:
        goals.append(Goal(f"cold_{nodes}_s", course.ready_in, COLD_SECONDS, "seconds from start to first evaluation"))
    return goals
