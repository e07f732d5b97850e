"""Kubernetes 1.20 with Docker: its build and the command lines and files of engine and kubelet."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType

from tests.lab.images import PAUSE_IMAGE
from tests.lab.layout import LOOPBACK, NODE, Layout, cache_dir
from tests.lab.ports import Ports
from tests.lab.programs import Programs
from tests.lab.v1_20 import paths
from tests.lab.v1_20.build import build_kubernetes
from tests.lab.v1_20.docker_engine import DockerLabEngine
from tests.lab.variant import Command, Variant

# A VM or container may forbid the negative values that pod sandboxes request, and the sandboxes would never start.
RUNTIME = """\
#!/bin/sh
previous=
for argument in "$@"; do
  case $previous in
    --bundle) file=$argument/config.json ;;
    --process) file=$argument ;;
    *) file= ;;
  esac
  [ -z "$file" ] || sed -i -E 's/"oomScoreAdj":-[0-9]+/"oomScoreAdj":0/' "$file"
  previous=$argument
done
exec {runc} "$@"
"""


class Docker120(Variant):
    """Kubernetes 1.20 with Docker 20.10."""

    name = "1.20"
    cron_jobs = "batch/v1beta1"
    system = MappingProxyType({"containerd": "containerd", "dockerd": "docker.io"})

    def bin_dir(self) -> Path:
        return cache_dir() / "bin"

    def build(self, say: Callable[[str], None]) -> None:
        build_kubernetes(cache_dir(), say)

    def engine(self, layout: Layout) -> DockerLabEngine:
        return DockerLabEngine(layout)

    def write_files(self, layout: Layout, ports: Ports, programs: Programs) -> None:
        runtime = paths.runtime(layout)
        runtime.write_text(RUNTIME.format(runc=programs["runc"]))
        runtime.chmod(0o755)
        # There is no option for the key's directory; without this variable it goes to /etc.
        key = {"deprecated-key-path": str(layout.root / "docker-key.json")}
        paths.docker_config(layout).write_text(json.dumps(key))

    def commands(self, layout: Layout, ports: Ports, programs: Programs, gpu_ids: Sequence[str]) -> dict[str, Command]:
        return {"dockerd": _dockerd(layout, ports, programs), "kubelet": _kubelet(layout, ports, programs)}

    def options(self, component: str) -> Command:
        return ["--port=0"] if component in ("scheduler", "controller-manager") else []


def _dockerd(layout: Layout, ports: Ports, programs: Programs) -> list[str]:
    return [
        programs["dockerd"],
        f"--host=unix://{paths.docker_socket(layout)}",
        f"--config-file={paths.docker_config(layout)}",
        f"--data-root={paths.docker_root(layout)}",
        f"--exec-root={paths.docker_exec(layout)}",
        f"--pidfile={layout.root / 'docker.pid'}",
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
        "--ip-forward=false",
        "--oom-score-adjust=0",
        "--shutdown-timeout=5",
        f"--insecure-registry={LOOPBACK}:{ports.registry}",
        f"--add-runtime=lab={paths.runtime(layout)}",
        "--default-runtime=lab",
    ]


def _kubelet(layout: Layout, ports: Ports, programs: Programs) -> list[str]:
    return [
        programs["kubelet"],
        f"--kubeconfig={layout.kubeconfig}",
        f"--hostname-override={NODE}",
        "--container-runtime=docker",
        f"--container-runtime-endpoint=unix://{layout.root / 'dockershim.sock'}",
        f"--docker-endpoint=unix://{paths.docker_socket(layout)}",
        f"--docker=unix://{paths.docker_socket(layout)}",
        f"--containerd={paths.docker_exec(layout) / 'containerd' / 'containerd.sock'}",
        f"--pod-infra-container-image={PAUSE_IMAGE}",
        f"--root-dir={layout.kubelet_root}",
        f"--cert-dir={layout.root / 'kubelet-certs'}",
        f"--experimental-dockershim-root-directory={layout.root / 'dockershim'}",
        f"--volume-plugin-dir={layout.root / 'volume-plugins'}",
        f"--address={LOOPBACK}",
        f"--port={ports.kubelet}",
        "--healthz-port=0",
        "--read-only-port=0",
        "--cgroup-driver=cgroupfs",
        "--enforce-node-allocatable=",
        "--fail-swap-on=false",
        "--oom-score-adj=0",
        "--resolv-conf=",
        # Ignore this machine's own disk and firewall.
        "--eviction-hard=",
        "--image-gc-high-threshold=100",
        "--make-iptables-util-chains=false",
        "--hairpin-mode=none",
        # Makes the GPUs appear in the node status soon after the device plugin registers.
        "--node-status-update-frequency=2s",
    ]
