"""Profile of the three hot paths: `python -m bench.profile` writes bench/PROFILE.md.

*Agent*: one minute of an agent on a node of 8 GPUs with 64 processes and 40 containers in a real Docker engine: every
collector at its interval, four scrapes and six snapshots for the daemon. *View*: lists and snapshots of 1,000 nodes are
decoded and joined, then every node is joined again five times, as over five cycles. *Look*: seven evaluations of all
rules on the same cluster, including the alerts of their findings. Each runs in its own process on one thread. The
profiler inflates the cost of calls: the shares count, not the seconds.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import cluster_data
from bench.report import machine, table

HERE = Path(__file__).parent
ROOT = HERE.parent
MINUTE, SCRAPE_EVERY, SNAPSHOT_EVERY = 60, 15, 10
PROCESSES = 64
NODES = 1000
SHOWN = 15
HEAD = """# Profiles

Written by `python -m bench.profile`; do not edit. What was done about them: docs/performance.md.
"""
Work = Callable[[], None]


def agent(_data: Path) -> Work:
    """One minute of the agent, after a first one in which everything is new."""
    import msgspec

    from monitor.agent.build import build_runner
    from monitor.agent.guard import HungCallGuard
    from monitor.agent.metrics import AgentMetrics
    from monitor.config.file import load
    from monitor.facts import NodeSnapshot

    # The profiler follows one thread: calls that the agent runs on separate threads in case they hang are called
    # directly.
    HungCallGuard.call = lambda *given: given[2]()  # type: ignore[method-assign]  # see above
    settings, exposition, encode = (
        load(None, os.environ).agent_settings(),
        AgentMetrics(),
        msgspec.json.Encoder().encode,
    )
    runner = build_runner(settings)

    def minute() -> None:
        for second in range(MINUTE):
            for worker in runner.workers.values():
                if second % max(1, round(settings.collectors[worker.name].interval)) == 0:
                    worker.run_once()
            if second % SCRAPE_EVERY == 0 or second % SNAPSHOT_EVERY == 0:
                parts: dict[str, Any] = runner.parts()
                snapshot = NodeSnapshot(node="n", at=time.time(), agent_version="0", collectors=runner.facts(), **parts)
                if second % SCRAPE_EVERY == 0:
                    exposition.render(snapshot)
                if second % SNAPSHOT_EVERY == 0:
                    encode(snapshot)

    minute()
    return minute


def view(data: Path) -> Work:
    """Builds the view and maintains it for five cycles."""
    from bench.cold import ours

    def work() -> None:
        ours(data)

    return work


def look(data: Path) -> Work:
    """Seven evaluations, five seconds apart, and the alerts of their findings."""
    from bench.detect import BEAT, LOOKS, NOW, read, worlds
    from monitor.alert.lifecycle import GROUP_BY, AlertTiming, AlertTimings, advance
    from monitor.alert.model import AlertState
    from monitor.alert.notify import decide
    from monitor.alert.routes import NotifyPolicy, Route
    from monitor.detect.base import RuleContext
    from monitor.detect.engine import detect
    from monitor.detect.history import DetectionHistory
    from monitor.detect.rules import RULES

    world_at = worlds(read(data))
    situations = [RuleContext(world_at(NOW + number * BEAT)[0], NOW + number * BEAT) for number in range(LOOKS)]
    policy, timings = NotifyPolicy((Route(receivers=("group",)),)), AlertTimings(AlertTiming())

    def work() -> None:
        history, book = DetectionHistory(), AlertState()
        for situation in situations:
            found = detect(RULES, {}, situation, history)
            history = found.history
            alerts = advance(book.alerts, found.findings, timings, GROUP_BY, situation.now)
            decision = decide(AlertState(alerts, book.notification_log), policy, situation.now)
            book = AlertState(alerts, {key: told for key, told in decision.log_changes.items() if told is not None})

    return work


PATHS: dict[str, Callable[[Path], Work]] = {"agent": agent, "view": view, "look": look}


def profiled(name: str, data: Path, target: Path) -> None:
    """Run one path under the profiler and keep the result."""
    work = PATHS[name](data)
    profiler = cProfile.Profile()
    profiler.runcall(work)
    profiler.dump_stats(target)


def rows(stats: dict[Any, Any]) -> tuple[float, list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Total seconds, and the most expensive functions and modules by own time."""
    total = sum(own for _, _, own, _, _ in stats.values())
    modules: defaultdict[str, float] = defaultdict(float)
    for place, own in _own(stats):
        modules[place] += own
    functions = sorted(stats.items(), key=lambda item: -item[1][2])[:SHOWN]
    dearest: list[tuple[str, ...]] = [
        (f"`{_name(place)}`", f"{calls:,}", f"{own:.2f}", f"{own / total:.0%}", f"{cumulative / total:.0%}")
        for place, (_, calls, own, cumulative, _) in functions
    ]
    by_module = sorted(modules.items(), key=lambda item: -item[1])[:SHOWN]
    return total, dearest, [(f"`{module}`", f"{own:.2f}", f"{own / total:.0%}") for module, own in by_module]


def _own(stats: dict[Any, Any]) -> Iterator[tuple[str, float]]:
    """Own time of each function by module; time in C is attributed to the caller."""
    for place, (_, _, own, _, callers) in stats.items():
        if place[0] != "~":
            yield _module(place[0]), own
            continue
        for caller, (_, _, share, _) in callers.items():
            yield _module(caller[0]), share


def _module(file: str) -> str:
    path = Path(file)
    if path.is_relative_to(ROOT / ".venv") or "site-packages" in path.parts:
        return path.parts[path.parts.index("site-packages") + 1]
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else "Python's own"


def _name(place: tuple[str, int, str]) -> str:
    file, _, function = place
    return function.strip("<>") if file == "~" else f"{Path(file).name}: {function}"


def section(name: str, stats: dict[Any, Any]) -> str:
    """Markdown section of one path."""
    total, functions, modules = rows(stats)
    lines = [f"## {name.capitalize()}", "", f"{total:.1f} s under the profiler.", ""]
    lines += table(("function", "calls", "own s", "own", "with all it calls"), functions)
    lines += table(("module, with what C does for it", "own s", "own"), modules)
    return "\n".join(lines)


def run() -> None:
    """Profile all paths, each in its own process, and write the results."""
    from bench.agent import Stage, docker_only, docker_with_containers, with_cards
    from tests.nvml import FakeNvml

    with TemporaryDirectory() as folder, docker_with_containers(Path(folder)) as engine:
        data = Path(folder) / "data"
        cluster_data.write(data, NODES)
        stage = Stage(Path(folder), docker_only(engine.socket), FakeNvml(Path(folder) / "nvml"))
        state = {"GPUWARDEN_AGENT__PATHS__STATE": str(Path(folder) / "state")}
        here = {**stage.environment(), **stage.sockets, **state}

        def found(name: str, environment: dict[str, str]) -> str:
            target = Path(folder) / f"{name}.stats"
            command = [sys.executable, "-m", "bench.profile", name, str(data), str(target)]
            subprocess.run(command, check=True, env=environment)
            return section(name, pstats.Stats(str(target)).stats)  # type: ignore[attr-defined]  # the library's types leave it out

        parts = [with_cards(stage, 8, PROCESSES, lambda _: found("agent", here))]
        parts += [found(name, dict(os.environ)) for name in ("view", "look")]
    how = (__doc__ or "").partition("\n\n")[2].strip()
    (HERE / "PROFILE.md").write_text("\n".join([HEAD, machine(), "", how, "", *parts]), encoding="utf-8")
    print("\n".join(parts))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        profiled(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        run()
