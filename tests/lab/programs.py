"""Programs of the lab and their paths."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# Kubernetes programs and the variable that overrides each.
KUBERNETES = {
    "kube-apiserver": "KUBE_APISERVER",
    "kube-controller-manager": "KUBE_CONTROLLER_MANAGER",
    "kube-scheduler": "KUBE_SCHEDULER",
    "kubelet": "KUBELET",
}
# System programs of every variant and the Debian package of each.
SYSTEM = {
    "busybox": "busybox-static",
    "docker-registry": "docker-registry",
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


def missing_words(found: Mapping[str, Path | None], packages_of: Mapping[str, str]) -> list[str]:
    """One sentence per kind of missing program: of a Debian package, of Kubernetes, or built with it."""
    absent = [name for name, path in found.items() if path is None]
    packages = sorted({packages_of[name] for name in absent if name in packages_of})
    kubernetes = [name for name in absent if name in KUBERNETES]
    others = [name for name in absent if name not in packages_of and name not in KUBERNETES]
    words = []
    if packages:
        words.append("Debian packages missing: " + " ".join(packages))
    if kubernetes:
        variables = ", ".join(KUBERNETES[name] for name in kubernetes)
        words.append(f"Kubernetes programs missing: {' '.join(kubernetes)} (or set KUBE_BIN_DIR, or {variables})")
    if others:
        words.append("programs missing: " + " ".join(others))
    return words


def kubernetes_program(name: str, built: Path, environment: Mapping[str, str]) -> Path | None:
    """Path of a Kubernetes program: from its own variable, the configured directory, or the build; None if absent."""
    given = environment.get(KUBERNETES[name])
    return executable(Path(given) if given else Path(environment.get("KUBE_BIN_DIR") or built) / name)


def system_program(name: str) -> Path | None:
    """Path of a program of this system; None if absent."""
    found = shutil.which(name, path=SEARCH)
    return Path(found) if found else None


def executable(path: Path) -> Path | None:
    """This path if it is a program, otherwise None."""
    return path.resolve() if path.is_file() and os.access(path, os.X_OK) else None
