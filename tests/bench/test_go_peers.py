"""Programs in Go: built once per version from committed checksums, with the machine's Go settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import go_peers
from bench.go_peers import NAMES, PEERS, go_peer, package, parse_version, required_go

MODULE = "module peers/tool\n\ngo 1.25.0\n\ntool example.com/tool/cmd/tool\n\nrequire example.com/tool v1.2.3\n"
# A Go that records its calls and settings, and writes a program, or fails.
FAKE_GO = """\
#!/bin/sh
if [ "$1" = env ]; then echo "{version}"; exit 0; fi
echo "$PWD $GOPROXY $GOTOOLCHAIN $*" >> {calls}
echo "reading the proxy: {answer}" >&2
while [ "$1" != -o ]; do shift; done
[ "{answer}" = "200 OK" ] && echo {version} > "$2"
"""


class Machine:
    """A cache, a module file and fake Go programs."""

    def __init__(self, directory: Path) -> None:
        self.cache, self.peers, self.calls = directory / "cache", directory / "peers", directory / "calls"
        modules = self.peers / "tool"
        modules.mkdir(parents=True)
        (modules / "go.mod").write_text(MODULE)
        (modules / "go.sum").write_text("example.com/tool v1.2.3 h1:x=\n")

    def go(self, path: Path, version: str = "go1.26.8", answer: str = "200 OK") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FAKE_GO.format(version=version, answer=answer, calls=self.calls))
        path.chmod(0o755)

    def build(self) -> Path:
        return go_peer("tool", self.cache, self.peers)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GOPROXY", "https://proxy.example.com")
    made = Machine(tmp_path)
    made.go(tmp_path / "bin" / "go")
    return made


@pytest.mark.parametrize("name", NAMES)
def test_committed_checksums_cover_the_program(name: str) -> None:
    go_mod, go_sum = ((PEERS / name / file).read_text() for file in ("go.mod", "go.sum"))
    module, version = next(
        line.split()[:2]
        for line in go_mod.replace("require ", "").splitlines()
        if line.strip() and package(go_mod).startswith(line.split()[0])
    )
    assert f"{module} {version} h1:" in go_sum
    assert required_go(go_mod) >= (1, 25)


def test_a_program_is_built_once_from_the_machines_proxy(machine: Machine) -> None:
    program = machine.build()
    assert machine.build() == program
    assert program.read_text() == "go1.26.8\n"
    assert machine.cache in program.parents
    (call,) = machine.calls.read_text().splitlines()
    assert call.startswith(f"{machine.peers / 'tool'} https://proxy.example.com local build ")
    assert call.endswith(" example.com/tool/cmd/tool")


def test_other_checksums_are_another_program(machine: Machine) -> None:
    first = machine.build()
    (machine.peers / "tool" / "go.sum").write_text("example.com/tool v1.2.3 h1:y=\n")
    assert machine.build() != first
    assert len(machine.calls.read_text().splitlines()) == 2


def test_a_failed_build_says_why_and_is_repeated(machine: Machine, tmp_path: Path) -> None:
    machine.go(tmp_path / "bin" / "go", answer="403 Forbidden")
    with pytest.raises(RuntimeError, match=r"tool cannot be built(.|\n)*reading the proxy: 403 Forbidden"):
        machine.build()
    machine.go(tmp_path / "bin" / "go")
    assert machine.build().exists()


def test_a_go_that_is_too_old_is_replaced_by_the_pinned_one(machine: Machine, tmp_path: Path) -> None:
    machine.go(tmp_path / "bin" / "go", version="go1.19.8")
    machine.go(machine.cache / "go" / "bin" / "go", version="go1.27.3")
    assert machine.build().read_text() == "go1.27.3\n"


def test_the_pinned_go_is_new_enough_and_has_hashes() -> None:
    lock = go_peers.GO_LOCK.read_text()
    assert "--hash=sha256:" in lock
    pinned = parse_version(lock.split()[0].partition("==")[2])
    assert all(pinned >= required_go((PEERS / name / "go.mod").read_text()) for name in NAMES)


def test_versions_are_compared_as_numbers() -> None:
    assert parse_version("go1.9.12") < parse_version("go1.25.0") < parse_version("go1.25.12")
