"""Cleanup over a simulated cluster, or over a real agent on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from monitor.agent.actions import build
from monitor.agent.datasets.in_use import InUse
from monitor.agent.datasets.mounts import FsLocation
from monitor.agent.main import start as start_agent
from monitor.base.signing import RequestSigner, generate_keys
from monitor.cleanup.execute.agent_client import Access
from monitor.cleanup.journal_records import CleanupRun, RunState
from monitor.cleanup.policy import CleanupPolicy
from monitor.cluster.agents.poller import PollSettings
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.live import ClusterSettings, LiveCluster
from monitor.cluster.platforms import all_rules
from monitor.config.root import Config
from monitor.daemon.cleaning import CleanupController
from monitor.facts.datasets import UseFact
from monitor.kube.client import connect
from monitor.sim.node import SimNode
from monitor.sim.outages import OutageContext
from monitor.sim.simulation import Simulation
from tests.cleanup.support import Outbox
from tests.support import wait_until

KEYS = generate_keys()
NODE = "here"
SOON = 60.0


@contextlib.contextmanager
def simulated(nodes: int = 1) -> Iterator[Simulation]:
    story = Simulation(nodes=nodes, gpus=4, outages=())
    story.start()
    try:
        yield story
    finally:
        story.stop()


def settings(agents: tuple[str, ...] = (), port: int = 1) -> ClusterSettings:
    return ClusterSettings(
        poll=PollSettings(interval=0.15, limit=2.0, crew=4, token=None),
        agents=agents,
        agent_label="app.kubernetes.io/name=gpuwarden-agent",
        agent_port=port,
        resource="nvidia.com/gpu",
        limits=StateLimits(settle=0.1, stale_after=5.0, idle_after=0.5, terminating_grace=0.2),
        rules=all_rules((), ("userName",)),
        cycle=0.3,
    )


@contextlib.contextmanager
def cleaning(
    state: Path,
    outbox: Outbox,
    *policies: CleanupPolicy,
    story: Simulation | None = None,
    agent: str | None = None,
    **more: Any,
) -> Iterator[CleanupController]:
    """Running cleanup over a simulated cluster, or over one agent without Kubernetes."""
    api = connect(str(story.kubeconfig(state))) if story is not None else None
    agents = (agent,) if agent is not None else ()
    cluster = LiveCluster(settings(agents, story.agents_port if story is not None else 1), api)
    cluster.start()
    with contextlib.ExitStack() as ends:
        ends.callback(cluster.stop)
        made = CleanupController(
            policies,
            Access(RequestSigner(KEYS.private), 5.0),
            str(state),
            cluster,
            outbox,
            **({"check_interval": 0.2} | more),
        )
        ends.callback(made.stop)
        wait_until(lambda: [fact for fact in cluster.poller.facts() if fact.snapshot], SOON, "an agent answered")
        made.start()
        yield made


class Readable(InUse):
    """Ignores unreadable processes: in some sandboxes, pid 1 never becomes readable."""

    def __call__(self, places: Sequence[FsLocation]) -> Mapping[FsLocation, tuple[UseFact, ...]]:
        found = super().__call__(places)
        known = {place: tuple(use for use in uses if use.how != "unknown") for place, uses in found.items()}
        return {place: uses for place, uses in known.items() if uses}


@contextlib.contextmanager
def real_agent(tmp_path: Path, root: Path) -> Iterator[str]:
    """Address of an agent on this machine that acts below one root."""
    setattr(build, "InUse", Readable)  # noqa: B010  # it is imported there, not exported
    paths = {"state": str(tmp_path / "agent"), "docker_socket": str(tmp_path / "no.sock"), "cri_sockets": []}
    public_key = tmp_path / "action-public-key"
    public_key.write_text(KEYS.public)
    actions = {
        "enabled": True, "public_key_file": str(public_key), "dataset_roots": [str(root)], "per_minute": 6000,
        "limits": {"min_trash": "0s"},
    }  # fmt: skip
    config = {"node_name": NODE, "listen": "127.0.0.1:0", "paths": paths, "actions": actions}
    agent = start_agent(Config.model_validate({"agent": config}).agent_settings())
    try:
        yield "{}:{}".format(*agent.address)
    finally:
        agent.stop()
        setattr(build, "InUse", InUse)  # noqa: B010  # mypy refuses the plain assignment


def runs(made: CleanupController, policy: str | None = None) -> list[CleanupRun]:
    return [shown.run for shown in made.history(100, policy)]


def ended(made: CleanupController, policy: str, end: str | None = None, within: float = SOON) -> CleanupRun:
    """Wait for a run of a policy to end, and return the latest."""

    def found() -> list[CleanupRun]:
        return [
            run for run in runs(made, policy) if run.state is not RunState.RUNNING and (end is None or run.end == end)
        ]

    wait_until(found, within, f"a run of {policy} ends as {end}: {[run.end for run in runs(made, policy)]}")
    return found()[0]


def on_node(story: Simulation, do: Callable[[SimNode, OutageContext], Any]) -> Any:
    """Call a function on the first simulated node."""
    return story.call(lambda stage: do(next(iter(stage.cluster.nodes.values())), stage))
