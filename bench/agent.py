"""The agent compared with nvitop-exporter and node_exporter: one machine, one run, the same driver library.

8 GPUs with 18 NVLinks each, 8 and 64 processes on them, 40 running containers in a real Docker engine. The driver is
free for all; the benchmark measures what each exporter does with it. Ours also reads disks, shared memory, images,
containers and logs, which nvitop-exporter does not; node_exporter reads no GPUs. Each runs with its defaults:
nvitop-exporter reads every second, ours every 5 s plus the peak of the driver's samples in between.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from bench.go_peers import CACHE
from bench.plot import Bar, Plot
from bench.process import Cost, measure, running
from bench.report import Goal, Report
from tests.nvml import FakeNvml
from tests.support import free_port
from tests.support.engines import BASE, DockerEngine, images, make_docker

PEERS_LOCK = Path(__file__).parents[1] / "requirements" / "peers.txt"
NVLINKS = 18
T = TypeVar("T")
CONTAINERS = 40
COLUMNS = ("exporter", "series", "CPU ms per 15 s", "RSS MiB", "scrape p50 ms", "scrape p95 ms", "forks")


@dataclass(frozen=True)
class Stage:
    """Environment of the measurements: log directory, settings that name sockets, and control file of the driver."""

    directory: Path
    sockets: Mapping[str, str]
    nvml: FakeNvml

    def environment(self) -> dict[str, str]:
        return os.environ | self.nvml.environment()


def run() -> Report:
    """Measure everything and return the report."""
    nvitop = peer_environment() / "bin" / "nvitop-exporter"
    with TemporaryDirectory() as name, docker_with_containers(Path(name)) as engine:
        stage = Stage(Path(name), docker_only(engine.socket), FakeNvml(Path(name) / "nvml"))
        # The peer first: our agent reads containers younger than a minute more often, and these must be older.
        nvitop_8, ours_8 = with_cards(stage, 8, 8, exporter(nvitop)), with_cards(stage, 8, 8, agent)
        nvitop_64, ours_64 = with_cards(stage, 8, 64, exporter(nvitop)), with_cards(stage, 8, 64, agent)
        many = with_cards(stage, 80, 80, agent)
        node = node_exporter(stage)
    rows = [
        row("gpuwarden agent, 8 processes", ours_8),
        row("nvitop-exporter, 8 processes", nvitop_8),
        row("gpuwarden agent, 64 processes", ours_64),
        row("nvitop-exporter, 64 processes", nvitop_64),
        row("gpuwarden agent, 80 cards, 80 processes", many),
        row("node_exporter (no GPU)", node),
    ]
    goals = (
        Goal("agent_cpu_ratio_8", ours_8.cpu_ms / nvitop_8.cpu_ms, 0.2, "CPU, ours / nvitop-exporter's, 8 processes"),
        Goal("agent_cpu_ratio_64", ours_64.cpu_ms / nvitop_64.cpu_ms, 0.2, "the same with 64 processes"),
        Goal("agent_rss_ratio", ours_64.rss_mib / nvitop_64.rss_mib, 1.3, "memory, ours / nvitop-exporter's"),
        Goal("agent_p95_ratio", ours_64.p95_ms / nvitop_64.p95_ms, 1.0, "95th percentile of a scrape, ours / its"),
        Goal("agent_forks", ours_64.forks, 0, "processes started by the agent in 20 s"),
        Goal("agent_growth_10x", many.cpu_ms / ours_8.cpu_ms, 10.0, "CPU with 80 cards and processes / with 8"),
    )
    how = (__doc__ or "").partition("\n\n")[2].strip()
    pairs = (("8 processes", ours_8, nvitop_8), ("64 processes", ours_64, nvitop_64))
    plot = Plot(
        "What watching a node costs",
        "ms of CPU in 15 s",
        [
            *((what, _beside(ours, theirs)) for what, ours, theirs in pairs),
            ("no GPU", (Bar("node_exporter", node.cpu_ms, ours=False),)),
        ],
    )
    return Report("agent", "The agent's cost on a node", how, goals, (("What each costs", COLUMNS, rows),), plot)


def _beside(ours: Cost, theirs: Cost) -> tuple[Bar, Bar]:
    return Bar("gpuwarden agent", ours.cpu_ms), Bar("nvitop-exporter", theirs.cpu_ms, ours=False)


def row(name: str, cost: Cost) -> tuple[str, ...]:
    """Table row of a cost."""
    figures = (cost.cpu_ms, cost.rss_mib, cost.p50_ms, cost.p95_ms)
    return (name, str(cost.series), *(f"{figure:.1f}" for figure in figures), str(cost.forks))


def with_cards(stage: Stage, cards: int, processes: int, start: Callable[[Stage], T]) -> T:
    """Measure with this many GPUs and real processes on them."""
    stage.nvml.gpus(cards)
    sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(processes)]
    try:
        for index in range(cards):
            stage.nvml.gpu(index, links=NVLINKS, util=50, memory_used=1 << 33)
        for number, sleeper in enumerate(sleepers):
            stage.nvml.process(number % cards, sleeper.pid)
        return start(stage)
    finally:
        for number, sleeper in enumerate(sleepers):
            stage.nvml.end_process(number % cards, sleeper.pid)
            sleeper.kill()
            sleeper.wait()


def docker_only(socket: str) -> dict[str, str]:
    """Settings of an agent that reads one Docker engine and nothing else of the machine's sockets."""
    return {
        "GPUWARDEN_AGENT__PATHS__DOCKER_SOCKET": socket,
        "GPUWARDEN_AGENT__PATHS__CRI_SOCKETS": "[]",
        "GPUWARDEN_AGENT__PATHS__KUBELET": "/nonexistent",
    }


def agent(stage: Stage) -> Cost:
    """Measure our agent as started on a node, with its default intervals."""
    port = free_port()
    settings = {
        "GPUWARDEN_AGENT__LISTEN": f"127.0.0.1:{port}",
        "GPUWARDEN_AGENT__PATHS__STATE": str(stage.directory / "state"),
        **stage.sockets,
    }
    command = [str(Path(sys.executable).with_name("gpuwarden")), "agent"]
    with running(command, stage.environment() | settings, stage.directory / "agent.log") as process:
        return measure(process, f"http://127.0.0.1:{port}/metrics")


def exporter(program: Path) -> Callable[[Stage], Cost]:
    """Measurement of nvitop-exporter with its defaults."""

    def start(stage: Stage) -> Cost:
        port = free_port()
        command = [str(program), "--bind-address", "127.0.0.1", "--port", str(port)]
        with running(command, stage.environment(), stage.directory / "nvitop.log") as process:
            return measure(process, f"http://127.0.0.1:{port}/metrics")

    return start


def node_exporter(stage: Stage) -> Cost:
    """Measure node_exporter with its default collectors."""
    program = shutil.which("prometheus-node-exporter")
    if program is None:
        raise RuntimeError("prometheus-node-exporter is needed (Debian package of that name)")
    port = free_port()
    command = [program, f"--web.listen-address=127.0.0.1:{port}"]
    with running(command, dict(os.environ), stage.directory / "node.log") as process:
        return measure(process, f"http://127.0.0.1:{port}/metrics")


def peer_environment() -> Path:
    """A cached virtual environment with nvitop-exporter, which must not be in ours."""
    directory = CACHE / "nvitop"
    if not (directory / "bin" / "nvitop-exporter").exists():
        subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
        pip = [str(directory / "bin" / "python"), "-m", "pip", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--require-hashes", "-r", str(PEERS_LOCK)], check=True)
    return directory


@contextlib.contextmanager
def docker_with_containers(directory: Path) -> Iterator[DockerEngine]:
    """Run a Docker engine with containers until the context exits."""
    base = directory / "docker"
    base.mkdir()
    engine = make_docker(base)
    try:
        engine.start()
        engine.client.images.load(images())
        for _ in range(CONTAINERS):
            engine.run(BASE, "/bin/sleep", "3600")
        yield engine
        engine.remove_containers()
    finally:
        engine.stop()
        engine.clean_up()
