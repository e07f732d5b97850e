"""Disks that fill, empty and hang on a real node, and a failing real database: each is found with its cause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.detect.base import Limits
from monitor.detect.rules import mass_deletion, mount_lost, service_down
from monitor.facts.findings import Severity
from tests.e2e.detecting import Looker, agent_of, looking, probing
from tests.lab.lab import Lab
from tests.nvml import FakeNvml
from tests.support import wait_until
from tests.support.engines import BASE, DockerEngine, images, make_docker
from tests.support.filesystems import ext4_disk, fill, stalling_mount
from tests.support.postgresql import Database, database

__all__ = ["database"]  # fixture, referenced by name
MIB = 1 << 20
NODE = "gpu-01"
QUICK = ("gpu", "gpu_processes", "pod_devices", "containers", "shm", "disk", "mounts", "logs")
LIMITS: dict[str, Limits[Any]] = {
    "mass-deletion": Limits(mass_deletion.Limits(size=10 * MIB)),
    "mount-lost": Limits(mount_lost.Limits(after=1.0)),
    "service-down": Limits(service_down.Limits(after=1.0)),
}


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An expected mount that is absent at first."""
    return tmp_path_factory.mktemp("share") / "nas"


@pytest.fixture(scope="module")
def looker(lab: Lab, share: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looker]:
    directory = tmp_path_factory.mktemp("node")
    nvml = FakeNvml(directory / "nvml", gpus=8)
    for index, uuid in enumerate(lab.gpu_ids):
        nvml.gpu(index, uuid=uuid)
    settings = {
        "AGENT__NODE_NAME": NODE,
        **lab.agent_settings(),
        "AGENT__MOUNTS": f"['{share}']",
    }
    with (
        agent_of(directory / "state", QUICK, nvml.environment(), **settings) as agent,
        looking(lab.kubeconfig, (agent,), LIMITS) as looker,
    ):
        yield looker


def test_a_pod_that_overflows_its_shared_memory_is_named(lab: Lab, looker: Looker) -> None:
    pour = "dd if=/dev/zero of=/dev/shm/batch bs=1M count=100 && exit 9; exec sleep 1000000"
    pod = lab.run_pod("overflows", gpus=1, command=("sh", "-c", pour), labels={"userName": "li.lei"})
    try:
        finding = looker.expect("shm-pressure", "nearly-full", 20, Severity.CRITICAL, pod="overflows")
        assert (finding.labels["node"], finding.labels["user"]) == (NODE, "li.lei")
        assert finding.headline.values["size"] == finding.headline.values["used"] == 64 * MIB
    finally:
        lab.delete_pods(pod)
    looker.expect_over("shm-pressure", 20, pod="overflows")


def test_a_full_data_disk_is_full_of_datasets(looker: Looker, tmp_path: Path) -> None:
    with ext4_disk(tmp_path) as disk:
        wait_until(lambda: looker.disk(disk), 10, "the disk is seen")
        assert looker.finds("disk-full", mount=str(disk)) == []
        fill(disk)
        looker.expect("disk-full", "datasets", 10, Severity.CRITICAL, node=NODE, mount=str(disk))
        (disk / "full").unlink()
        looker.expect_over("disk-full", 10, mount=str(disk))


def test_data_that_is_gone_within_minutes_is_a_mass_deletion(looker: Looker, tmp_path: Path) -> None:
    with ext4_disk(tmp_path, megabytes=64) as disk:
        files = [disk / f"shard-{number}" for number in range(40)]
        for file in files:
            file.write_bytes(bytes(MIB))
        wait_until(lambda: used(looker, disk) >= 40 * MIB, 10, "the data is seen")
        for file in files[:4]:
            file.unlink()
        wait_until(lambda: used(looker, disk) < 40 * MIB, 10, "some of it is gone")
        assert looker.finds("mass-deletion") == []
        for file in files[4:30]:
            file.unlink()
        where = {"node": NODE, "mount": str(disk)}
        looker.expect("mass-deletion", "mass-deletion", 10, **where)
        # The first snapshot may show half of it.
        wait_until(lambda: 25 * MIB < deleted(looker, where) < 35 * MIB, 10, "all of it is reported")


def deleted(looker: Looker, where: dict[str, str]) -> float:
    """Bytes that the finding of a mass deletion reports."""
    return sum(float(finding.headline.values["bytes"]) for finding in looker.finds("mass-deletion", **where))


def used(looker: Looker, mount: Path) -> int:
    """Usage of a disk that the rules have evaluated too."""
    looker.look()
    disk = looker.disk(mount)
    return (disk.used_bytes or 0) if disk else 0


def test_a_mount_that_is_missing_or_hangs_is_lost(looker: Looker, share: Path) -> None:
    where = {"node": NODE, "mount": str(share)}
    looker.expect("mount-lost", "missing", 15, **where)
    with stalling_mount(share.parent, share.name) as nas:
        looker.expect_over("mount-lost", 15, **where)
        nas.hang()
        looker.expect("mount-lost", "hung", 20, **where)
        nas.release()
        looker.expect_over("mount-lost", 20, **where)


@pytest.fixture
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerEngine]:
    """A Docker engine on a small disk of its own."""
    with ext4_disk(tmp_path_factory.mktemp("e"), "disk", megabytes=64, inodes=8192) as disk:
        base = disk / "d"
        base.mkdir()
        engine = make_docker(base)
        try:
            engine.start()
            engine.client.images.load(images())
            yield engine
            engine.remove_containers()
        finally:
            engine.stop()
            engine.clean_up()


def test_what_fills_the_disk_of_an_engine_is_named(engine: DockerEngine, tmp_path: Path) -> None:
    """A container fills its writable layer: images are not the cause."""
    mount, quick = engine.base.parent, ("containers", "disk", "images", "runtime_usage")
    settings = {"AGENT__NODE_NAME": "gpu-02", "AGENT__PATHS__DOCKER_SOCKET": engine.socket}
    no_driver: dict[str, str] = {}
    with agent_of(tmp_path / "state", quick, no_driver, **settings) as agent, looking(None, (agent,)) as looker:
        wait_until(lambda: is_runtime_disk(looker.disk(mount)), 20, "the engine's disk is seen")
        assert looker.finds("disk-full", mount=str(mount)) == []
        pour = "dd if=/dev/zero of=/checkpoint bs=64k; exec sleep 1000"
        engine.run(BASE, "/bin/sh", "-c", pour, name="greedy")
        finding = looker.expect("disk-full", "container-layers", 20, node="gpu-02", mount=str(mount))
        owners = {note.values["pod"] for note in finding.evidence if note.key == "disk-owner"}
        assert owners == {"greedy"}


def is_runtime_disk(disk: Any) -> bool:
    return disk is not None and "runtime" in disk.roles


def test_a_database_that_takes_no_writes_or_is_stopped_is_down(looker: Looker, database: Database) -> None:
    with probing(looker, database.target(interval=0.5)):
        assert looker.finds("service-down") == []
        database.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        database.execute("SELECT pg_reload_conf()")
        looker.expect("service-down", "read-only", 10, service="db")
        database.execute("ALTER SYSTEM RESET default_transaction_read_only")
        database.execute("SELECT pg_reload_conf()")
        looker.expect_over("service-down", 10, service="db")
        database.stop()
        looker.expect("service-down", "refused", 10, service="db")
