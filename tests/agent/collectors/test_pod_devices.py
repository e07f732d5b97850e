"""Allocated devices: a real gRPC server in place of the kubelet, and its checkpoint files."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.pod_devices import PodDevicesCollector, parse_device_id, with_pod_uids
from monitor.agent.kubelet import Allocation
from monitor.agent.kubelet.checkpoint import CheckpointError
from monitor.agent.kubelet.pod_resources import PodResourcesError
from monitor.agent.settings import Paths
from monitor.facts import PodDeviceFact
from tests.agent.kubelet.server import claim, container, devices, kubelet, pod
from tests.support import need

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests/fixtures/kubelet"
NOBODY_UID = 65534
A = "GPU-ad63c684-5593-111a-cbb1-c1451ebcd0aa"
B = "GPU-72cbf723-9f70-7d49-a6bb-626fcb3f8c30"
MIG = "MIG-7859acb2-74a6-1ee1-6921-71bc7dac4747"
GPU = "nvidia.com/gpu"


@pytest.fixture
def kubelet_dir() -> Iterator[Path]:
    """A directory with a short path, as sockets need, that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="gpuwarden-") as name:
        directory = Path(name)
        for path in (directory, directory / "pod-resources", directory / "device-plugins"):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
        yield directory


def collector(kubelet_dir: Path, *, timeout: float = 5.0) -> PodDevicesCollector:
    paths = Paths(
        proc="", sys="", rootfs="", kubelet=str(kubelet_dir), kmsg="", state="", docker_socket="", cri_sockets=()
    )
    return PodDevicesCollector(paths, ("nvidia.com/",), timeout)


def put_checkpoint(kubelet_dir: Path, name: str) -> Path:
    place = kubelet_dir / "device-plugins/kubelet_internal_checkpoint"
    shutil.copy(FIXTURES / f"checkpoint-{name}.json", place)
    return place


ANSWER = (
    pod("lab", "train-0", container("train", devices(GPU, A, B), devices("rdma/hca", "17")), container("sidecar"))
    + pod("kube-system", "coredns", container("coredns"))
    + pod("lab", "share-1", container("jupyter", devices("nvidia.com/gpu.shared", f"{A}::3")))
)
ANSWERED = (
    PodDeviceFact(
        resource=GPU,
        device_id=A,
        source="pod-resources",
        pod_name="train-0",
        namespace="lab",
        container="train",
        gpu_uuid=A,
    ),
    PodDeviceFact(
        resource=GPU,
        device_id=B,
        source="pod-resources",
        pod_name="train-0",
        namespace="lab",
        container="train",
        gpu_uuid=B,
    ),
    PodDeviceFact(
        resource="nvidia.com/gpu.shared",
        device_id=f"{A}::3",
        source="pod-resources",
        pod_name="share-1",
        namespace="lab",
        container="jupyter",
        gpu_uuid=A,
        replica=3,
    ),
)


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_the_socket(kubelet_dir: Path, version: str) -> None:
    with kubelet(kubelet_dir, ANSWER, version=version):
        assert collector(kubelet_dir).collect() == ANSWERED


def test_devices_that_claims_hold(kubelet_dir: Path) -> None:
    held = claim("lab", "train-gpu-x7k2p", ("gpu.nvidia.com", "n1", "gpu-0"), ("gpu.nvidia.com", "n1", "gpu-1"))
    channel = claim("lab", "imex", ("compute-domain.nvidia.com", "n1", "channel-0"))  # not a GPU
    answer = pod("lab", "train-0", container("train", devices(GPU, A), held, channel))
    with kubelet(kubelet_dir, answer):
        collected = collector(kubelet_dir).collect()
    names = [(device.resource, device.device_id, device.claim, device.pool) for device in collected]
    assert names == [
        (GPU, A, None, None),
        ("gpu.nvidia.com", "gpu-0", "train-gpu-x7k2p", "n1"),
        ("gpu.nvidia.com", "gpu-1", "train-gpu-x7k2p", "n1"),
    ]
    assert {(device.namespace, device.pod_name, device.container) for device in collected} == {
        ("lab", "train-0", "train")
    }


def test_no_pods(kubelet_dir: Path) -> None:
    with kubelet(kubelet_dir, b""):
        assert collector(kubelet_dir).collect() == ()


def test_an_answer_of_many_pods(kubelet_dir: Path) -> None:
    one = pod("lab", "train", container("train", devices(GPU, *[f"{A}::{n}" for n in range(100)])))
    with kubelet(kubelet_dir, one * 1500):  # 7 MB, more than the default of gRPC
        assert len(collector(kubelet_dir).collect()) == 150_000


def test_the_uid_comes_from_the_file(kubelet_dir: Path) -> None:
    put_checkpoint(kubelet_dir, "1.20")
    answer = pod("lab", "two", container("main", devices(GPU, "GPU-00000007-0000-0000-0000-000000000000", A)))
    with kubelet(kubelet_dir, answer):
        facts = collector(kubelet_dir).collect()
    assert [(fact.pod_name, fact.pod_uid, fact.source) for fact in facts] == [
        ("two", "db4e2ef0-81ea-4c28-8508-105956f66010", "pod-resources"),
        ("two", None, "pod-resources"),
    ]


def test_a_damaged_file_beside_the_socket_is_no_loss(kubelet_dir: Path) -> None:
    put_checkpoint(kubelet_dir, "1.20").write_text('{"Data":')
    with kubelet(kubelet_dir, ANSWER):
        assert collector(kubelet_dir).collect() == ANSWERED


def test_a_kubelet_that_is_restarted(kubelet_dir: Path) -> None:
    subject = collector(kubelet_dir)
    with kubelet(kubelet_dir, ANSWER):
        assert subject.collect() == ANSWERED
    with socket.socket(socket.AF_UNIX) as stale:  # its socket stays in the file system without a listener
        path = kubelet_dir / "pod-resources/kubelet.sock"
        path.unlink(missing_ok=True)
        stale.bind(str(path))
    with pytest.raises(PodResourcesError, match="UNAVAILABLE"):
        subject.collect()
    path.unlink()
    with kubelet(kubelet_dir, b""):
        assert subject.collect() == ()


def test_a_kubelet_that_accepts_and_never_answers(kubelet_dir: Path) -> None:
    released = threading.Event()

    def block() -> bytes:
        released.wait(60)
        return b""

    with kubelet(kubelet_dir, block):
        began = time.monotonic()
        with pytest.raises(PodResourcesError, match=r"did not answer on /.*/kubelet\.sock within 0\.3 s"):
            collector(kubelet_dir, timeout=0.3).collect()
        assert time.monotonic() - began < 30
        released.set()


def test_a_socket_that_nobody_serves(kubelet_dir: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{kubelet_dir}/pod-resources/kubelet.sock")
        listener.listen()
        with pytest.raises(PodResourcesError, match=r"kubelet\.sock within 0\.3 s"):
            collector(kubelet_dir, timeout=0.3).collect()


def test_a_server_that_is_no_kubelet(kubelet_dir: Path) -> None:
    with kubelet(kubelet_dir, ANSWER, version="v9"), pytest.raises(PodResourcesError, match="UNIMPLEMENTED"):
        collector(kubelet_dir).collect()


@contextmanager
def as_nobody() -> Iterator[None]:
    need(os.geteuid() == 0, "root")
    os.seteuid(NOBODY_UID)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_socket_that_may_not_be_used(kubelet_dir: Path) -> None:
    with kubelet(kubelet_dir, ANSWER):
        (kubelet_dir / "pod-resources/kubelet.sock").chmod(0o600)
        assert collector(kubelet_dir).collect() == ANSWERED  # also imports everything while that is still permitted
        subject = collector(kubelet_dir)
        with as_nobody(), pytest.raises(PodResourcesError, match=r"kubelet\.sock: UNAVAILABLE: .*Permission denied"):
            subject.collect()


def test_a_directory_that_may_not_be_seen_is_not_absent(kubelet_dir: Path) -> None:
    (kubelet_dir / "pod-resources").chmod(0o700)
    with as_nobody(), pytest.raises(PermissionError):
        collector(kubelet_dir).collect()


def test_the_file_where_there_is_no_socket(kubelet_dir: Path) -> None:
    put_checkpoint(kubelet_dir, "1.31")
    facts = collector(kubelet_dir).collect()
    assert [(fact.resource, fact.gpu_uuid, fact.replica, fact.container) for fact in facts] == [
        ("nvidia.com/gpu.shared", A, 2, "train"),
        ("nvidia.com/gpu.shared", B, 0, "train"),
        ("nvidia.com/mig-1g.10gb", MIG, None, "serve"),
    ]
    assert {(fact.source, fact.pod_name, fact.namespace) for fact in facts} == {("checkpoint", None, None)}
    assert facts[0].pod_uid == "045b1e35-7f13-41e7-ac42-0050568ffca0"


def test_a_damaged_file_where_there_is_no_socket(kubelet_dir: Path) -> None:
    put_checkpoint(kubelet_dir, "1.31").write_text("{")
    with pytest.raises(CheckpointError):
        collector(kubelet_dir).collect()


def test_no_kubelet(tmp_path: Path) -> None:
    with pytest.raises(AbsentError, match="no kubelet on this node"):
        collector(tmp_path / "nothing").collect()


@pytest.mark.parametrize(
    ("device_id", "expected"),
    [
        (A, (A, None)),
        (f"{A}::2", (A, 2)),
        (MIG, (MIG, None)),
        (f"{MIG}::0", (MIG, 0)),
        (f"MIG-{A}/7/0", (f"MIG-{A}/7/0", None)),
        (f"MIG-{A}/7/0::1", (f"MIG-{A}/7/0", 1)),
        (f"{A}-9", (A, 9)),
        (f"{A}-_-12", (A, 12)),
        (f"{A}::x", (A, None)),
        ("GPU-0", ("GPU-0", None)),
        ("3", (None, None)),
        ("3::1", (None, 1)),
        ("nvidia0", (None, None)),
        ("nvidia0/vgpu3", (None, None)),
        ("", (None, None)),
    ],
)
def test_device_ids(device_id: str, expected: tuple[str | None, int | None]) -> None:
    assert parse_device_id(device_id) == expected


@given(st.text(max_size=200) | st.text(alphabet="GPUMIG-:_0123456789abcdef/", max_size=60))
def test_no_device_id_is_refused(device_id: str) -> None:
    gpu_uuid, _ = parse_device_id(device_id)
    assert gpu_uuid is None or device_id.startswith(gpu_uuid)


LISTED = Allocation(GPU, A, "train", pod_name="train-0", namespace="lab")


@pytest.mark.parametrize(
    ("checkpoint", "uid"),
    [
        pytest.param([], None, id="empty"),
        pytest.param([Allocation(GPU, A, "train", "u1")], "u1", id="the same device and container"),
        pytest.param([Allocation(GPU, B, "train", "u1")], None, id="another device"),
        pytest.param([Allocation(GPU, A, "other", "u1")], None, id="another container"),
        pytest.param([Allocation("amd.com/gpu", A, "train", "u1")], None, id="another resource"),
        pytest.param(
            [Allocation(GPU, A, "train", "u1"), Allocation(GPU, A, "train", "u2")], None, id="one that ended is in too"
        ),
    ],
)
def test_which_uid(checkpoint: list[Allocation], uid: str | None) -> None:
    assert with_pod_uids([LISTED], checkpoint) == [LISTED._replace(pod_uid=uid)]


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys, monitor.agent.collectors.pod_devices; print([m for m in ('h2', 'google') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=300)
    assert ran.stdout == b"[]\n"
