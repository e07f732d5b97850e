"""Python programs that really fail in a real cluster: each is diagnosed within seconds from the end of its log."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.explain.model import Explanation
from monitor.explain.pod import explain_pod
from monitor.i18n import say
from tests.e2e.detecting import Looker, agent_of, looking
from tests.lab.lab import Lab
from tests.nvml import FakeNvml
from tests.support import wait_until
from tests.support.command import get
from tests.support.failing_programs import PROGRAMS, TOKEN, FailingProgram, program_pod

NODE = "gpu-01"
QUICK = ("containers", "log_tails")
DIAGNOSIS_SECONDS = 45.0  # from the exit of the container; generous, other tests may occupy the machine
LOG_SAYS = "Its log says: "
PATIENCE_SECONDS = 60.0  # the container has to start first


class Node:
    """The lab's node with an agent that reads logs, and the rules."""

    def __init__(self, lab: Lab, looker: Looker, agent: str, state: Path) -> None:
        self.lab = lab
        self.looker = looker
        self.agent = agent
        self.state = state

    def why(self, pod: Any) -> Explanation | None:
        """Explanation of a pod once its container has ended."""
        world = self.looker.world()
        fact = world.pod_by_uid.get(pod.metadata.uid)
        if fact is None or not any(status.exit_code for status in fact.statuses):
            return None
        return explain_pod(fact, world, time.time())

    def log_explains(self, pod: Any, cause: str) -> bool:
        explanation = self.why(pod)
        return explanation is not None and explanation.cause == cause and LOG_SAYS in texts(explanation, "en")

    def run(self, program: FailingProgram, **spec: Any) -> Any:
        """Run a Python program in a pod."""
        return self.lab.run_pod(f"fails-{program.name}", phase=None, **program_pod(program, **spec))


@pytest.fixture(scope="module")
def node(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    directory = tmp_path_factory.mktemp("node")
    settings = {
        "AGENT__NODE_NAME": NODE,
        **lab.agent_settings(),
    }
    nvml = FakeNvml(directory / "nvml", gpus=1)
    with (
        agent_of(directory / "state", QUICK, nvml.environment(), **settings) as agent,
        looking(lab.kubeconfig, (agent,)) as looker,
    ):
        yield Node(lab, looker, agent, directory / "state")


def texts(explanation: Explanation, language: str) -> str:
    parts = (explanation.headline, *explanation.evidence, *explanation.advice)
    return "\n".join(say(language, part.key, part.values) for part in parts)


def exit_time(lab: Lab, pod: Any) -> float:
    ended = lab.cluster.read_pod(pod).status.container_statuses[0].state.terminated
    return float(ended.finished_at.timestamp())


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_a_program_that_fails_is_diagnosed_within_seconds(node: Node, program: FailingProgram) -> None:
    pod = node.run(program)
    try:
        # The exit code alone may name the cause before the log proves it.
        wait_until(lambda: node.log_explains(pod, program.explained), PATIENCE_SECONDS, f"{program.name} is explained")
        seen = time.time()
        explanation = node.why(pod)
        delay = seen - exit_time(node.lab, pod)  # Kubernetes reports the exit in whole seconds
        print(f"{program.name}: {delay:.1f} s after its exit")
        assert delay < DIAGNOSIS_SECONDS
        assert explanation is not None
        english, chinese = texts(explanation, "en"), texts(explanation, "zh")
        assert "它的日志：" in chinese
        assert TOKEN not in english + chinese
    finally:
        node.lab.delete_pods(pod)


def test_a_planted_token_is_in_no_message_file_or_log(node: Node) -> None:
    (program,) = [program for program in PROGRAMS if TOKEN in program.source]
    pod = node.run(program, restartPolicy="Always")
    try:
        finding = node.looker.expect("pod-start-failed", "network", PATIENCE_SECONDS, pod=pod.metadata.name)
        assert "403 Client Error" in (finding.raw or "")
        assert TOKEN not in repr(finding)
        snapshot = get(f"http://{node.agent}/v1/snapshot")[2]
        assert any(tail["cause"] == "http-denied" for tail in json.loads(snapshot)["log_tails"])
        assert TOKEN not in snapshot
        assert TOKEN not in get(f"http://{node.agent}/metrics")[2]
        for path in node.state.rglob("*"):
            assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path
    finally:
        node.lab.delete_pods(pod)
