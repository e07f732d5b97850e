"""Two real daemons on a real cluster: one is killed during a cleanup, the other completes it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest
import yaml

from monitor.cleanup.journal import FILE, CleanupJournal
from monitor.cleanup.journal_records import ItemState
from monitor.facts.node import NodeSnapshot
from monitor.leader.elector import LeaseState
from tests.e2e import small_disk
from tests.e2e.cleaning import QUICK, RBAC, Account, Cleaner
from tests.e2e.detecting import acting_node, agent_of
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.support import free_port, wait_until
from tests.support.command import command, get, quiet_environment, running

OLD = [f"harbor.lab/nlp/old-{number}:1" for number in range(4)]
POLICY = {
    "kind": "images", "name": "images", "mode": "enforce", "announce": "0s", "cron": "0 0 29 2 *", "min_age": "1s",
    "high": "99%", "low": "0.1%", "pins": ["local/*"], "protect_local": False,
}  # fmt: skip
LEASING = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}


class Replica:
    """One of several daemons."""

    def __init__(self, process: subprocess.Popen[str], asked: Cleaner, state: Path) -> None:
        self.process = process
        self.asked = asked
        self.state = state

    def lease(self) -> LeaseState:
        return msgspec.json.decode(get(f"{self.asked.page}/v1/lease")[2], type=LeaseState)

    def found(self) -> set[tuple[str, str, str]]:
        """Findings without figures."""
        body = json.loads(get(f"{self.asked.page}/v1/findings")[2])
        return {(each["rule"], each["cause"], json.dumps(each["labels"], sort_keys=True)) for each in body}

    def answers(self) -> bool:
        try:
            return get(f"{self.asked.page}/v1/findings")[0] == 200
        except OSError:
            return False


@pytest.fixture
def scene(lab: Lab) -> Iterator[Scene]:
    with small_disk.engine_on_small_disk(lab, megabytes=256), Scene(lab, "lease") as scene:
        yield scene


@contextmanager
def replicas(lab: Lab, scene: Scene, directory: Path) -> Iterator[tuple[Replica, Replica]]:
    """Run a real agent that acts and two real daemons with minimal permissions; the first one acts."""
    key, nvml, on_node = acting_node(lab, directory)
    kubeconfig = account(scene).kubeconfig(lab.kubeconfig, directory)
    with ExitStack() as stack:
        agent = stack.enter_context(agent_of(directory / "agent", QUICK, nvml.environment(), **on_node))
        daemon = {
            "cycle": "500ms",
            "agents": {"interval": "500ms", "static": [agent]},
            "kubernetes": {"enabled": "yes", "kubeconfig": str(kubeconfig)},
            "cleanup": {"agents": {"private_key_file": str(key)}, "policies": [POLICY]},
            "rules": {"pod_pending": {"waiting": "2s"}},
            "lease": {"namespace": scene.name},
        }
        config = directory / "gpuwarden.yml"
        config.write_text(yaml.safe_dump({"log_level": "warning", "daemon": daemon}))

        def start(name: str) -> Replica:
            listen = f"127.0.0.1:{free_port()}"
            own = {"CONFIG": str(config), "DAEMON__LISTEN": listen, "DAEMON__KUBERNETES__ENABLED": "yes"}
            environ = quiet_environment(directory / name, **own)
            process = stack.enter_context(running(command("daemon"), environ, stdout=subprocess.DEVNULL))
            return Replica(process, Cleaner(nvml, agent, f"http://{listen}", environ), directory / name)

        both = [start("one"), start("other")]
        wait_until(lambda: all(each.answers() for each in both), 40, "both daemons look")
        wait_until(lambda: both[0].lease().holder == both[1].lease().holder is not None, 10, "they agree who acts")
        first, second = sorted(both, key=lambda each: not each.lease().holds)
        yield first, second


def account(scene: Scene) -> Account:
    """An account that may also use leases in its own namespace only."""
    made, name = Account(scene), "gpuwarden-lease"
    here = f"{RBAC}/namespaces/{scene.name}"
    scene.create(f"{here}/roles", {"metadata": {"name": name}, "rules": [LEASING]})
    subject = {"kind": "ServiceAccount", "name": "gpuwarden", "namespace": scene.name}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    scene.create(f"{here}/rolebindings", binding)
    return made


def done_by_agent(asked: Cleaner) -> dict[str, int]:
    """Actions of the agent since its start, with outcomes."""
    snapshot = msgspec.json.decode(get(f"http://{asked.agent}/v1/snapshot")[2], type=NodeSnapshot)
    assert snapshot.actions is not None
    assert snapshot.actions.failed == {}
    return snapshot.actions.done


def items(state: Path) -> dict[str, ItemState]:
    """State of each item in the journal of a dead daemon."""
    journal = CleanupJournal(str(state / FILE))
    try:
        return {each.item.name: each.state for run in journal.runs(10) for each in journal.entries(run.id)}
    finally:
        journal.close()


@pytest.mark.timeout(240)  # includes a lease expiry and possibly starting the lab
def test_the_holder_is_killed_in_the_middle_of_a_cleanup_and_nothing_is_done_twice(
    lab: Lab, scene: Scene, tmp_path: Path
) -> None:
    for name in OLD:
        small_disk.load(lab, name, megabytes=1)
    waits = lab.run_pod("waits", namespace=scene.name, gpus=9, phase=None)
    with replicas(lab, scene, tmp_path) as (first, second):
        wait_until(lambda: "pod-pending" in {rule for rule, _, _ in second.found()}, 20, "it is found")
        wait_until(lambda: first.found() == second.found(), 10, "both find the same")
        wait_until(lambda: len(first.asked.plan("images").items) >= len(OLD), 20, "all old images are planned for")
        refused = second.asked.ask("run", "images")
        assert refused.returncode != 0
        assert str(first.lease().identity) in refused.stderr

        assert first.asked.ask("run", "images").returncode == 0
        wait_until(lambda: done_by_agent(first.asked).get("remove-image/removed", 0) >= 1, 20, "it has begun")
        first.process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        first.process.wait(60)
        before = items(first.state)
        wait_until(lambda: second.lease().holds, 30, "the other one takes over")
        took = time.monotonic() - killed

        shown = second.asked.wait_run("images", 0, limit=60)
        assert 5 < took < 60, took
        assert (shown.run.trigger, shown.run.end) == ("resumed", "done")
        after = {each.item.name: each.state for each in shown.items}
        begun = {name for name, state in before.items() if state is not ItemState.PLANNED}
        assert len(begun) < len(OLD), "it was not in the middle"
        assert set(after) >= set(OLD) - begun
        assert set(after) & {name for name, state in before.items() if state is ItemState.DONE} == set()
        assert set(after.values()) == {ItemState.DONE}
        gone = {*begun, *after}
        assert done_by_agent(second.asked) == {"remove-image/removed": len(gone)}
        assert not lab.engine.images() & set(OLD)

        second.process.send_signal(signal.SIGTERM)
        second.process.wait(60)
        spec = scene.api.get(scene.path("coordination.k8s.io/v1", "leases", "gpuwarden"))["spec"]
        assert (spec.get("holderIdentity"), spec["leaseTransitions"]) == (None, 1), "it is given back at the end"
    lab.delete_pods(waits)
