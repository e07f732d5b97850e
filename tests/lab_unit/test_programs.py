"""Finding programs and free ports, and reporting missing ones."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import pytest

from tests.lab.errors import LabError
from tests.lab.layout import Layout
from tests.lab.ports import Ports, choose_ports
from tests.lab.programs import KUBERNETES, kubernetes_program, missing_words
from tests.lab.variant import Variant
from tests.lab.variants import VARIANTS, chosen

PACKAGES = {"dockerd": "docker.io", "etcd": "etcd-server", "runc": "runc"}
PRESENT: dict[str, Path | None] = {name: Path("/bin/true") for name in (*KUBERNETES, *PACKAGES, "ctr")}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


@pytest.mark.parametrize(
    ("absent", "words"),
    [
        pytest.param([], [], id="nothing missing"),
        pytest.param(["dockerd"], ["Debian packages missing: docker.io"], id="a package"),
        pytest.param(
            ["etcd", "runc", "kubelet"],
            [
                "Debian packages missing: etcd-server runc",
                "Kubernetes programs missing: kubelet (or set KUBE_BIN_DIR, or KUBELET)",
            ],
            id="of both kinds",
        ),
        pytest.param(["ctr"], ["programs missing: ctr"], id="built beside Kubernetes"),
    ],
)
def test_missing(absent: list[str], words: list[str]) -> None:
    assert missing_words({**PRESENT, **dict.fromkeys(absent)}, PACKAGES) == words


@every_variant
def test_a_missing_program_is_named_with_the_way_to_get_it(variant: Variant, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=rf"kube-apiserver.*LAB={variant.name} python -m tests\.lab build"):
        variant.find_programs({"KUBE_BIN_DIR": str(tmp_path)})


@every_variant
def test_a_file_that_cannot_be_run_is_missing(variant: Variant, tmp_path: Path) -> None:
    (tmp_path / "kubelet").write_text("")
    with pytest.raises(LabError, match="kubelet"):
        variant.find_programs({"KUBE_BIN_DIR": str(tmp_path)})


@pytest.mark.parametrize(("given", "name"), [({}, "1.35"), ({"LAB": ""}, "1.35"), ({"LAB": "1.20"}, "1.20")])
def test_the_variable_chooses_the_versions(given: dict[str, str], name: str) -> None:
    assert chosen(given).name == name


def test_an_unknown_variant_is_named_with_the_known_ones() -> None:
    with pytest.raises(LabError, match=r"LAB=1\.21 is unknown; there are 1\.35, 1\.20"):
        chosen({"LAB": "1.21"})


def test_programs_are_taken_from_a_directory_or_named_one_by_one(tmp_path: Path) -> None:
    for name in (*KUBERNETES, "my-kubelet"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    environment = {"KUBE_BIN_DIR": str(tmp_path), "KUBELET": str(tmp_path / "my-kubelet")}
    assert kubernetes_program("kubelet", tmp_path / "none", environment) == tmp_path / "my-kubelet"
    assert kubernetes_program("kube-scheduler", tmp_path / "none", environment) == tmp_path / "kube-scheduler"


def test_ports_are_different_free_and_out_of_the_kernels_own_range() -> None:
    ports = msgspec.structs.astuple(choose_ports())
    assert len(set(ports)) == len(Ports.__struct_fields__)
    first_of_the_kernel = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 < port < first_of_the_kernel for port in ports)
    for port in ports:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))


def test_a_state_directory_with_too_long_a_name(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="LAB_DIR"):
        Layout.at(tmp_path / ("x" * 100))
