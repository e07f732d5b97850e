"""A node snapshot as tables."""

from __future__ import annotations

import msgspec
import pytest

from monitor.facts import (
    CollectorFact,
    DiskFact,
    GpuFact,
    GpuInventory,
    ImageCacheFact,
    NodeSnapshot,
    PodDeviceFact,
    ShmFact,
)
from monitor.present.node import failed_collectors, headline, tables
from monitor.present.table import TextTable
from tests.support.snapshots import AT, full_snapshot

EMPTY = NodeSnapshot(node="gpu-01", at=AT, agent_version="0.1.0")


def table(snapshot: NodeSnapshot, title: str) -> TextTable:
    return next(found for found in tables(snapshot) if found.title.startswith(title))


def test_the_headline_says_which_node_and_when() -> None:
    assert headline(full_snapshot()) == (
        "node gpu-01, 2025-11-16 02:26:40 UTC, gpuwarden 0.1.0, 96 CPUs, memory 212.0 GiB of 512.0 GiB, load 12.50, "
        "up 1d, Linux 5.15.0"
    )
    assert headline(EMPTY) == "node gpu-01, 2025-11-16 02:26:40 UTC, gpuwarden 0.1.0"
    assert headline(EMPTY, "Asia/Shanghai") == "node gpu-01, 2025-11-16 10:26:40 CST, gpuwarden 0.1.0"


@pytest.mark.parametrize(
    ("title", "row"),
    [
        (
            "GPUs (driver 550.54.15)",
            ("0", "NVIDIA A100-SXM4-80GB", "55%", "61.0 GiB / 80.0 GiB", "67 C", "302 W / 400 W", "2", "team-a/bert-0",
             "recovery: drain-and-reset, throttled: sw-thermal, throttled: power-cap"),
        ),
        ("GPUs", ("1", "?", "?", "?", "?", "?", "0", "-", "lost: GPU is lost")),
        ("Disks", ("/", "/dev/sda2", "ext4", "system, runtime, kubelet", "500.0 GiB", "30.0 GiB", "94%", "90%", "ok")),
        ("Disks", ("/mnt/数据", "nas:/export", "nfs4", "nas", "?", "?", "?", "?", "not responding for 2m")),
        ("Shared memory", ("host", "256.0 GiB", "1.0 GiB", "0%")),
        ("Shared memory", ("team-a/bert-0/trainer", "64.0 MiB", "60.0 MiB", "94%")),
        ("Image caches", ("docker", "20.10.24", "/var/lib/docker", "3", "59.0 GiB")),
        ("Largest images", ("harbor.lab/nlp/bert:1", "59.0 GiB", "1")),
        ("GPU errors", ("79", "GPU-00000001-1111-2222-3333-444444444444", "2", "1m ago")),
        ("Expected mounts", ("/mnt/数据", "hung", "2m", "no answer")),
        ("Registries", ("https://harbor.lab", "tcp: refused", "10ms", "connection refused")),
        ("Collectors", ("images", "hangs for 30s", "1m", "1.5s", "OSError: no")),
    ],
)  # fmt: skip
def test_rows_of_a_busy_node(title: str, row: tuple[str, ...]) -> None:
    found = table(full_snapshot(), title)
    assert row in found.rows
    assert all(len(cells) == len(found.columns) for cells in found.rows)


def collector(outcome: str, message: str | None = None, hung_since: float | None = None) -> CollectorFact:
    return CollectorFact(name="gpu", outcome=outcome, interval_seconds=5, message=message, hung_since=hung_since)


@pytest.mark.parametrize(
    ("fact", "note"),
    [
        (None, "not read: collector gpu is disabled"),
        (collector("starting"), "not read yet"),
        (collector("absent", "no driver"), "none here: no driver"),
        (collector("failed", "NVMLError: unknown"), "failed: NVMLError: unknown"),
        (collector("ok", hung_since=AT - 90), "hangs for 1m30s"),
    ],
)
def test_a_part_that_is_not_known_says_why(fact: CollectorFact | None, note: str) -> None:
    snapshot = msgspec.structs.replace(EMPTY, collectors=(fact,) if fact else ())
    assert table(snapshot, "GPUs") == TextTable(
        "GPUs", ("#", "model", "util", "memory", "temp", "power", "processes", "pods", "state"), (), note
    )


def test_what_is_empty_is_not_what_is_unknown() -> None:
    snapshot = msgspec.structs.replace(EMPTY, gpu=GpuInventory(gpus=()), images=(), disk=(), shm=())
    notes = {found.title: found.note for found in tables(snapshot)}
    assert notes == {
        "GPUs": "the driver reports none",
        "Disks": "none",
        "Shared memory (/dev/shm)": "none",
        "Image caches": "no container runtime",
        "Collectors": "none enabled",
    }


def test_a_card_without_a_name_has_an_unknown_number_of_processes() -> None:
    snapshot = msgspec.structs.replace(
        EMPTY, gpu=GpuInventory(gpus=(GpuFact(index=0),)), gpu_processes=(), pod_devices=()
    )
    assert table(snapshot, "GPUs").rows == (("0", "?", "?", "?", "?", "?", "?", "?", "ok"),)


def test_which_gpu_a_claim_holds_is_not_guessed() -> None:
    """The agent knows the driver's name of the device; the uuid is in the cluster's ResourceSlice."""
    plain = PodDeviceFact(
        resource="nvidia.com/gpu", device_id="GPU-1", gpu_uuid="GPU-1", source="pod-resources", pod_name="train",
        namespace="team",
    )  # fmt: skip
    claimed = msgspec.structs.replace(
        plain, resource="gpu.nvidia.com", device_id="gpu-0", gpu_uuid=None, claim="c", pool="n1"
    )
    gpus = GpuInventory(gpus=(GpuFact(index=0, uuid="GPU-0"), GpuFact(index=1, uuid="GPU-1")))
    for devices, pods in (((plain,), ["-", "team/train"]), ((claimed, plain), ["?", "team/train"])):
        snapshot = msgspec.structs.replace(EMPTY, gpu=gpus, gpu_processes=(), pod_devices=devices)
        assert [row[7] for row in table(snapshot, "GPUs").rows] == pods


def test_names_from_outside_cannot_reach_the_terminal() -> None:
    evil = "\x1b[31m\nevil\x07\u202e"
    snapshot = msgspec.structs.replace(
        EMPTY,
        node=evil,
        disk=(DiskFact(mount=evil, device=evil, fstype=evil, error=evil),),
        shm=(ShmFact(size_bytes=0, used_bytes=0, device=1, container_id=evil),),
        images=(ImageCacheFact(runtime=evil, version=evil),),
        collectors=(CollectorFact(name=evil, outcome=evil, interval_seconds=1, message=evil),),
        gpu=GpuInventory(gpus=(), driver_version=evil),
    )
    shown = [headline(snapshot)]
    for found in tables(snapshot):
        shown += [found.title, found.note, *found.columns, *(cell for row in found.rows for cell in row)]
    assert "\\x1b[31m\\nevil\\x07\\u202e" in shown
    assert all(text.isprintable() for text in shown)


def test_collectors_in_trouble_are_named() -> None:
    assert failed_collectors(full_snapshot()) == ("images",)
    assert failed_collectors(EMPTY) == ()
