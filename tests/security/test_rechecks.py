"""Re-checks of an agent that lacks information: unknown means that nothing is killed and nothing is deleted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from monitor.agent.actions import processes
from monitor.agent.actions.datasets import DatasetActions
from monitor.agent.actions.limits import PurgeLimits
from monitor.agent.actions.outcome import ActionContext, ActionOutcome
from monitor.agent.actions.process_owner import owner_refusal
from monitor.agent.actions.processes import ProcessActions
from monitor.agent.cgroup import ContainerOwner, parse_owner
from monitor.agent.datasets.mounts import FsLocation
from monitor.agent.datasets.trash_age import TrashAges
from monitor.agent.journal import ActionJournal
from monitor.agent.procfs import read_process
from monitor.agent.runtime import Runtimes
from monitor.facts import ContainerFact, GpuProcessFact
from monitor.facts.actions import ActionState, KillProcess, PurgeTrash, ScanDatasets, TrashUnit
from monitor.facts.datasets import ScanFact, UseFact
from tests.agent.actions.requests_sent import NO_LIMITS
from tests.support.clock import FakeClock
from tests.support.filesystems import node_paths

DAY = 86400.0
C1, C2 = "1a" * 32, "2b" * 32
POD, OTHER_POD = "045b1e35-7f13-4f4c-8e0d-1c2d3e4f5a6b", "999b1e35-7f13-4f4c-8e0d-1c2d3e4f5a6b"
DOCKER = f"0::/system.slice/docker-{C1}.scope"
PODMAN = f"0::/machine.slice/libpod-{C1}.scope/container"
IN_POD = f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{C1}.scope"


@contextmanager
def gpu_process() -> Iterator[tuple[subprocess.Popen[bytes], KillProcess]]:
    """A real process that seems to use a GPU, and the request to kill it."""
    script = "import os, signal\nos.write(1, b'x')\nwhile True: signal.pause()"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", script], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"x"
            stat = read_process("/proc", process.pid)
            assert stat is not None
            yield process, KillProcess(pid=process.pid, started_at=stat.started_at, gpu="GPU-1", grace_seconds=0.2)
        finally:
            process.kill()


@pytest.mark.parametrize("cgroup", [DOCKER, PODMAN, IN_POD], ids=["docker", "podman", "pod"])
def test_a_missing_runtime_socket_does_not_free_a_process(
    cgroup: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = parse_owner(cgroup)
    assert owner.container_id == C1
    monkeypatch.setattr(processes, "read_owner", lambda _proc, _pid: owner)
    with gpu_process() as (process, action):
        on_gpu = GpuProcessFact(gpu_uuid="GPU-1", pid=process.pid, kind="compute")
        runtimes = Runtimes(str(tmp_path / "docker.sock"), (str(tmp_path / "containerd.sock"),))
        outcome = ProcessActions("/proc", runtimes, lambda: (on_gpu,), 0.0).kill(action)
        assert (outcome.state, outcome.code) == (ActionState.REFUSED, "unknown")
        assert process.poll() is None, "the process was killed"


def container(container_id: str, state: str = "running", pod_uid: str | None = None) -> ContainerFact:
    return ContainerFact(id=container_id, runtime="containerd", state=state, pod_uid=pod_uid)


@pytest.mark.parametrize(
    ("name", "owner", "containers", "code"),
    [
        ("no runtime answers", ContainerOwner(C1, None), (), "unknown"),
        ("another container of another runtime", ContainerOwner(C1, None), (container(C2),), "unknown"),
        ("the pod of a runtime that does not answer", ContainerOwner(C1, POD), (container(C2),), "unknown"),
        ("the same, without a container", ContainerOwner(None, POD), (), "unknown"),
        ("only ended pods are listed", ContainerOwner(C1, POD), (container(C2, "exited", OTHER_POD),), "unknown"),
        ("its container runs", ContainerOwner(C1, None), (container(C1),), "in-use"),
        ("its container is in an unknown state", ContainerOwner(C1, None), (container(C1, "unknown"),), "in-use"),
        ("another container of its pod runs", ContainerOwner(C1, POD), (container(C2, pod_uid=POD),), "in-use"),
        ("its container has ended", ContainerOwner(C1, None), (container(C1, "exited"),), None),
        ("its pod has ended", ContainerOwner(None, POD), (container(C1, "exited", POD),), None),
        ("the kubelet's runtime removed the pod", ContainerOwner(C1, POD), (container(C2, pod_uid=OTHER_POD),), None),
    ],
)  # fmt: skip
def test_only_a_container_that_has_certainly_ended_frees_a_process(
    name: str, owner: ContainerOwner, containers: tuple[ContainerFact, ...], code: str | None
) -> None:
    refusal = owner_refusal(7, owner, containers)
    assert (refusal.code if refusal else None) == code


class DatasetNode:
    """Dataset actions of a node whose wall clock, boot and uptime are under control."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "share"
        self.unit = self.root / "zhang"
        self.unit.mkdir(parents=True)
        (self.unit / "data").write_bytes(b"x" * 1000)
        self.state = folder / "state"
        self.clock = FakeClock(wall=2e9)
        self.boot_id, self.uptime = "boot-1", 1000.0
        self.restart()

    def restart(self) -> None:
        """Start the agent, again."""
        ages = TrashAges(str(self.state), self.boot_id, lambda: self.uptime)
        journal = ActionJournal(str(self.root.parent / "journal"))
        limits = PurgeLimits(NO_LIMITS)
        self.actions = DatasetActions((str(self.root),), node_paths(), journal, _no_uses, ages, limits, self.clock)

    def trash(self) -> None:
        scanned = self.actions.scan(ScanDatasets(root=str(self.root), pattern="*"), ActionContext())
        (unit,) = msgspec.json.decode(scanned.result["scan"], type=ScanFact).units
        action = TrashUnit(
            root=unit.root, path=unit.path, device=unit.device, inode=unit.inode, newest=2e9, policy="p"
        )  # fmt: skip
        assert self.actions.trash(action, ActionContext()).code == "trashed"

    def purge(self, days: float = 7.0) -> ActionOutcome:
        return self.actions.purge(PurgeTrash(root=str(self.root), older_than_seconds=days * DAY), ActionContext())

    @property
    def in_trash(self) -> bool:
        return any(self.root.glob(".gpuwarden-trash/*/unit/data"))

    def pass_days(self, days: float) -> None:
        self.clock.advance(days * DAY)
        self.uptime += days * DAY


def _no_uses(_locations: object) -> dict[FsLocation, tuple[UseFact, ...]]:
    return {}


@pytest.fixture
def node(tmp_path: Path) -> DatasetNode:
    node = DatasetNode(tmp_path)
    node.trash()
    return node


def test_a_clock_ten_days_ahead_purges_nothing(node: DatasetNode) -> None:
    node.clock.set(10 * DAY)
    assert node.purge().freed_bytes == 0
    assert node.in_trash
    node.restart()
    node.purge()
    assert node.in_trash, "also after a restart of the agent"
    node.pass_days(6.9)
    node.purge()
    assert node.in_trash
    node.pass_days(0.2)
    node.purge()
    assert not node.in_trash


def test_a_clock_that_is_set_back_purges_nothing_until_it_agrees(node: DatasetNode) -> None:
    node.clock.set(-30 * DAY)
    node.pass_days(7.1)
    node.purge()
    assert node.in_trash
    node.clock.set(30 * DAY)
    node.purge()
    assert not node.in_trash


def test_only_time_that_the_node_was_up_counts(node: DatasetNode) -> None:
    node.pass_days(3)
    node.actions.scan(ScanDatasets(root=str(node.root), pattern="*"), ActionContext())
    node.boot_id, node.uptime = "boot-2", 2 * DAY  # it was off for an unknown time, and its clock is wrong
    node.clock.set(100 * DAY)
    node.restart()
    node.purge()
    assert node.in_trash
    node.pass_days(1.9)
    node.purge()
    assert node.in_trash
    node.pass_days(0.2)
    node.purge()
    assert not node.in_trash


def test_an_entry_of_unknown_age_is_new(node: DatasetNode) -> None:
    node.pass_days(100)
    (node.state / "trash-ages.json").write_text("{")
    node.restart()
    node.purge()
    assert node.in_trash
    node.boot_id = None  # type: ignore[assignment]  # the boot id cannot be read
    node.restart()
    node.pass_days(100)
    node.purge()
    assert node.in_trash
