"""Builds Kubernetes and containerd from Go modules, once per set of versions."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tests.lab.building import is_complete, publish
from tests.lab.go_module import BUILD_LIMIT, Module, digest, wanted_go
from tests.lab.lock import locked
from tests.lab.modern.go import find_go

HERE = Path(__file__).parent
_KUBERNETES = ("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_CONTAINERD = ("containerd", "containerd-shim-runc-v2", "ctr")

KUBERNETES = Module(
    HERE / "kubernetes",
    "k8s.io/kubernetes",
    {name: f"cmd/{name}" for name in _KUBERNETES},
    {
        "k8s.io/component-base/version.gitVersion": "v{0}.{1}.{2}",
        "k8s.io/component-base/version.gitMajor": "{0}",
        "k8s.io/component-base/version.gitMinor": "{1}",
    },
)
CONTAINERD = Module(
    HERE / "containerd",
    "github.com/containerd/containerd/v2",
    {name: f"cmd/{name}" for name in _CONTAINERD},
    {"github.com/containerd/containerd/v2/version.Version": "v{0}.{1}.{2}"},
)
MODULES = (KUBERNETES, CONTAINERD)
PROGRAMS = tuple(program for module in MODULES for program in module.programs)


def bin_dir(cache: Path) -> Path:
    """Directory of the programs of these versions."""
    return cache / f"bin-{digest(MODULES)}"


def build(cache: Path, say: Callable[[str], None]) -> None:
    """Build the programs if necessary, and remove those of other versions; LabError if a step fails."""
    programs = bin_dir(cache)
    if is_complete(PROGRAMS, programs):
        return
    with locked(cache / "build.lock", limit=BUILD_LIMIT):
        if is_complete(PROGRAMS, programs):  # another process built them meanwhile
            return
        go = find_go(wanted_go(MODULES), cache)
        work = cache / "build"
        work.mkdir(exist_ok=True)
        for module in MODULES:
            say(f"compiling {module.name} {module.version()}; output in {work / f'{module.name}.log'}")
            for program in module.programs:
                began = time.monotonic()
                module.compile(go, program, work)
                say(f"{program} in {time.monotonic() - began:.0f} s")
        for old in cache.glob("bin-*"):
            shutil.rmtree(old)
        publish(PROGRAMS, work / "bin", programs)
        shutil.rmtree(work)
