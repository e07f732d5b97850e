"""From the kubelet's first failure to pull a pod's image to the message about it, against Prometheus and Alertmanager.

In the lab's cluster (a real API server, scheduler, kubelet, Docker engine and registry) pods are made, each of which
wants an image of its own that the registry does not have. A `gpuwarden daemon`, and Prometheus with Alertmanager twice
(Debian's packages: with their defaults of 15 s between scrapes, 15 s between evaluations and 30 s of group wait; tuned
to 1 s, 1 s and 0 s), follow the same cluster at the same time and tell the same local server of the same failures.

The daemon has its default settings, except that each pod is a group of its own (`group_by: [alertname, pod]`), as it is
for both Alertmanagers: otherwise all these failures would be one message that grows. kube-state-metrics is not among
Debian's packages; an exporter of its series `kube_pod_container_status_waiting_reason` stands in, which follows the
pods as the daemon does, is up to date at every scrape and has nothing else to say. That flatters Prometheus. Its rule
is that the reason is ErrImagePull or ImagePullBackOff, with `for: 0s`.

A failure begins when a watch of the benchmark's own first shows it, in the pod's status or by an event, whichever is
sooner, by the monotonic clock: the time that the kubelet writes into its events has only whole seconds. As a check, one
line of the table counts from that, which is up to a second more. A pod comes every 4 to 6 s and goes when all have told
of it: the kubelet, which is of version 1.20, makes 5 requests a second, and with more to say would say it late. How
the scrapes of Prometheus lie to its evaluations is chance, and the same throughout a run: with its defaults, between 30
and 60 s pass. The 99th percentile of so few failures is the longest.

How that grows with a cluster the lab is too small for: the daemon alone follows a simulated one of 100 and of 1,000
nodes over HTTP, as in `make soak`, in which 50 pods change each second whatever its size, and a pull fails every 10 s.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.alert_hook import Hook, hook
from bench.alert_pods import Pods, Witness, some_lab, witness
from bench.alert_prometheus import DEFAULT, TUNED, prometheus
from bench.alert_scale import LARGE, SMALL, told
from bench.plot import Bar, Plot
from bench.process import running
from bench.report import Goal, Report
from monitor.alert.store import FILE, AlertEventKind, AlertStore
from tests.lab.lab import Lab
from tests.support import free_port

FAILURES = 30
SPACING = (4.0, 6.0)  # seconds from one pod to the next
OURS = "gpuwarden"
NAMES = {
    OURS: "gpuwarden",
    TUNED.who: "Prometheus and Alertmanager, 1 s, 1 s, 0 s",
    DEFAULT.who: "Prometheus and Alertmanager, 15 s, 15 s, 30 s",
}
READY, LATEST = 60.0, 120.0  # seconds until all work, and from the last pod to the last message
BEAT = 0.1
COLUMNS = ("", "failures", "p50 s", "p99 s", "longest s")
STAGES = ("", "p50 s", "longest s")
CONFIG = """\
daemon:
  listen: 127.0.0.1:{port}
  state: {state}
  kubernetes: {{enabled: yes, kubeconfig: {kubeconfig}}}
  alerts:
    receivers: [{{kind: webhook, url: "{url}"}}]
    group_by: [alertname, pod]
"""


@dataclass(frozen=True)
class Course:
    """One failure, in seconds since it was first seen: the message of each, and what gpuwarden did meanwhile."""

    arrived: dict[str, float]
    status: float
    found: float
    decided: float
    since_stamp: float


def run() -> Report:
    """Let pods fail, and return how soon each told it."""
    before = os.getloadavg()[0]
    with TemporaryDirectory() as name, some_lab() as lab:
        courses = measure(lab, Path(name))
    scaled = {nodes: told(nodes) for nodes in (SMALL, LARGE)}
    load = (before, os.getloadavg()[0])
    ours, tuned, default = ([course.arrived[who] for course in courses] for who in (OURS, TUNED.who, DEFAULT.who))
    goals = (
        Goal("alert_p50_s", median(ours), None, "from the first failed pull to the message, median"),
        Goal("alert_p99_s", p99(ours), 2.0, "the same, 99th percentile"),
        Goal(
            "alert_speedup_vs_prometheus_default",
            median(default) / median(ours),
            None,
            "median of Prometheus and Alertmanager with their defaults / ours",
            at_least=20,
        ),
        Goal(
            "alert_speedup_vs_prometheus_tuned",
            median(tuned) / median(ours),
            None,
            "median of both tuned to 1 s, 1 s and 0 s / ours",
        ),
        Goal(
            "alert_large_p50_s", median(scaled[LARGE]), None, f"the median with {LARGE:,} nodes and 50 changes a second"
        ),
        Goal(
            "alert_growth_10x", median(scaled[LARGE]) / median(scaled[SMALL]), 12, f"that / the same with {SMALL} nodes"
        ),
    )
    rows = [row(NAMES[who], [course.arrived[who] for course in courses]) for who in NAMES]
    rows.append(row("gpuwarden, since the second in the kubelet's event", [course.since_stamp for course in courses]))
    how = f"{(__doc__ or '').partition(chr(10) * 2)[2]}Load average: {load[0]:.1f} before, {load[1]:.1f} after."
    rows += [row(f"gpuwarden, {nodes:,} simulated nodes", seconds) for nodes, seconds in scaled.items()]
    tables = (
        ("Seconds from failure to message", COLUMNS, rows),
        ("Where the time of gpuwarden goes", STAGES, stages(courses)),
    )
    medians = [Bar(NAMES[who], median(course.arrived[who] for course in courses), ours=who == OURS) for who in NAMES]
    growth = [Bar(f"gpuwarden, {nodes:,} nodes", median(seconds)) for nodes, seconds in scaled.items()]
    groups = (("the lab", medians), ("a simulated cluster, 50 changes a second", growth))
    plot = Plot("From a failed pull to the message, median", "s", groups)
    return Report("alert", "From a failed pull to the message", how, goals, tables, plot)


def row(name: str, seconds: Sequence[float]) -> tuple[str, ...]:
    """Given how long each took, return the line in the table."""
    figures = (median(seconds), p99(seconds), max(seconds))
    return (name, str(len(seconds)), *(f"{figure:.2f}" for figure in figures))


def stages(courses: Sequence[Course]) -> list[tuple[str, ...]]:
    """Return how long each part of the way takes, and how long the longest took."""
    ways: dict[str, Callable[[Course], float]] = {
        "until the daemon has looked and the alert fires": lambda each: each.found,
        "others of the group are waited for (0.5 s)": lambda each: each.decided - each.found,
        "written, sent and received": lambda each: each.arrived[OURS] - each.decided,
        "(until the pod's status, too, shows what the kubelet's event said)": lambda each: each.status,
    }
    took = {name: [way(course) for course in courses] for name, way in ways.items()}
    return [(name, f"{median(times):.2f}", f"{max(times):.2f}") for name, times in took.items()]


def p99(seconds: Sequence[float]) -> float:
    """Return in how many seconds 99 of 100 have arrived."""
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * 0.99))]


def measure(lab: Lab, folder: Path) -> list[Course]:
    """Let all three follow the lab, let pods fail, and return the course of each failure."""
    kubeconfig, prefix = str(lab.kubeconfig), f"pull-{secrets.token_hex(3)}"
    first, *names = (f"{prefix}-{number}" for number in range(FAILURES + 1))
    with ExitStack() as stack:
        pods = stack.enter_context(Pods(lab))
        server, watching = stack.enter_context(hook(kubeconfig)), stack.enter_context(witness(kubeconfig))
        peers = [stack.enter_context(prometheus(setup, server, folder / setup.who)) for setup in (DEFAULT, TUNED)]
        stack.enter_context(daemon(kubeconfig, server, folder))
        wait_until(lambda: all(peer.is_ready() for peer in peers), READY, "Prometheus has scraped")
        pods.make(first)  # it meets caches that are cold, and proves that messages come
        wait_told(server, (OURS, TUNED.who), [first], READY)
        for name in names:
            time.sleep(random.uniform(*SPACING))
            pods.make(name)
            pods.delete([each for each in names if not untold(server, NAMES, [each])])
        wait_told(server, NAMES, names, LATEST)
        arrivals = {name: {who: server.arrived(who, name) or 0.0 for who in NAMES} for name in names}
    return courses_of(arrivals, watching, folder / "state")


@contextmanager
def daemon(kubeconfig: str, server: Hook, folder: Path) -> Iterator[None]:
    """Run the daemon for the length of a block."""
    config = folder / "gpuwarden.yml"
    config.write_text(
        CONFIG.format(port=free_port(), state=folder / "state", kubeconfig=kubeconfig, url=server.address(OURS))
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
    command = [str(Path(sys.executable).with_name("gpuwarden")), "daemon", "--config", str(config)]
    with running(command, environ, folder / "daemon.log"):
        yield


def untold(server: Hook, whos: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return who has not told of which pod."""
    return [f"{who} of {name}" for name in names for who in whos if server.arrived(who, name) is None]


def wait_told(server: Hook, whos: Iterable[str], names: Sequence[str], limit: float) -> None:
    """Return when each has told of every pod. Raise RuntimeError that says who did not of which."""
    try:
        wait_until(lambda: not untold(server, whos, names), limit, "the messages")
    except RuntimeError as error:
        raise RuntimeError(f"{error}: {', '.join(untold(server, whos, names))}") from None


def courses_of(arrivals: dict[str, dict[str, float]], watching: Witness, state: Path) -> list[Course]:
    """Given when messages arrived and the daemon's state, return the courses, counted from when each failed."""
    ahead = time.time() - time.monotonic()
    fired, decided = history(state)
    courses = []
    for name, arrived in arrivals.items():
        failure = watching.failure(name)
        if failure.at is None or failure.status is None or failure.stamp is None:
            raise RuntimeError(f"of {name} there was a message, but no status and event")
        began = failure.at
        courses.append(
            Course(
                arrived={who: at - began for who, at in arrived.items()},
                status=failure.status - began,
                found=fired[name] - ahead - began,
                decided=decided[name] - ahead - began,
                since_stamp=arrived[OURS] + ahead - failure.stamp,
            )
        )
    return courses


def history(state: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Return, by pod, when its alert first fired, and when the first message about it was written."""
    store = AlertStore(str(state / FILE))
    events, deliveries = store.history(0.0), store.deliveries(100 * FAILURES, time.time())
    store.close()
    fired = {
        event.alert.finding.labels.get("pod", ""): event.at for event in events if event.what is AlertEventKind.FIRED
    }
    decided = {each.group.partition("|pod=")[2]: each.at for each in deliveries}
    return fired, decided  # both are told the latest first, so that the first is what stays


def wait_until(is_so: Callable[[], bool], limit: float, what: str) -> None:
    """Return when it is so. Raise RuntimeError if that takes too long."""
    deadline = time.monotonic() + limit
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {limit:.0f} s: {what}")
        time.sleep(BEAT)
