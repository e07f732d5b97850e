"""The view of a large cluster: 10,000 pods and 1,000 nodes of 8 GPUs, and a tenth of that.

Pods (5.5 KB each) and nodes (8.4 KB) are recorded from a real API server, with per-object fields filled in; snapshots
(49 KB) are agents' data of 8 GPUs with a process on most, 20 containers and 40 images.

*Cold* is CPU time in a separate process that reads the pages of both lists: ours decodes them, determines the owner of
each pod and joins them with the agents' snapshots, without automatic garbage collection, as in the daemon; the
Kubernetes client only creates its typed models from the same bytes, which favours it. Both alternate five times, and
the median of each counts. A *cycle* is CPU time too: every agent has responded again and every node is joined again,
one part every half second as in the daemon.

*Following* is a `LiveCluster` with the daemon's own settings, fed over HTTP by another process with lists, watches and
a thousand agents on loopback addresses. At rest only agents respond (all of them every 10 s). Under load 200 pods
change each second (20 new, 20 deleted), and 20 jobs start. The latency of a change is from its write by the server
until the published view shows it. Both run at a raised priority where permitted, and the load is repeated, up to twice,
while other programs keep ours waiting for a core: the least disturbed run counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import cluster_data
from bench.plot import Bar, Plot
from bench.report import Goal, Report

FULL, TENTH = 1000, 100  # nodes
COLD_RUNS = 5
RATE = 200
LOAD_SECONDS = 20
REST_SECONDS = 15  # one cycle of the daemon
WARM_UP = 3.0
GOES = 3
CALM = 0.5  # seconds waiting for a core per second on one; a third on an otherwise idle machine
RAISED = -15
COLUMNS_COLD = ("", "pods", "nodes", "join", "together", "agents' answers", "a cycle")
COLUMNS_LIVE = (
    "nodes", "RSS MiB", "peak MiB", "CPU at rest", f"CPU at {RATE}/s", "sent", "seen", "p50 ms", "p90 ms", "p99 ms",
    "longest ms", "waited for a core", "goes",
)  # fmt: skip

Figures = dict[str, Any]


@dataclass(frozen=True)
class Following:
    """Cost of following a cluster, and latency of changes. CPU is a share of one core."""

    nodes: int
    rss_mib: float
    peak_mib: float
    rest: float
    load: float
    sent: int
    seen: list[float]
    waited: float
    goes: int

    def percentile(self, share: float) -> float:
        """Milliseconds that this share of the changes took at most."""
        return 1000 * self.seen[min(len(self.seen) - 1, int(len(self.seen) * share))]

    def row(self) -> tuple[str, ...]:
        times = (self.percentile(share) for share in (0.5, 0.9, 0.99, 1.0))
        return (
            str(self.nodes), f"{self.rss_mib:.0f}", f"{self.peak_mib:.0f}", f"{self.rest:.1%}", f"{self.load:.1%}",
            str(self.sent), str(len(self.seen)), *(f"{each:.0f}" for each in times), f"{self.waited:.1f} s",
            str(self.goes),
        )  # fmt: skip


def run() -> Report:
    """Measure everything and return the report."""
    with TemporaryDirectory() as name:
        full, tenth = Path(name) / "full", Path(name) / "tenth"
        cluster_data.write(full, FULL)
        cluster_data.write(tenth, TENTH)
        ours, typed, small = medians(("ours", full), ("typed", full), ("ours", tenth))
        following = [follow(tenth, TENTH), follow(full, FULL)]
    ours_decode, typed_decode = ours["pods"] + ours["nodes"], typed["pods"] + typed["nodes"]
    live = following[-1]
    goals = (
        Goal(
            "view_speedup", typed_decode / (ours_decode + ours["join"]), None,
            "cold: typed models of the Kubernetes client, decoding only / ours, decoding and join", at_least=20,
            known="the join, which the models do not do, takes as long as decoding",
        ),
        Goal("view_decode_speedup", typed_decode / ours_decode, None, "the same, decoding only / decoding only"),
        Goal("view_cycle_s", ours["cycle"], 1.0, "CPU seconds of a cycle in which every node is joined again"),
        Goal("view_rss_mib", live.rss_mib, 400, "memory of the process that follows it all"),
        Goal("event_to_view_p99_ms", live.percentile(0.99), 100, f"99th percentile, {RATE} pods change each second"),
        Goal(
            "view_growth_10x", ours["cycle"] / small["cycle"], 12, "a cycle with 1,000 nodes / with 100",
            known="not calls, which the next line counts; probably what the processor's caches no longer hold",
        ),
        Goal("view_calls_growth_10x", ours["calls"] / small["calls"], 10.5, "the same, function calls instead of time"),
    )  # fmt: skip
    rows = [
        cold_row("ours, 10,000 pods", ours),
        cold_row("typed models, 10,000 pods", typed),
        cold_row("ours, 1,000 pods", small),
    ]
    tables = (
        ("Cold, and a steady cycle: CPU seconds", COLUMNS_COLD, rows),
        ("Following: one process, CPU as a share of one core", COLUMNS_LIVE, [each.row() for each in following]),
    )
    how = (__doc__ or "").partition("\n\n")[2].strip()
    typed_bar = Bar("typed client models: decode only", _cold(typed), ours=False)
    plot = Plot(
        "From Kubernetes' answer to what can be looked at",
        "s of CPU",
        (
            ("1,000 pods", (Bar("gpuwarden: decode and join", _cold(small)),)),
            ("10,000 pods", (Bar("gpuwarden: decode and join", _cold(ours)), typed_bar)),
            ("a cycle of all nodes", (Bar("100 nodes", small["cycle"]), Bar("1,000 nodes", ours["cycle"]))),
        ),
    )
    return Report("view", "The view of 10,000 pods and 8,000 cards", how, goals, tables, plot)


def _cold(found: Figures) -> float:
    return float(found["pods"] + found["nodes"] + found.get("join", 0.0))


# Cold


def cold(who: str, directory: Path) -> Figures:
    """Run `bench.cold` in its own process and return its figures."""
    command = [sys.executable, "-m", "bench.cold", who, str(directory)]
    found: Figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def medians(*who: tuple[str, Path]) -> list[Figures]:
    """Medians over several processes, because each is cold only once. They alternate, as the machine's load varies."""
    rounds = [[cold(name, directory) for name, directory in who] for _ in range(COLD_RUNS)]
    return [
        {part: statistics.median(found[part] for found in runs) for part in runs[0]}
        for runs in zip(*rounds, strict=True)
    ]


def cold_row(name: str, found: Figures) -> tuple[str, ...]:
    together = found["pods"] + found["nodes"] + found.get("join", 0.0)
    shown = (found["pods"], found["nodes"], found.get("join"), together, found.get("answers"), found.get("cycle"))
    return (name, *("-" if figure is None else f"{figure:.3f}" for figure in shown))


# Following


def follow(directory: Path, nodes: int) -> Following:
    """Follow a cluster, first at rest, then under load."""
    with serving(directory) as ports, follower(ports, directory.with_suffix(".kubeconfig")) as process:
        ask(process)
        time.sleep(WARM_UP)
        began = ask(process)
        time.sleep(REST_SECONDS)
        rested = ask(process)
        goes: list[Figures] = []
        while len(goes) < GOES and not (goes and goes[-1]["calm"]):
            goes.append(under_load(process, ports["api"]))
    best = min(goes, key=lambda go: float(go["waited"]))
    return Following(
        nodes=nodes,
        rss_mib=max(go["rss_mib"] for go in goes),
        peak_mib=goes[-1]["peak_mib"],
        rest=(rested["cpu"] - began["cpu"]) / (rested["at"] - began["at"]),
        load=best["load"],
        sent=best["sent"],
        seen=best["seen"],
        waited=best["waited"],
        goes=len(goes),
    )


def under_load(process: subprocess.Popen[str], api: int) -> Figures:
    """Change pods for a while and return the figures; RuntimeError if a change was not seen."""
    before = ask(process)
    url = f"http://127.0.0.1:{api}/load?rate={RATE}&seconds={LOAD_SECONDS}"
    sent = json.load(urllib.request.urlopen(url, timeout=3 * LOAD_SECONDS))
    time.sleep(1)
    after = ask(process)
    if after["unseen"] or len(after["seen"]) != sent["shown"] or after["missing"]:
        raise RuntimeError(f"of {sent} changes {len(after['seen'])} were seen, with {after['missing']} missing")
    cpu, waited = after["cpu"] - before["cpu"], after["waited"] - before["waited"]
    return {
        "rss_mib": after["rss_mib"],
        "peak_mib": after["peak_mib"],
        "load": cpu / (after["at"] - before["at"]),
        "sent": sent["sent"],
        "seen": sorted(after["seen"]),
        "waited": waited,
        "calm": waited < CALM * cpu,
    }


def ask(process: subprocess.Popen[str]) -> Figures:
    """Figures of the following process; the first time, once it has settled."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    found: Figures = json.loads(process.stdout.readline())
    return found


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[dict[str, int]]:
    """Run the API server and the agents; yields their ports."""
    with child("bench.fake_cluster", str(directory)) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())


@contextlib.contextmanager
def follower(ports: dict[str, int], kubeconfig: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that follows the cluster until the context exits."""
    server = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{ports['api']}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    whole = {
        "apiVersion": "v1", "kind": "Config", "clusters": [server], "users": [{"name": "u", "user": {}}],
        "contexts": [context], "current-context": "c",
    }  # fmt: skip
    kubeconfig.write_text(json.dumps(whole))
    with child("bench.follow", str(kubeconfig), str(ports["agents"])) as process:
        yield process


@contextlib.contextmanager
def child(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a module, with raised priority if permitted, then stop it by pid."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, RAISED)
        Path(f"/proc/{process.pid}/autogroup").write_text(str(RAISED))  # counts across sessions
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
