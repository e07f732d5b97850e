"""Command lines, files and manifests, without running a component."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.components import command_lines
from tests.lab.files import KUBECONFIG, REGISTRY
from tests.lab.images import root_file_system
from tests.lab.layout import Layout, gpu_ids
from tests.lab.manifests import lease_manifest, node_manifest, node_status, pod_manifest
from tests.lab.ports import Ports
from tests.lab.programs import KUBERNETES, SYSTEM, Programs
from tests.lab.variant import Variant
from tests.lab.variants import VARIANTS
from tests.nvml import FakeNvml
from tests.support import need

ROOT = Path("/tmp/lab")
PORTS = Ports(*range(20001, 20008))
GPUS = ("GPU-a", "GPU-b")


def programs_of(variant: Variant) -> tuple[str, ...]:
    return (*KUBERNETES, *SYSTEM, *variant.system, *variant.built)


def commands_of(variant: Variant) -> dict[str, list[str]]:
    programs = Programs({name: Path("/programs") / name for name in programs_of(variant)})
    return command_lines(variant, Layout(ROOT), PORTS, programs, GPUS)


COMMANDS = {
    f"{variant.name} {name}": line for variant in VARIANTS.values() for name, line in commands_of(variant).items()
}
# These have their addresses in files, or listen on sockets alone.
WITHOUT_ADDRESS = ("registry", "device-plugin", "dra-driver", "containerd", "1.35 kubelet")
NOW = datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=UTC)


@pytest.mark.parametrize("name", COMMANDS)
def test_everything_is_on_loopback(name: str) -> None:
    line = " ".join(COMMANDS[name])
    addresses = re.findall(r"\d+\.\d+\.\d+\.\d+", line.replace("10.0.0.0/24", ""))
    assert set(addresses) <= {"127.0.0.1"}
    listens = re.findall(r"--(?:bind-address|address|listen-client-urls|listen-peer-urls|host|config-file)=(\S+)", line)
    if not name.endswith(WITHOUT_ADDRESS):
        assert listens, "it is told where to listen"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_path_is_in_the_state_directory_or_the_kubelets_fixed_place(name: str) -> None:
    for option in COMMANDS[name][1:]:
        for path in re.findall(r"(?<![/\w.:])/[\w./-]+", option.replace("unix://", "")):
            assert path.startswith(("/tmp/lab/", "/var/lib/kubelet/device-plugins/")), option


def test_the_gpus_are_given_to_the_device_plugin() -> None:
    plugins = [line for name, line in COMMANDS.items() if name.endswith(("device-plugin", "dra-driver"))]
    assert [line[-2:] for line in plugins] == [list(GPUS)] * 3


def test_the_gpus_are_those_of_the_driver_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_GPU_IDS", raising=False)
    ask = (
        "from pynvml import *; nvmlInit();"
        "print(*(nvmlDeviceGetUUID(nvmlDeviceGetHandleByIndex(index)) for index in range(nvmlDeviceGetCount())))"
    )
    environment = FakeNvml(tmp_path / "control").environment()
    told = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True, timeout=300)
    assert tuple(told.stdout.split()) == gpu_ids(), told.stderr
    monkeypatch.setenv("LAB_GPU_IDS", "GPU-x,GPU-y")
    assert gpu_ids() == ("GPU-x", "GPU-y")


def test_the_written_files_are_what_their_readers_expect() -> None:
    kubeconfig = yaml.safe_load(KUBECONFIG.format(address="127.0.0.1:1", ca="/c", user="u", token="t"))
    assert kubeconfig["clusters"][0]["cluster"] == {"server": "https://127.0.0.1:1", "certificate-authority": "/c"}
    assert kubeconfig["users"] == [{"name": "u", "user": {"token": "t"}}]
    assert kubeconfig["contexts"][0]["context"] == {"cluster": "lab", "user": "u"}
    registry = yaml.safe_load(REGISTRY.format(root="/r", address="127.0.0.1:2"))
    assert registry["http"] == {"addr": "127.0.0.1:2"}
    assert registry["storage"]["filesystem"] == {"rootdirectory": "/r"}


@pytest.mark.parametrize(
    ("fields", "path", "expect"),
    [
        ({}, ("spec", "containers", 0, "resources", "limits"), {}),
        ({"gpus": 2}, ("spec", "containers", 0, "resources", "limits"), {"nvidia.com/gpu": "2"}),
        ({}, ("spec", "nodeSelector"), {"kubernetes.io/hostname": "gpu-01"}),
        ({"node": None}, ("spec", "nodeSelector"), {}),
        ({"labels": {"a": "b"}}, ("metadata", "labels"), {"a": "b"}),
        ({"spec": {"hostPID": True}}, ("spec", "hostPID"), True),
        ({"spec": {"hostPID": True}}, ("spec", "hostNetwork"), True),
        ({"container": {"imagePullPolicy": "Always"}}, ("spec", "containers", 0, "imagePullPolicy"), "Always"),
        ({"image": "x:1"}, ("spec", "containers", 0, "image"), "x:1"),
    ],
)
def test_pod_manifest(fields: dict[str, Any], path: tuple[Any, ...], expect: object) -> None:
    found: Any = pod_manifest("p", **fields)
    for key in path:
        found = found[key]
    assert found == expect


def test_node_objects() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    node = node_manifest("n1", {"pool": "a"}, [taint])
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "n1", "pool": "a"}
    assert node["spec"]["taints"] == [taint]
    status = node_status(8, NOW)["status"]
    assert status["allocatable"]["nvidia.com/gpu"] == "8"
    assert status["conditions"][0]["lastHeartbeatTime"] == "2024-05-06T07:08:09Z"
    assert "nvidia.com/gpu" not in node_status(0, NOW)["status"]["capacity"]
    assert lease_manifest("n1", NOW)["spec"]["renewTime"] == "2024-05-06T07:08:09.000010Z"


def test_the_image_holds_busybox_under_the_names_of_its_applets() -> None:
    need(Path("/bin/busybox").exists(), "busybox-static")
    with tarfile.open(fileobj=io.BytesIO(root_file_system("/bin/busybox"))) as tar:
        for applet in ("sh", "sleep", "cat", "ls", "dd", "df", "mkdir", "touch", "rm"):
            assert tar.getmember(f"bin/{applet}").linkname == "busybox"
        assert tar.getmember("bin/busybox").mode == 0o755
        assert tar.getmember("tmp").isdir()


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_each_program_of_the_lab_is_looked_for(variant: Variant) -> None:
    asked: set[str] = set()

    class Recorder(Programs):
        def __getitem__(self, name: str) -> str:
            asked.add(name)
            return name

    command_lines(variant, Layout(ROOT), PORTS, Recorder({}), ())
    assert asked <= set(programs_of(variant))
    assert set(KUBERNETES) <= asked
