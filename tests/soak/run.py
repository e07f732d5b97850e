"""Runs the soak test: starts cluster, receivers and daemon, observes them, and stops everything."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import requests

from bench import cluster_data
from bench.page import get
from tests.soak.processes import begin_changes, cluster_process, configure, daemon_process, wait_for_evaluation
from tests.soak.samples import Canary, Sample, Scrape, Visit, read_metrics, sample
from tests.support import free_port
from tests.support.receivers.bots import WeComBot
from tests.support.receivers.http_server import Asked, LocalServer

RATE = 50.0  # changing pods per second
SAMPLE_EVERY, SCRAPE_EVERY, VISIT_EVERY = 5.0, 15.0, 1.5
LAST_WORDS = 30.0  # seconds in which the last canaries may still be reported
ENDS_WITHIN = 30.0
ALERT = "ImagePull"


@dataclass(frozen=True)
class Plan:
    """Duration and size; `rate` is the number of changing pods per second."""

    minutes: float
    nodes: int
    rate: float = RATE

    @property
    def seconds(self) -> float:
        return self.minutes * 60


@dataclass
class Course:
    """Observations of a run. Times are seconds since the changes started."""

    plan: Plan
    samples: list[Sample] = field(default_factory=list)
    scrapes: list[Scrape] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    canaries: list[Canary] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)  # failed requests and errors in the log
    warnings: int = 0
    messages: int = 0  # accepted by the group bot
    exit_code: int | None = None
    ready_in: float = 0.0  # seconds from the start to the first evaluation
    ended_in: float = 0.0


class Hook(LocalServer):
    """Accepts messages about canaries and records when each was reported and resolved."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, float] = {}
        self.over: dict[str, float] = {}

    def answer(self, asked: Asked) -> tuple[int, Any]:
        now = time.monotonic()
        for alert in (each for each in asked.json["alerts"] if each["labels"]["alertname"] == ALERT):
            kept = self.told if alert["status"] == "firing" else self.over
            kept.setdefault(alert["labels"].get("pod", ""), now)
        self.asked.clear()
        return 200, b"ok"


def run(plan: Plan, folder: Path, say: Callable[[str], None] = lambda _: None) -> Course:
    """Run the daemon for this long against a cluster of this size and return the observations."""
    state, course = folder / "state", Course(plan)
    cluster_data.write(folder / "data", plan.nodes)
    with ExitStack() as stack:
        ports, cluster = stack.enter_context(cluster_process(folder / "data", plan.rate))
        hook, bot = stack.enter_context(Hook()), stack.enter_context(WeComBot())
        port = free_port()
        config = configure(folder, port, ports, f"{hook.base}/", bot.url)
        started = time.monotonic()
        daemon = stack.enter_context(daemon_process(config, folder / "daemon.log"))
        wait_for_evaluation(daemon, port)
        course.ready_in = time.monotonic() - started
        began = time.monotonic()
        fates = _begin(cluster)
        stopping = threading.Event()
        stack.callback(stopping.set)
        _spawn(_keep_visiting, course, port, began, stopping)
        _spawn(_keep_scraping, course, port, began, stopping)
        _watch(course, daemon, state, began, say)
        course.canaries = _wait_told(fates, hook, began, plan.seconds)
        stopping.set()
        course.messages = len(bot.taken)
        _stop(course, daemon)
    _read_log(course, folder / "daemon.log")
    return course


def _watch(
    course: Course, daemon: subprocess.Popen[bytes], state: Path, began: float, say: Callable[[str], None]
) -> None:
    """Sample the daemon every few seconds until the end, or until it exits."""
    number = 0
    while (due := began + number * SAMPLE_EVERY) <= began + course.plan.seconds and daemon.poll() is None:
        time.sleep(max(0.0, due - time.monotonic()))
        course.samples.append(last := sample(daemon.pid, state, began))
        number += 1
        if number % 12 == 0:
            scrape = course.scrapes[-1] if course.scrapes else None
            say(f"{last.at:5.0f} s  {last.rss:4.0f} MiB  {last.fds} descriptors  {last.threads} threads  {scrape}")


def _begin(cluster: subprocess.Popen[bytes]) -> dict[str, list[float]]:
    """Start the changes. The returned data is filled meanwhile: times of failure and removal of each canary."""
    assert cluster.stdout is not None
    lines, fates = cluster.stdout, dict[str, list[float]]()
    begin_changes(cluster)

    def listen() -> None:
        for line in lines:
            said = json.loads(line)
            fates.setdefault(said.get("failed") or said["ended"], []).append(said["at"])

    _spawn(listen)
    return fates


def _wait_told(fates: dict[str, list[float]], hook: Hook, began: float, seconds: float) -> list[Canary]:
    """Canaries that failed in time, once all are reported or overdue."""
    failed = {name: times[0] for name, times in list(fates.items()) if times[0] - began <= seconds}
    deadline = time.monotonic() + LAST_WORDS
    while failed.keys() - hook.told.keys() and time.monotonic() < deadline:
        time.sleep(0.1)
    return [
        Canary(
            at=at - began,
            name=name,
            told=hook.told[name] - at if name in hook.told else None,
            over=hook.over[name] - fates[name][1] if name in hook.over and len(fates[name]) > 1 else None,
        )
        for name, at in failed.items()
    ]


def _keep_scraping(course: Course, port: int, began: float, stopping: threading.Event) -> None:
    session, url = requests.Session(), f"http://127.0.0.1:{port}/metrics"
    while not stopping.wait(SCRAPE_EVERY):
        asked = time.monotonic()
        try:
            text = session.get(url, timeout=SCRAPE_EVERY).text
        except requests.RequestException as error:
            course.troubles += [] if stopping.is_set() else [f"a scrape failed: {type(error).__name__}"]
        else:
            now = time.monotonic()
            course.scrapes.append(read_metrics(text, now - began, now - asked))


def _keep_visiting(course: Course, port: int, began: float, stopping: threading.Event) -> None:
    """Keep a page open: load it once, then request updates as its script does."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    shown: dict[bytes, bytes] = {}
    while not stopping.wait(VISIT_EVERY):
        asked = time.monotonic()
        known = ",".join(f"{own.decode()}.{v.decode()}" for own, v in shown.items())
        try:
            _, page = get(connection, f"/?v={known}" if known else "/")
        except (OSError, HTTPException, RuntimeError) as error:
            connection.close()
            course.troubles += [] if stopping.is_set() else [f"the page failed: {type(error).__name__}"]
            continue
        shown |= dict(re.findall(rb'<section id="(\w+)" data-v="(\w+)"', page))
        course.visits.append(Visit(at=asked - began, took=time.monotonic() - asked))
    connection.close()


def _stop(course: Course, daemon: subprocess.Popen[bytes]) -> None:
    """Terminate the daemon and record how it ended."""
    began = time.monotonic()
    daemon.terminate()
    with suppress(subprocess.TimeoutExpired):
        course.exit_code = daemon.wait(ENDS_WITHIN)
    course.ended_in = time.monotonic() - began


def _read_log(course: Course, log: Path) -> None:
    for line in log.read_text(errors="replace").splitlines():
        if "level=warning" in line:
            course.warnings += 1
        elif "level=info" not in line:
            course.troubles.append(line[:500])


def _spawn(target: Callable[..., None], *args: object) -> None:
    threading.Thread(target=target, args=args, daemon=True).start()
