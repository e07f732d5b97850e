"""Programs of the lab and their paths."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab.errors import LabError
from tests.lab.layout import cache_dir

# Kubernetes programs and the variable that overrides each.
KUBERNETES = {
    "kube-apiserver": "KUBE_APISERVER",
    "kube-controller-manager": "KUBE_CONTROLLER_MANAGER",
    "kube-scheduler": "KUBE_SCHEDULER",
    "kubelet": "KUBELET",
}
# System programs and the Debian package of each.
SYSTEM = {
    "busybox": "busybox-static",
    "containerd": "containerd",
    "docker-registry": "docker-registry",
    "dockerd": "docker.io",
    "etcd": "etcd-server",
    "mount": "mount",
    "openssl": "openssl",
    "runc": "runc",
}
# dockerd and runc are in sbin, which is not on every user's PATH.
SEARCH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"))


@dataclass(frozen=True)
class Programs:
    """Absolute paths by program name."""

    paths: Mapping[str, Path]

    def __getitem__(self, name: str) -> str:
        return str(self.paths[name])


def find_programs(environment: Mapping[str, str] = os.environ) -> Programs:
    """Every program the lab runs; LabError lists all missing ones and how to install them."""
    found = {name: kubernetes_program(name, environment) for name in KUBERNETES}
    found |= {name: _system_program(name) for name in SYSTEM}
    missing = missing_words(found)
    if missing:
        raise LabError(
            "; ".join(missing) + "; `python -m tests.lab build` (as root) installs and builds what is missing"
        )
    return Programs({name: path for name, path in found.items() if path is not None})


def missing_words(found: Mapping[str, Path | None]) -> list[str]:
    """One sentence per kind of missing program."""
    absent = [name for name, path in found.items() if path is None]
    packages = sorted({SYSTEM[name] for name in absent if name in SYSTEM})
    programs = [name for name in absent if name in KUBERNETES]
    words = []
    if packages:
        words.append("Debian packages missing: " + " ".join(packages))
    if programs:
        variables = ", ".join(KUBERNETES[name] for name in programs)
        words.append(f"Kubernetes programs missing: {' '.join(programs)} (or set KUBE_BIN_DIR, or {variables})")
    return words


def bin_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """Directory of the Kubernetes programs."""
    given = environment.get("KUBE_BIN_DIR")
    return Path(given) if given else cache_dir() / "bin"


def kubernetes_program(name: str, environment: Mapping[str, str]) -> Path | None:
    """Path of a Kubernetes program: from its own variable, the configured directory, or the build; None if absent."""
    given = environment.get(KUBERNETES[name])
    return _executable(Path(given) if given else bin_dir(environment) / name)


def _system_program(name: str) -> Path | None:
    found = shutil.which(name, path=SEARCH)
    return Path(found) if found else None


def _executable(path: Path) -> Path | None:
    return path.resolve() if path.is_file() and os.access(path, os.X_OK) else None
