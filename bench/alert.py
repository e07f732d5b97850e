"""From the kubelet's first failed image pull to the notification, compared with Prometheus and Alertmanager.

In the lab's cluster (a real API server, scheduler, kubelet, Docker engine and registry) the benchmark creates pods,
each with a different image that the registry does not have. A `gpuwarden daemon`, and Prometheus with Alertmanager
twice (Debian's packages: with their defaults of 15 s between scrapes, 15 s between evaluations and 30 s of group wait;
tuned to 1 s, 1 s and 0 s), follow the same cluster at the same time and notify the same local server of the same
failures.

The daemon has its default settings, except that each pod is a group of its own (`group_by: [alertname, pod]`), as it is
for both Alertmanagers: otherwise all failures would be one growing message. Both Prometheus scrape one
kube-state-metrics, built from the Go module proxy. It follows pods only, which favours Prometheus: with its defaults it
exports all objects. The rule is that the reason in `kube_pod_container_status_waiting_reason` is ErrImagePull or
ImagePullBackOff, with `for: 0s`.

A failure starts when the benchmark's own watch first shows it, in the pod's status or by an event, whichever is sooner,
by the monotonic clock: the kubelet's event timestamps have a resolution of one second. As a check, one line of the
table counts from that timestamp, which is up to a second more. A pod is created every 4 to 6 s and deleted when all
have notified: the kubelet, version 1.20, makes 5 requests a second and would report late under more load. The phase
between Prometheus' scrapes and evaluations is random and constant throughout a run: with its defaults, between 30 and
60 s pass. The 99th percentile of so few failures is the maximum.

Scaling beyond the lab: the daemon alone follows a simulated cluster of 100 and of 1,000 nodes over HTTP, as in `make
soak`, in which 50 pods change each second regardless of size, and a pull fails every 10 s.
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
from bench.kube_state_metrics import kube_state_metrics
from bench.plot import Bar, Plot
from bench.process import running
from bench.report import Goal, Report
from monitor.alert.store import FILE, AlertEventKind, AlertStore
from tests.lab.lab import Lab
from tests.support import free_port

FAILURES = 30
SPACING = (4.0, 6.0)  # seconds between pods
OURS = "gpuwarden"
NAMES = {
    OURS: "gpuwarden",
    TUNED.who: "Prometheus and Alertmanager, 1 s, 1 s, 0 s",
    DEFAULT.who: "Prometheus and Alertmanager, 15 s, 15 s, 30 s",
}
READY, LATEST = 60.0, 120.0  # seconds until all are ready, and from the last pod to the last message
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
    """One failure: seconds from its first sight to each notification, and gpuwarden's intermediate steps."""

    arrived: dict[str, float]
    status: float
    found: float
    decided: float
    since_stamp: float


def run() -> Report:
    """Create failing pods and report the latency of each notifier."""
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
    """Table row of latencies."""
    figures = (median(seconds), p99(seconds), max(seconds))
    return (name, str(len(seconds)), *(f"{figure:.2f}" for figure in figures))


def stages(courses: Sequence[Course]) -> list[tuple[str, ...]]:
    """Median and maximum duration of each stage."""
    ways: dict[str, Callable[[Course], float]] = {
        "until the daemon has looked and the alert fires": lambda each: each.found,
        "others of the group are waited for (0.5 s)": lambda each: each.decided - each.found,
        "written, sent and received": lambda each: each.arrived[OURS] - each.decided,
        "(until the pod's status, too, shows what the kubelet's event said)": lambda each: each.status,
    }
    took = {name: [way(course) for course in courses] for name, way in ways.items()}
    return [(name, f"{median(times):.2f}", f"{max(times):.2f}") for name, times in took.items()]


def p99(seconds: Sequence[float]) -> float:
    """99th percentile in seconds."""
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * 0.99))]


def measure(lab: Lab, folder: Path) -> list[Course]:
    """Let all three follow the lab, create failing pods, and return the course of each failure."""
    kubeconfig, prefix = str(lab.kubeconfig), f"pull-{secrets.token_hex(3)}"
    first, *names = (f"{prefix}-{number}" for number in range(FAILURES + 1))
    with ExitStack() as stack:
        pods = stack.enter_context(Pods(lab))
        server, watching = stack.enter_context(hook()), stack.enter_context(witness(kubeconfig))
        exporter = stack.enter_context(kube_state_metrics(kubeconfig, folder))
        peers = [
            stack.enter_context(prometheus(setup, exporter, server, folder / setup.who)) for setup in (DEFAULT, TUNED)
        ]
        stack.enter_context(daemon(kubeconfig, server, folder))
        wait_until(lambda: all(peer.is_ready() for peer in peers), READY, "Prometheus has scraped")
        pods.make(first)  # warms caches and proves that messages arrive
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
    """Run the daemon until the context exits."""
    config = folder / "gpuwarden.yml"
    config.write_text(
        CONFIG.format(port=free_port(), state=folder / "state", kubeconfig=kubeconfig, url=server.address(OURS))
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
    command = [str(Path(sys.executable).with_name("gpuwarden")), "daemon", "--config", str(config)]
    with running(command, environ, folder / "daemon.log"):
        yield


def untold(server: Hook, whos: Iterable[str], names: Iterable[str]) -> list[str]:
    """Missing notifications by notifier and pod."""
    return [f"{who} of {name}" for name in names for who in whos if server.arrived(who, name) is None]


def wait_told(server: Hook, whos: Iterable[str], names: Sequence[str], limit: float) -> None:
    """Wait until every notifier has reported every pod; RuntimeError names the missing ones."""
    try:
        wait_until(lambda: not untold(server, whos, names), limit, "the messages")
    except RuntimeError as error:
        raise RuntimeError(f"{error}: {', '.join(untold(server, whos, names))}") from None


def courses_of(arrivals: dict[str, dict[str, float]], watching: Witness, state: Path) -> list[Course]:
    """Courses relative to each failure, from message arrivals and the daemon's state."""
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
    """First firing and first message of each pod's alert."""
    store = AlertStore(str(state / FILE))
    events, deliveries = store.history(0.0), store.deliveries(100 * FAILURES, time.time())
    store.close()
    fired = {
        event.alert.finding.labels.get("pod", ""): event.at for event in events if event.what is AlertEventKind.FIRED
    }
    decided = {each.group.partition("|pod=")[2]: each.at for each in deliveries}
    return fired, decided  # both lists are newest first, so the oldest entry wins


def wait_until(is_so: Callable[[], bool], limit: float, what: str) -> None:
    """Wait until the condition holds; RuntimeError on timeout."""
    deadline = time.monotonic() + limit
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {limit:.0f} s: {what}")
        time.sleep(BEAT)
