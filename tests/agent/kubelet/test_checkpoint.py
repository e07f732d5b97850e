"""The checkpoint of the device manager, in all formats."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from monitor.agent.kubelet import Allocation
from monitor.agent.kubelet.checkpoint import CheckpointError, CheckpointFile

FIXTURES = Path(__file__).parents[2] / "fixtures/kubelet"
GPU = "nvidia.com/gpu"
A = "GPU-ad63c684-5593-111a-cbb1-c1451ebcd0aa"
B = "GPU-72cbf723-9f70-7d49-a6bb-626fcb3f8c30"
MIG = "MIG-7859acb2-74a6-1ee1-6921-71bc7dac4747"
TRAIN = "045b1e35-7f13-41e7-ac42-0050568ffca0"
SERVE = "fd698699-eabf-4c23-92ef-cf0bbdb78261"
TWO = "db4e2ef0-81ea-4c28-8508-105956f66010"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.9", [Allocation(GPU, A, "train", "9a422c32-4fc2-11e9-bb64-505dac4c3a38")]),
        ("1.13", [Allocation(GPU, A, "notebook", "9a422c32-4fc2-11e9-bb64-505dac4c3a38")]),
        (
            "1.20",
            [
                Allocation(GPU, "GPU-00000007-0000-0000-0000-000000000000", "main", TWO),
                Allocation(GPU, "GPU-00000000-0000-0000-0000-000000000000", "main", TWO),
            ],
        ),
        (
            "1.31",
            [
                Allocation("nvidia.com/gpu.shared", f"{A}::2", "train", TRAIN),
                Allocation("nvidia.com/gpu.shared", f"{B}::0", "train", TRAIN),
                Allocation("nvidia.com/mig-1g.10gb", MIG, "serve", SERVE),
                Allocation("rdma/hca", "17", "serve", SERVE),
            ],
        ),
        ("empty", []),
    ],
)
def test_forms(version: str, expected: list[Allocation]) -> None:
    assert CheckpointFile(str(FIXTURES / f"checkpoint-{version}.json")).read() == tuple(expected)


def test_it_is_decoded_again_only_when_it_changed(tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"
    file = CheckpointFile(str(place))
    shutil.copy(FIXTURES / "checkpoint-1.20.json", place)
    before = file.read()
    stat = place.stat()
    place.write_bytes(b"x" * stat.st_size)
    os.utime(place, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert file.read() == before, "same inode, size and time: not read again"
    shutil.copy(FIXTURES / "checkpoint-empty.json", tmp_path / "new")
    (tmp_path / "new").rename(place)  # as the kubelet writes it
    assert file.read() == ()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"Data":{"PodDev', id="cut short"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"Data":{"PodDeviceEntries":[{"PodUID":1}]}}', id="a uid that is a number"),
        pytest.param(b'{"Data":"\xff"}', id="not UTF-8"),
    ],
)
def test_a_damaged_one_is_named(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "kubelet_internal_checkpoint"
    place.write_bytes(content)
    with pytest.raises(CheckpointError, match="kubelet_internal_checkpoint"):
        CheckpointFile(str(place)).read()


def test_a_damaged_one_is_read_once_it_is_whole_again(tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"
    file = CheckpointFile(str(place))
    place.write_text("{")
    with pytest.raises(CheckpointError):
        file.read()
    shutil.copy(FIXTURES / "checkpoint-1.9.json", place)
    assert len(file.read()) == 1


def test_none_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        CheckpointFile(str(tmp_path / "checkpoint")).read()
