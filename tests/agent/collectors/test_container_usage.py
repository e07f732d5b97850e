"""CPU and memory of containers: a real cgroup v1, v2 and other layouts from recorded trees."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.container_usage import ContainerUsageCollector
from monitor.agent.settings import Paths
from monitor.facts import ContainerFact, ContainerUsageFact
from tests.agent.children import child
from tests.support import need, wait_until
from tests.support.clock import FakeClock

FIXTURE = Path(__file__).parents[2] / "fixtures" / "cgroup-v2"
TRAINING = "2cc65c162ca1388b6b8d5ccfb701d22fc96675ccf8b2f1590c490c2c4039547f"
BEST_EFFORT = "65a1b6ad09655b3f1475ede1aa0061a97c0d1ada9f2b2acac959afbc92094463"
TRAINING_USAGE = ContainerUsageFact(
    container_id=TRAINING,
    cpu_seconds_total=89.5,
    cpu_limit_cores=2.0,
    throttled_seconds_total=1.25,
    memory_bytes=3_500_000_000,
    memory_limit_bytes=8 * 1024**3,
)
BEST_EFFORT_USAGE = ContainerUsageFact(
    container_id=BEST_EFFORT,
    cpu_seconds_total=3.25,
    throttled_seconds_total=0.0,
    memory_bytes=500_000_000,
)
V1_CONTROLLERS = ("cpu", "cpuacct", "memory")


def paths(root: Path) -> Paths:
    return Paths(
        proc=str(root / "proc"),
        sys=str(root / "sys"),
        rootfs="/",
        kubelet="",
        kmsg="",
        state="",
        docker_socket="",
        cri_sockets=(),
    )


def container(container_id: str, pid: int | None, *, state: str = "running", sandbox: bool = False) -> ContainerFact:
    return ContainerFact(id=container_id, runtime="containerd", state=state, pid=pid, sandbox=sandbox)


def usage(root: Path, *containers: ContainerFact) -> tuple[ContainerUsageFact, ...]:
    return ContainerUsageCollector(paths(root), lambda: containers).collect()


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A writable copy of the recorded node."""
    shutil.copytree(FIXTURE, tmp_path / "node")
    return tmp_path / "node"


def cgroup_of(root: Path, container_id: str) -> Path:
    return next((root / "sys/fs/cgroup").rglob(f"cri-containerd-{container_id}.scope"))


def test_v2() -> None:
    assert usage(FIXTURE, container(TRAINING, 4101), container(BEST_EFFORT, 4202)) == (
        TRAINING_USAGE,
        BEST_EFFORT_USAGE,
    )


@pytest.mark.parametrize(
    "fact",
    [
        pytest.param(container(TRAINING, 4101, state="exited"), id="not running"),
        pytest.param(container(TRAINING, None), id="no process"),
        pytest.param(container(TRAINING, 4101, sandbox=True), id="a sandbox"),
        pytest.param(container(TRAINING, 9999), id="the process is gone"),
        pytest.param(container(TRAINING, 4202), id="the pid is another container's by now"),
    ],
)
def test_containers_that_have_no_usage(fact: ContainerFact) -> None:
    assert usage(FIXTURE, fact, container(BEST_EFFORT, 4202)) == (BEST_EFFORT_USAGE,)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/../../kubepods-besteffort-podfd698699_eabf_4c23_92ef_cf0bbdb78261.slice", id="of our own class"),
        pytest.param(
            "/../../../kubepods-besteffort.slice/kubepods-besteffort-podfd698699_eabf_4c23_92ef_cf0bbdb78261.slice",
            id="of another class",
        ),
        pytest.param("/..", id="in our own pod"),
    ],
)
def test_v2_from_inside_a_cgroup_namespace(node: Path, path: str) -> None:
    (node / "proc/4202/cgroup").write_text(f"0::{path}/cri-containerd-{BEST_EFFORT}.scope\n")
    assert usage(node, container(BEST_EFFORT, 4202)) == (BEST_EFFORT_USAGE,)


def test_v2_without_the_memory_controller(node: Path) -> None:
    for file in cgroup_of(node, TRAINING).glob("memory.*"):
        file.unlink()
    assert usage(node, container(TRAINING, 4101)) == (
        msgspec.structs.replace(TRAINING_USAGE, memory_bytes=None, memory_limit_bytes=None),
    )


def test_v2_without_the_cpu_controller(node: Path) -> None:
    group = cgroup_of(node, TRAINING)
    (group / "cpu.max").unlink()
    (group / "cpu.stat").write_text("usage_usec 89500000\nuser_usec 71000000\nsystem_usec 18500000\n")
    assert usage(node, container(TRAINING, 4101)) == (
        msgspec.structs.replace(TRAINING_USAGE, cpu_limit_cores=None, throttled_seconds_total=None),
    )


def test_cache_that_was_just_dropped_is_not_negative_memory(node: Path) -> None:
    (cgroup_of(node, TRAINING) / "memory.current").write_text("4096\n")
    assert usage(node, container(TRAINING, 4101))[0].memory_bytes == 0


def test_a_container_that_vanishes_and_comes_back(node: Path) -> None:
    both = (container(TRAINING, 4101), container(BEST_EFFORT, 4202))
    collector = ContainerUsageCollector(paths(node), lambda: both, FakeClock())
    assert len(collector.collect()) == 2
    group = cgroup_of(node, TRAINING)
    group.rename(node / "elsewhere")
    assert collector.collect() == (BEST_EFFORT_USAGE,)
    (node / "elsewhere").rename(group)
    assert collector.collect() == (TRAINING_USAGE, BEST_EFFORT_USAGE)


def test_cores_are_what_was_used_since_the_last_reading(node: Path) -> None:
    clock = FakeClock()
    collector = ContainerUsageCollector(paths(node), lambda: (container(TRAINING, 4101),), clock)
    stat = cgroup_of(node, TRAINING) / "cpu.stat"

    def cores(usage_usec: int) -> float | None:
        stat.write_text(f"usage_usec {usage_usec}\n")
        clock.advance(10)
        return collector.collect()[0].cpu_cores

    # the first pass has nothing to compare with; a counter that decreases is another container's
    assert [cores(5_000_000), cores(30_000_000), cores(30_000_000), cores(1_000_000)] == [None, 2.5, 0.0, None]


def test_limits_are_read_again_after_a_while(node: Path) -> None:
    clock = FakeClock()
    collector = ContainerUsageCollector(paths(node), lambda: (container(TRAINING, 4101),), clock)
    group = cgroup_of(node, TRAINING)

    def limits() -> tuple[float | None, int | None]:
        (fact,) = collector.collect()
        return fact.cpu_limit_cores, fact.memory_limit_bytes

    assert limits() == (2.0, 8 * 1024**3)
    (group / "cpu.max").write_text("50000 100000\n")
    (group / "memory.max").write_text("max\n")
    clock.advance(299)
    assert limits() == (2.0, 8 * 1024**3)
    clock.advance(1)
    assert limits() == (0.5, None)


def test_co_mounted_v1_with_unlimited_memory(tmp_path: Path) -> None:
    """As on CentOS 7: `cpu,cpuacct` is one hierarchy, here without the usual links."""
    (tmp_path / "proc/77").mkdir(parents=True)
    (tmp_path / "proc/77/cgroup").write_text(
        f"4:memory:/docker/{TRAINING}\n3:cpuacct,cpu:/docker/{TRAINING}\n1:name=systemd:/docker/{TRAINING}\n0::/\n"
    )
    files = {
        "cpuacct,cpu/cpuacct.usage": "5500000000\n",
        "cpuacct,cpu/cpu.cfs_quota_us": "150000\n",
        "cpuacct,cpu/cpu.cfs_period_us": "100000\n",
        "cpuacct,cpu/cpu.stat": "nr_periods 10\nnr_throttled 2\nthrottled_time 250000000\n",
        "memory/memory.usage_in_bytes": "1000000\n",
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/memory.stat": "cache 1\ninactive_file 7\ntotal_cache 1\ntotal_inactive_file 400000\n",
    }
    for name, content in files.items():
        hierarchy, _, file = name.partition("/")
        directory = tmp_path / "sys/fs/cgroup" / hierarchy / "docker" / TRAINING
        directory.mkdir(parents=True, exist_ok=True)
        (directory / file).write_text(content)
    assert usage(tmp_path, container(TRAINING, 77)) == (
        ContainerUsageFact(
            container_id=TRAINING,
            cpu_seconds_total=5.5,
            cpu_limit_cores=1.5,
            throttled_seconds_total=0.25,
            memory_bytes=600_000,
        ),
    )


def test_containers_that_are_not_known_are_not_none() -> None:
    with pytest.raises(AbsentError, match="containers"):
        ContainerUsageCollector(paths(FIXTURE), lambda: None).collect()


def test_no_cgroups(tmp_path: Path) -> None:
    with pytest.raises(AbsentError, match="cgroups"):
        usage(tmp_path, container(TRAINING, 4101))


@pytest.fixture
def v1_cgroup() -> Iterator[str]:
    """A real cgroup with a limit of half a core and 256 MiB and a Docker name, removed at teardown."""
    roots = [Path("/sys/fs/cgroup", controller) for controller in V1_CONTROLLERS]
    need(os.geteuid() == 0, "root")
    need(all((root / "cgroup.procs").exists() for root in roots), "cgroup v1 at /sys/fs/cgroup")
    container_id = os.urandom(32).hex()
    made: list[Path] = []
    try:
        for root in roots:
            made.append(root / f"docker-{container_id}.scope")
            made[-1].mkdir()
        cpu, _, memory = made
        (cpu / "cpu.cfs_period_us").write_text("20000")
        (cpu / "cpu.cfs_quota_us").write_text("10000")
        (memory / "memory.limit_in_bytes").write_text(str(256 * 1024**2))
        yield container_id
    finally:
        for directory in made:
            wait_until(partial(_removed, directory), 30, f"{directory} is empty")


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except OSError:  # its processes have not ended yet
        return not directory.exists()
    return True


ENTER_AND_WORK = """
for controller in {controllers}:
    with open(f"/sys/fs/cgroup/{{controller}}/docker-{container_id}.scope/cgroup.procs", "w") as procs:
        procs.write(str(os.getpid()))
kept = b"x" * (32 * 1024 * 1024)
import time
while time.process_time() < 0.2:
    pass
"""


def test_real_v1(v1_cgroup: str) -> None:
    prepare = ENTER_AND_WORK.format(controllers=V1_CONTROLLERS, container_id=v1_cgroup)
    root = Path("/")
    with child(prepare) as pid:
        (fact,) = usage(root, container(v1_cgroup, pid))
    assert fact.cpu_seconds_total is not None
    assert 0.1 < fact.cpu_seconds_total < 10
    assert fact.throttled_seconds_total is not None  # 0 if other processes keep it below its limit
    assert fact.memory_bytes is not None
    assert 32 * 1024**2 <= fact.memory_bytes < 64 * 1024**2
    assert (fact.cpu_limit_cores, fact.memory_limit_bytes) == (0.5, 256 * 1024**2)


def test_forty_containers_are_cheap(tmp_path: Path) -> None:
    containers = []
    for number in range(40):
        container_id = f"{number:064x}"
        shutil.copytree(cgroup_of(FIXTURE, TRAINING), tmp_path / f"sys/fs/cgroup/docker/{container_id}")
        (tmp_path / f"proc/{number}").mkdir(parents=True)
        (tmp_path / f"proc/{number}/cgroup").write_text(f"0::/docker/{container_id}\n")
        containers.append(container(container_id, number))
    collector = ContainerUsageCollector(paths(tmp_path), lambda: tuple(containers))
    assert len(collector.collect()) == 40

    def milliseconds() -> float:
        before = time.process_time()
        collector.collect()
        return (time.process_time() - before) * 1000

    # The budget is 3 ms of CPU time; the rest is for a slow or busy machine.
    assert min(milliseconds() for _ in range(10)) < 20
