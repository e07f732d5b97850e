"""The agent on a node of a cluster compared with nvitop-exporter and gpud: both sockets of such a node are in use.

8 GPUs with 18 NVLinks each and 64 processes on them; 40 pods with a container each in a real containerd, read by CRI;
a server of the kubelet's PodResources API that lists those pods, 8 of them with a GPU. There is no Docker engine. The
rest is as in the benchmark of the agent, and all run in the same minutes.

gpud is built from the Go module proxy and runs with its defaults: most of its checks run once a minute. Its network has
no connection to anything, so it reaches none of the servers on the Internet that it asks for its address and to which
it measures latencies. Besides serving its figures it keeps them in a database. Functions that the test driver does not
have respond "not supported". The CPU time of programs that it starts is not counted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.agent import COLUMNS, Stage, agent, exporter, node_exporter, peer_environment, row, with_cards
from bench.go_peers import go_peer
from bench.gpud import gpud_cost
from bench.plot import Bar, Plot
from bench.report import Goal, Report
from tests.agent.kubelet.server import container, devices, kubelet, pod
from tests.nvml import FakeNvml
from tests.support.engines import BASE, ContainerdEngine, images, make_containerd

PODS = 40
GPUS = 8
PROCESSES = 64


def run() -> Report:
    """Measure all and return the report."""
    nvitop, gpud_program = peer_environment() / "bin" / "nvitop-exporter", go_peer("gpud")
    with TemporaryDirectory() as name, node(Path(name)) as sockets:
        stage = Stage(Path(name), sockets, FakeNvml(Path(name) / "nvml"))
        theirs = with_cards(stage, GPUS, PROCESSES, exporter(nvitop))
        ours = with_cards(stage, GPUS, PROCESSES, agent)
        gpud = with_cards(
            stage, GPUS, PROCESSES, lambda stage: gpud_cost(gpud_program, stage.environment(), stage.directory)
        )
        other = node_exporter(stage)
    rows = [
        row("gpuwarden agent", ours),
        row("nvitop-exporter", theirs),
        row("gpud", gpud),
        row("node_exporter (no GPU)", other),
    ]
    goals = (
        Goal("agent_rss_ratio_cluster", ours.rss_mib / theirs.rss_mib, 1.2, "memory, ours / nvitop-exporter's"),
        Goal("agent_rss_mib_cluster", ours.rss_mib, None, "memory of the agent"),
        Goal("agent_rss_mib_cluster_nvitop", theirs.rss_mib, None, "memory of nvitop-exporter"),
        Goal("agent_rss_mib_cluster_gpud", gpud.rss_mib, None, "memory of gpud"),
        Goal("agent_rss_mib_cluster_node_exporter", other.rss_mib, None, "memory of node_exporter"),
        Goal("agent_rss_ratio_cluster_gpud", ours.rss_mib / gpud.rss_mib, None, "memory, ours / gpud's"),
        Goal("agent_cpu_ratio_cluster_gpud", ours.cpu_ms / gpud.cpu_ms, None, "CPU, ours / gpud's"),
        Goal("agent_cpu_ratio_cluster_64", ours.cpu_ms / theirs.cpu_ms, 0.1, "CPU, ours / nvitop-exporter's"),
        Goal("agent_forks_cluster", ours.forks, 0, "processes started by the agent in 20 s"),
    )
    how = (__doc__ or "").partition("\n\n")[2].strip()
    costs = (("gpuwarden agent", ours), ("nvitop-exporter", theirs), ("gpud", gpud), ("node_exporter", other))
    bars = tuple(Bar(label, cost.rss_mib, ours=cost is ours) for label, cost in costs)
    plot = Plot("Memory on a node of a cluster", "MiB", [("64 processes, 40 pods", bars)])
    tables = (("What each costs on a node of a cluster", COLUMNS, rows),)
    return Report("agent_cluster", "The agent's cost on a node of a cluster", how, goals, tables, plot)


@contextlib.contextmanager
def node(directory: Path) -> Iterator[dict[str, str]]:
    """Serve the sockets of a node until the context exits; the agent's settings that name them."""
    kubelet_dir = directory / "kubelet"
    (kubelet_dir / "pod-resources").mkdir(parents=True)
    with containerd_with_pods(directory) as engine, kubelet(kubelet_dir, allocations()):
        yield {
            "GPUWARDEN_AGENT__PATHS__DOCKER_SOCKET": "/nonexistent",
            "GPUWARDEN_AGENT__PATHS__CRI_SOCKETS": f"[{engine.socket}]",
            "GPUWARDEN_AGENT__PATHS__KUBELET": str(kubelet_dir),
        }


def allocations() -> bytes:
    """Response of the kubelet: the first pods have a GPU each."""
    gpus = [devices("nvidia.com/gpu", f"GPU-{number:08d}-0000-0000-0000-000000000000") for number in range(GPUS)]
    return b"".join(
        pod("lab", f"pod-{number}", container("main", *gpus[number : number + 1])) for number in range(PODS)
    )


@contextlib.contextmanager
def containerd_with_pods(directory: Path) -> Iterator[ContainerdEngine]:
    """Run a containerd with pods until the context exits."""
    base = directory / "containerd"
    base.mkdir()
    engine = make_containerd(base)
    try:
        engine.start()
        engine.load(images())
        for number in range(PODS):
            engine.run_pod(f"pod-{number}", BASE, "/bin/sleep", "3600")
        yield engine
    finally:
        engine.remove_pods()  # also after a failure: containers outlive their engine
        engine.stop()
        engine.clean_up()
