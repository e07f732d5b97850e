"""Writes the results of a soak test: bench/SOAK.md, bench/soak.json and bench/plots/soak.svg."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.report import HERE, Goal, Report, section
from monitor import __version__
from tests.soak import plot, verdict
from tests.soak.plot import Panel
from tests.soak.run import RATE, Course

HOW = """\
`gpuwarden daemon` {version} with its default settings (plus a state directory, a page, a WeCom group bot limited to 20
messages a minute, a webhook for canaries, and each pod as a group of its own) follows a cluster over HTTP on loopback:
{nodes:,} nodes of 8 GPUs, whose agents respond every 10 s with changed figures, and {pods:,} pods. For {minutes:g}
minutes {rate:g} pods change each second: about six of them are new and as many end; one new pod in twenty has a failing
pull for a while, one in fifty crashes. Every 3 s a node becomes unhealthy (a full disk, a lost mount) and recovers
within a minute; every 10 s a pod ends and leaves its processes behind; every 5 s an agent restarts, and every 20 s one
is silent for two to three minutes; every 15 s a watch is broken off; every two minutes the server drops its history, so
that resuming watches must list again. An open page requests updates every 1.5 s, and /metrics is scraped every 15 s.
Both processes run at a raised priority where permitted.

A *canary* is a pod with a failing pull, one every 10 s; its latency is from the server's write of the failure until the
webhook has the message. {judging}

The state files are too young to be full: they are fast-forwarded after the end (`tests/soak/retention.py`).
"""
TABLE = (
    "",
    "memory MiB",
    "descriptors",
    "threads",
    "CPU cores",
    "crowding",
    "evaluation s",
    "canary p50 s",
    "page p95 s",
)
PLOT = "plots/soak.svg"


def write(course: Course, goals: Sequence[Goal], directory: Path = HERE) -> None:
    """Write all three files."""
    (directory / "plots").mkdir(exist_ok=True)
    (directory / PLOT).write_text(draw(course))
    figures = {goal.key: goal.value for goal in goals}
    (directory / "soak.json").write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    head = "# Soak\n\nWritten by `make soak`; do not edit.\n\n"
    (directory / "SOAK.md").write_text(f"{head}{section(report(course, goals))}\n![over time]({PLOT})\n")


def report(course: Course, goals: Sequence[Goal]) -> Report:
    """Markdown report of a soak test."""
    judging = " ".join((verdict.__doc__ or "").partition("\n\n")[2].split())
    plan = course.plan
    how = HOW.format(
        version=__version__, nodes=plan.nodes, pods=10 * plan.nodes, minutes=plan.minutes, rate=RATE, judging=judging
    )
    return Report("soak", f"{plan.minutes:g} minutes", how, goals, [("Over time", TABLE, rows(course))])


def rows(course: Course) -> list[tuple[str, ...]]:
    """Table with one column per third after the warm-up."""
    seconds = course.plan.seconds
    parts = zip(
        ("first third", "second third", "last third"),
        verdict.thirds(course.samples, seconds),
        verdict.thirds(course.scrapes, seconds),
        verdict.thirds(course.canaries, seconds),
        verdict.thirds(course.visits, seconds),
        strict=True,
    )
    made: list[tuple[str, ...]] = []
    for name, samples, scrapes, canaries, visits in parts:
        cpu = (samples[-1].cpu - samples[0].cpu) / (samples[-1].at - samples[0].at)
        made.append((
            name,
            f"{_p50(each.rss for each in samples):.0f}",
            f"{_p50(each.fds for each in samples):.0f}",
            f"{_p50(each.threads for each in samples):.0f}",
            f"{cpu:.2f}",
            f"{verdict.crowding(samples):.1f}",
            f"{_p50(each.look for each in scrapes if each.look is not None):.2f}",
            f"{_p50(each.told for each in canaries if each.told is not None):.1f}",
            f"{verdict.percentile([each.took for each in visits], 0.95):.2f}",
        ))  # fmt: skip
    return made


def draw(course: Course) -> str:
    """SVG plot."""
    samples = [(each.at / 60, each) for each in course.samples]
    panels = (
        Panel("Memory, MiB", [("RSS", [(at, each.rss) for at, each in samples])]),
        Panel(
            "Descriptors and threads",
            [
                ("descriptors", [(at, float(each.fds)) for at, each in samples]),
                ("threads", [(at, float(each.threads)) for at, each in samples]),
            ],
        ),
        Panel("A look, seconds", [("", [(each.at / 60, each.look) for each in course.scrapes if each.look])]),
        Panel(
            "From a failed pull to the message, seconds",
            [("", [(each.at / 60, each.told) for each in course.canaries if each.told is not None])],
            dots=True,
        ),
    )
    return plot.svg(panels, course.plan.minutes, verdict.warm_up(course.plan.seconds) / 60)


def _p50(values: Iterable[float]) -> float:
    return verdict.percentile(list(values), 0.5)
