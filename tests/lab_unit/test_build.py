"""The build of Kubernetes, except for the ten minutes of compiling."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from tests.lab.building import is_complete, publish, run_logged
from tests.lab.errors import LabError
from tests.lab.lock import locked
from tests.lab.packages import not_installed
from tests.lab.process import start_ticks
from tests.lab.programs import KUBERNETES
from tests.lab.v1_20.build import build_environment, build_kubernetes, fetch_source, pick_version, prepare_source
from tests.support import wait_until


def programs_in(directory: Path, names: tuple[str, ...] = tuple(KUBERNETES)) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)
    return directory


def test_what_is_built_is_not_built_again(tmp_path: Path) -> None:
    said: list[str] = []
    assert build_kubernetes(programs_in(tmp_path / "bin").parent, said.append) == tmp_path / "bin"
    assert said == []


def test_one_who_waited_for_another_build_uses_its_result(tmp_path: Path) -> None:
    results: list[Path] = []
    waiting = threading.Thread(target=lambda: results.append(build_kubernetes(tmp_path, lambda _: None)))
    with locked(tmp_path / "build.lock", 60):
        waiting.start()
        time.sleep(0.2)
        assert results == []
        programs_in(tmp_path / "bin")
    waiting.join(60)
    assert results == [tmp_path / "bin"]


def test_the_lock_is_given_up_after_its_limit(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock", 1),
        pytest.raises(LabError, match="let go of"),
        locked(tmp_path / "lock", 0.2),
    ):
        pytest.fail("two hold the lock")


@pytest.mark.parametrize(
    ("records", "expect"),
    [
        pytest.param(
            "Package: kubernetes\nVersion: 1.20.5+really1.20.2-1.1\n", "1.20.5+really1.20.2-1.1", id="Debian 12"
        ),
        pytest.param("Version: 1.32.3+ds-2\n\nVersion: 1.20.2-1\n", "1.20.2-1", id="one of two"),
    ],
)
def test_version_to_build(records: str, expect: str) -> None:
    assert pick_version(records) == expect


@pytest.mark.parametrize(("records", "words"), [("", "none at all"), ("Version: 1.32.3+ds-2\n", "1.32.3")])
def test_version_not_offered(records: str, words: str) -> None:
    with pytest.raises(LabError, match=words):
        pick_version(records)


def test_a_source_that_was_unpacked_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "kubernetes").mkdir()
    assert fetch_source(tmp_path, pytest.fail) == tmp_path / "kubernetes"


def test_preparing_the_source_twice_is_preparing_it_once(tmp_path: Path) -> None:
    tree, newer = tmp_path / "tree", tmp_path / "newer"
    old = tree / "vendor/github.com/modern-go/reflect2"
    old.mkdir(parents=True)
    newer.mkdir()
    for path in (old / "go_below_118.go", old / "LICENSE", newer / "reflect2.go", newer / "reflect2_test.go"):
        path.write_text(path.name)
    for _ in range(2):
        prepare_source(tree, newer)
        assert sorted(os.listdir(old)) == ["LICENSE", "reflect2.go"]
        assert (tree / ".go/src/k8s.io/kubernetes").resolve() == tree
        assert "v1.20.2" in (tree / ".git-version").read_text()


def test_programs_appear_all_at_once_and_replace_half_of_an_earlier_build(tmp_path: Path) -> None:
    built, target = programs_in(tmp_path / "built"), programs_in(tmp_path / "bin", ("kubelet",))
    (tmp_path / "bin.incoming").mkdir()
    assert not is_complete(KUBERNETES, target)
    publish(KUBERNETES, built, target)
    assert is_complete(KUBERNETES, target)
    assert sorted(os.listdir(tmp_path)) == ["bin", "built"]


def test_a_missing_program_leaves_nothing_that_looks_complete(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        publish(KUBERNETES, programs_in(tmp_path / "built", ("kube-apiserver",)), tmp_path / "bin")
    assert not is_complete(KUBERNETES, tmp_path / "bin")


def test_a_failing_command_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"(?s)ended with 3.*out of disk"):
        run_logged(["sh", "-c", "echo out of disk; exit 3"], tmp_path / "log", 10, cwd=tmp_path)


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with pytest.raises(LabError, match="took longer than"):
        run_logged(["sh", "-c", f"sleep 60 & echo $! > {pid_file}; wait"], tmp_path / "log", 3, cwd=tmp_path)
    child = int(pid_file.read_text())
    wait_until(lambda: start_ticks(child) is None, 5, "the end of its child")


@pytest.mark.parametrize(
    ("listing", "expect"),
    [
        pytest.param("gcc installed\nmake installed\n", [], id="all there"),
        pytest.param("gcc installed\n", ["make"], id="one unknown"),
        pytest.param("gcc installed\nmake config-files\n", ["make"], id="removed, its configuration left"),
        pytest.param("", ["gcc", "make"], id="nothing there"),
    ],
)
def test_missing_packages(listing: str, expect: list[str]) -> None:
    assert not_installed(["gcc", "make"], listing) == expect


def test_settings_of_another_go_toolchain_do_not_reach_the_build(tmp_path: Path) -> None:
    leaking = {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "go1.26.0", "GOENV": "/root/.config/go/env", "GO111MODULE": "on"}
    environment = build_environment(tmp_path, {"PATH": "/usr/bin", "HOME": "/root", "CGO_CFLAGS": "-O0", **leaking})
    assert {name for name in environment if name.startswith("GO")} == {
        "GOENV",
        "GOPATH",
        "GOPROXY",
        "GOROOT",
        "GOSUMDB",
    }
    assert environment["GOENV"] == "off"
    assert "CGO_CFLAGS" not in environment
    assert environment["HOME"] == "/root"
