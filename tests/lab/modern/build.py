"""Builds Kubernetes and containerd from Go modules, once per set of versions.

The go.mod files beside this one name the versions, the go.sum files the checksums. Where modules come from is up to the
Go environment of the machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab.building import is_complete, publish, run_logged
from tests.lab.errors import LabError
from tests.lab.lock import locked
from tests.lab.modern.go import find_go, parse_version

HERE = Path(__file__).parent
BUILD_LIMIT = 5400.0


@dataclass(frozen=True)
class Module:
    """A directory with a go.mod and go.sum, and the programs built from it."""

    name: str
    package: str
    programs: tuple[str, ...]
    # Link-time variables with parts of the version; without them the programs report a development version.
    variables: Mapping[str, str]

    @property
    def directory(self) -> Path:
        return HERE / self.name

    @property
    def requirements(self) -> str:
        return (self.directory / "go.mod").read_text()

    def version(self) -> str:
        """The required version, such as v1.2.3; LabError if go.mod names none."""
        found = re.search(rf"^(?:require)?\s+{re.escape(self.package)} (v[\d.]+)", self.requirements, re.MULTILINE)
        if found is None:
            raise LabError(f"{self.directory / 'go.mod'} does not require {self.package}")
        return found.group(1)


KUBERNETES = Module(
    "kubernetes",
    "k8s.io/kubernetes",
    ("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    {
        "k8s.io/component-base/version.gitVersion": "v{0}.{1}.{2}",
        "k8s.io/component-base/version.gitMajor": "{0}",
        "k8s.io/component-base/version.gitMinor": "{1}",
    },
)
CONTAINERD = Module(
    "containerd",
    "github.com/containerd/containerd/v2",
    ("containerd", "containerd-shim-runc-v2", "ctr"),
    {"github.com/containerd/containerd/v2/version.Version": "v{0}.{1}.{2}"},
)
MODULES = (KUBERNETES, CONTAINERD)
PROGRAMS = tuple(program for module in MODULES for program in module.programs)


def bin_dir(cache: Path) -> Path:
    """Directory of the programs of these versions."""
    digest = hashlib.sha256()
    for module in MODULES:
        for name in ("go.mod", "go.sum"):
            digest.update((module.directory / name).read_bytes())
    return cache / f"bin-{digest.hexdigest()[:12]}"


def build(cache: Path, say: Callable[[str], None]) -> None:
    """Build the programs if necessary, and remove those of other versions; LabError if a step fails."""
    programs = bin_dir(cache)
    if is_complete(PROGRAMS, programs):
        return
    with locked(cache / "build.lock", limit=BUILD_LIMIT):
        if is_complete(PROGRAMS, programs):  # another process built them meanwhile
            return
        go = find_go(wanted_go(), cache)
        work = cache / "build"
        work.mkdir(exist_ok=True)
        for module in MODULES:
            say(f"compiling {module.name} {module.version()}; output in {work / f'{module.name}.log'}")
            for program in module.programs:
                began = time.monotonic()
                compile_program(go, module, program, work)
                say(f"{program} in {time.monotonic() - began:.0f} s")
        for old in cache.glob("bin-*"):
            shutil.rmtree(old)
        publish(PROGRAMS, work / "bin", programs)
        shutil.rmtree(work)


def wanted_go() -> tuple[int, ...]:
    """The oldest Go that every module accepts."""
    versions = [parse_version(line) for module in MODULES for line in module.requirements.splitlines()[:5]]
    return max(version for version in versions if version is not None)


def compile_program(go: Path, module: Module, program: str, work: Path) -> None:
    """Build one program into `work/bin`, reusing compiled packages."""
    parts = module.version().removeprefix("v").split(".")
    settings = [f"-X {name}={value.format(*parts)}" for name, value in module.variables.items()]
    line = [str(go), "build", "-trimpath", f"-ldflags=-s -w {' '.join(settings)}"]
    output = [f"-o={work / 'bin' / program}", f"{module.package}/cmd/{program}"]
    environment = build_environment(go, os.environ)
    run_logged(
        [*line, *output], work / f"{module.name}.log", BUILD_LIMIT, cwd=module.directory, environment=environment
    )


def build_environment(go: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Environment of the build: the machine's own, with static programs and no download of another toolchain."""
    path = f"{go.parent}{os.pathsep}{inherited.get('PATH', os.defpath)}"
    return {**inherited, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "PATH": path}
