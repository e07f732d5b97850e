"""A current Kubernetes with containerd: the command lines of engine, kubelet and DRA driver."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.lab.layout import NODE, Layout, cache_dir
from tests.lab.modern import paths
from tests.lab.modern.build import CONTAINERD, bin_dir, build
from tests.lab.modern.containerd_engine import ContainerdLabEngine
from tests.lab.modern.files import write_files
from tests.lab.ports import Ports
from tests.lab.programs import Programs
from tests.lab.variant import Command, Variant


class Modern(Variant):
    """Kubernetes 1.35 with containerd 2."""

    name = "1.35"
    built = tuple(CONTAINERD.programs)
    optional = ("dra-driver",)

    def bin_dir(self) -> Path:
        return bin_dir(_cache())

    def build(self, say: Callable[[str], None]) -> None:
        build(_cache(), say)

    def engine(self, layout: Layout) -> ContainerdLabEngine:
        return ContainerdLabEngine(layout, self.bin_dir() / "ctr")

    def write_files(self, layout: Layout, ports: Ports, programs: Programs) -> None:
        write_files(layout, ports, programs)

    def commands(self, layout: Layout, ports: Ports, programs: Programs, gpu_ids: Sequence[str]) -> dict[str, Command]:
        return {
            "containerd": [programs["containerd"], f"--config={paths.containerd_config(layout)}"],
            "kubelet": [
                programs["kubelet"],
                f"--kubeconfig={layout.kubeconfig}",
                f"--config={paths.kubelet_config(layout)}",
                f"--config-dir={paths.kubelet_drop_ins(layout)}",
                f"--hostname-override={NODE}",
                f"--root-dir={layout.kubelet_root}",
                f"--cert-dir={layout.root / 'kubelet-certs'}",
            ],
            "dra-driver": _dra_driver(layout, gpu_ids),
        }

    def readiness(self, layout: Layout) -> dict[str, Callable[[], bool]]:
        return {"dra-driver": paths.devices_published(layout).exists}


def _cache() -> Path:
    return cache_dir() / "modern"


def _dra_driver(layout: Layout, gpu_ids: Sequence[str]) -> Command:
    return [
        sys.executable,
        "-m",
        "tests.lab.modern.dra_driver",
        f"--kubeconfig={layout.kubeconfig}",
        f"--registry={paths.plugin_registry(layout)}",
        f"--device-specs={paths.device_specs(layout)}",
        f"--node={NODE}",
        f"--notice={paths.devices_published(layout)}",
        *gpu_ids,
    ]
