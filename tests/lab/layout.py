"""Paths of the lab: a state directory per running lab and a cache for build results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.lab.errors import LabError

NODE = "gpu-01"
LOOPBACK = "127.0.0.1"
PRODUCT_USER = "gpuwarden"
GPU_RESOURCE = "nvidia.com/gpu"
# The kubelet uses these fixed paths regardless of --root-dir.
DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
KUBELET_SOCKET = DEVICE_PLUGINS / "kubelet.sock"
PLUGIN_SOCKET = DEVICE_PLUGINS / "gpuwarden-lab.sock"
CHECKPOINT = DEVICE_PLUGINS / "kubelet_internal_checkpoint"

# Of the Docker engine; those of the other components are shorter.
LONGEST_SOCKET_BELOW = len("/docker-exec/containerd/containerd-debug.sock")
LONGEST_SOCKET_PATH = 107


def state_dir() -> Path:
    """The state directory: LAB_DIR, or a per-user directory below /tmp."""
    return Path(os.environ.get("LAB_DIR") or f"/tmp/gpuwarden-lab-{os.getuid()}")


def cache_dir() -> Path:
    """Directory of the built Kubernetes: GPUWARDEN_LAB_CACHE, or below ~/.cache."""
    return Path(os.environ.get("GPUWARDEN_LAB_CACHE") or "~/.cache/gpuwarden/lab").expanduser()


def gpu_ids() -> tuple[str, ...]:
    """Ids of the node's GPUs: LAB_GPU_IDS (comma-separated), or those of the fake driver library."""
    given = os.environ.get("LAB_GPU_IDS")
    if given:
        return tuple(given.split(","))
    return tuple(f"GPU-{0xA1000000 + index:08x}-0000-4000-8000-{index:012x}" for index in range(8))


@dataclass(frozen=True)
class Layout:
    """Paths below a state directory."""

    root: Path

    @classmethod
    def at(cls, root: Path) -> Layout:
        """Layout of a state directory; LabError if socket paths in it would be too long."""
        real = Path(os.path.realpath(root))
        if len(str(real)) + LONGEST_SOCKET_BELOW > LONGEST_SOCKET_PATH:
            raise LabError(f"{real} is too long for the sockets in it; set LAB_DIR to a shorter path")
        return cls(real)

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def product_kubeconfig(self) -> Path:
        """Credentials of PRODUCT_USER, whose requests the audit log tells apart."""
        return self.root / "product-kubeconfig"

    @property
    def audit_policy(self) -> Path:
        return self.root / "audit-policy.json"

    @property
    def audit_log(self) -> Path:
        return self.logs / "audit.log"

    @property
    def kubelet_root(self) -> Path:
        return self.root / "kubelet"

    @property
    def ca(self) -> Path:
        """The API server's self-signed certificate."""
        return self.root / "certs" / "apiserver.crt"

    @property
    def tokens(self) -> Path:
        return self.root / "tokens.csv"

    @property
    def service_account_key(self) -> Path:
        return self.root / "service-account.key"

    @property
    def registry_config(self) -> Path:
        return self.root / "registry.yml"

    @property
    def registration(self) -> Path:
        return self.root / "device-plugin-registered"
