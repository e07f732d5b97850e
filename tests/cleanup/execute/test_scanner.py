"""Scans of roots, on their own node and on all other nodes that mount them."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest

from monitor.cleanup.execute.agent_client import ActionClient, AgentRefusesError, AgentSilentError, AgentTarget
from monitor.cleanup.execute.references_reader import VolumeList
from monitor.cleanup.execute.scanner import RootScan, ScanError, Scanner, ScannerDeps
from monitor.cleanup.inputs import other_mounts
from monitor.cleanup.plan.dataset_protection import DatasetUses
from monitor.cleanup.plan.references import VolumeUse
from monitor.cleanup.policy import DatasetPolicy
from monitor.facts.actions import ActionFact, ActionRequest, ActionState, ScanDatasets
from monitor.facts.agents import AgentFact
from monitor.facts.datasets import ScanFact, UseFact
from monitor.facts.node import NodeSnapshot
from tests.cleanup.builders import NOW, disk, scan, unit

POLICY = DatasetPolicy(name="data", root="/mnt/share", node="nas-01", pattern="*/datasets/*")


class Agents(ActionClient):
    """Scan results or errors, by target."""

    def __init__(self, result: dict[str, ScanFact | Exception | None]) -> None:
        self._results = result
        self.roots: dict[str, str] = {}
        self.stopped: list[str] = []

    def submit(self, target: AgentTarget, request: ActionRequest) -> ActionFact:
        assert isinstance(request.action, ScanDatasets)
        self.roots[target.node] = request.action.root
        found = self._results[target.node]
        if isinstance(found, Exception):
            raise found
        return ActionFact(id=target.node, kind="scan-datasets", state=ActionState.RUNNING, started_at=NOW)

    def finish(self, target: AgentTarget, fact: ActionFact, _limit: float, on_progress: Any = None) -> ActionFact:
        on_progress(msgspec.structs.replace(fact, progress={"entries": 5}))
        found = self._results[target.node]
        result = {"scan": msgspec.Raw(msgspec.json.encode(found))} if found is not None else {}
        return msgspec.structs.replace(fact, state=ActionState.DONE, result=result)

    def stop(self, target: AgentTarget, _scan_id: str) -> None:
        self.stopped.append(target.node)


def scanner(agents: Agents, others: dict[str, str] | None = None, unseen: tuple[str, ...] = ()) -> Scanner:
    volumes = VolumeList((VolumeUse("Pod t/p", "/x"),), ())
    deps = ScannerDeps(
        lambda node: None if node == "gone" else AgentTarget(node, "a:1"),
        lambda _: (others or {}, unseen),
        lambda: volumes,
    )
    return Scanner(agents, deps, {}, lambda: NOW)


def test_who_uses_what_on_every_node_that_mounts_it() -> None:
    used, free, unknown = (
        unit("zhang/a", in_use_by=(UseFact(how="open", pid=7),)),
        unit("zhang/b"),
        unit("zhang/c", in_use_by=None),
    )
    agents = Agents({
        "nas-01": scan(unit("zhang/a"), unit("zhang/b")),
        "gpu01": scan(used, free), "gpu02": scan(free, unknown),
        "gpu03": AgentSilentError("no"), "gpu04": scan(stopped=True),
    })  # fmt: skip
    others = {
        "gpu01": "/data/share",
        "gpu02": "/mnt/share",
        "gpu03": "/mnt/share",
        "gpu04": "/mnt/share",
        "gone": "/mnt/share",
    }
    made = scanner(agents, others, ("gpu09",))
    found = made.scan(POLICY)
    assert [unit.path for unit in found.scan.units] == ["zhang/a", "zhang/b"]
    assert found.uses == DatasetUses(
        volumes=(VolumeUse("Pod t/p", "/x"),),
        elsewhere={"zhang/a": "gpu01", "zhang/c": "gpu02"},
        unseen=("gone", "gpu03", "gpu04", "gpu09"),
    )
    assert agents.roots["gpu01"] == "/data/share"
    assert made.last("data") is found
    progress = made.progress("data")
    assert progress is not None
    assert (progress.counts, progress.finished_at, progress.error) == ({"entries": 5}, NOW, None)


@pytest.mark.parametrize(
    ("name", "result", "message"),
    [
        ("it refuses", AgentRefusesError("disabled", "switched off"), "switched off"),
        ("it is silent", AgentSilentError("refused"), "refused"),
        ("it was stopped", scan(stopped=True), "the scan was stopped"),
        ("the result is forgotten", None, "has dropped the result"),
    ],
)
def test_a_look_that_fails(name: str, result: ScanFact | Exception | None, message: str) -> None:
    made = scanner(Agents({"nas-01": result}))
    with pytest.raises(ScanError, match=message):
        made.scan(POLICY)
    progress = made.progress("data")
    assert progress is not None
    assert message in (progress.error or "")
    assert made.last("data") is None


def test_one_at_a_time_and_it_can_be_stopped() -> None:
    started, go_on = threading.Event(), threading.Event()

    class Slow(Agents):
        def finish(self, target: AgentTarget, fact: ActionFact, limit: float, on_progress: Any = None) -> ActionFact:
            started.set()
            assert go_on.wait(60)
            on_progress(fact)
            on_progress(fact)
            return super().finish(target, fact, limit, on_progress)

    agents = Slow({"nas-01": scan(unit("zhang/a"))})
    made = scanner(agents)
    results: list[RootScan] = []
    thread = threading.Thread(target=lambda: results.append(made.scan(POLICY)))
    thread.start()
    assert started.wait(60)
    with pytest.raises(ScanError, match="already in progress"):
        made.scan(POLICY)
    assert made.stop("data")
    go_on.set()
    thread.join(60)
    assert agents.stopped == ["nas-01"]  # once
    assert not made.stop("data")
    assert len(results) == 1


def agent(node: str, *disks: Any, **more: Any) -> AgentFact:
    snapshot = NodeSnapshot(node=node, at=NOW, agent_version="0", disk=disks, **more)
    return AgentFact(target=f"{node}:1", node=node, snapshot=snapshot, received_at=NOW)


def nas(mount: str = "/mnt", device: str = "nas:/export") -> Any:
    return disk(mount=mount, device=device, roles=("nas",))


def test_which_nodes_mount_a_root() -> None:
    agents = {
        "nas-01": agent("nas-01", nas()),
        "same": agent("same", nas()),
        "elsewhere": agent("elsewhere", nas("/data/nas")),
        "other": agent("other", nas(device="nas2:/export"), disk(mount="/mnt/share")),
        "none": agent("none", disk()),
        "blind": AgentFact(target="b:1", node="blind", snapshot=NodeSnapshot(node="blind", at=NOW, agent_version="0")),
        "never": AgentFact(target="n:1", node="never"),
    }
    assert other_mounts(POLICY, agents) == ({"same": "/mnt/share", "elsewhere": "/data/nas/share"}, ("blind", "never"))
    agents["nas-01"] = agent("nas-01", disk(mount="/mnt"))  # a local disk
    assert other_mounts(POLICY, agents) == ({}, ())
