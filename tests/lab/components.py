"""Command lines of the lab's components, from paths and ports."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tests.lab.layout import GPU_RESOURCE, KUBELET_SOCKET, NODE, PLUGIN_SOCKET, Layout
from tests.lab.ports import Ports
from tests.lab.programs import Programs

LOOPBACK = "127.0.0.1"
PAUSE_IMAGE = "local/pause:1"
DEAD_PROXY = f"http://{LOOPBACK}:1"
# Components that start containers or react to others stopping: stopped first.
FIRST_TO_STOP = ("device-plugin", "kubelet", "scheduler", "controller-manager")


def command_lines(layout: Layout, ports: Ports, programs: Programs, gpu_ids: Iterable[str]) -> dict[str, list[str]]:
    """Command line of every component, by name."""
    return {
        "etcd": _etcd(layout, ports, programs),
        "dockerd": _dockerd(layout, ports, programs),
        "registry": [programs["docker-registry"], "serve", str(layout.registry_config)],
        "apiserver": _apiserver(layout, ports, programs),
        "scheduler": _scheduler(layout, ports, programs),
        "controller-manager": _controller_manager(layout, ports, programs),
        "kubelet": _kubelet(layout, ports, programs),
        "device-plugin": _device_plugin(layout, gpu_ids),
    }


def _etcd(layout: Layout, ports: Ports, programs: Programs) -> list[str]:
    client, peer = f"http://{LOOPBACK}:{ports.etcd}", f"http://{LOOPBACK}:{ports.etcd_peer}"
    return [
        programs["etcd"],
        f"--data-dir={layout.root / 'etcd'}",
        "--unsafe-no-fsync=true",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]


def environments() -> dict[str, dict[str, str]]:
    """Variables of single components. The engine's proxy does not exist; loopback addresses do not use it."""
    return {"dockerd": {"HTTP_PROXY": DEAD_PROXY, "HTTPS_PROXY": DEAD_PROXY, "NO_PROXY": ".invalid,.test"}}


def _dockerd(layout: Layout, ports: Ports, programs: Programs) -> list[str]:
    return [
        programs["dockerd"],
        f"--host=unix://{layout.docker_socket}",
        f"--config-file={layout.docker_config}",
        f"--data-root={layout.root / 'docker'}",
        f"--exec-root={layout.docker_exec}",
        f"--pidfile={layout.root / 'docker.pid'}",
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
        "--ip-forward=false",
        "--oom-score-adjust=0",
        "--shutdown-timeout=5",
        f"--insecure-registry={LOOPBACK}:{ports.registry}",
        f"--add-runtime=lab={layout.runtime}",
        "--default-runtime=lab",
    ]


def _apiserver(layout: Layout, ports: Ports, programs: Programs) -> list[str]:
    return [
        programs["kube-apiserver"],
        f"--etcd-servers=http://{LOOPBACK}:{ports.etcd}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        # The Service `kubernetes` cannot point at loopback, and the lab does not use it.
        "--endpoint-reconciler-type=none",
        f"--secure-port={ports.apiserver}",
        f"--cert-dir={layout.ca.parent}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.service_account_key}",
        f"--service-account-signing-key-file={layout.service_account_key}",
        f"--token-auth-file={layout.tokens}",
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-maxsize=20",  # MB, of each of two files
        "--audit-log-maxbackup=1",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        # Pods need no token here and would otherwise wait for one.
        "--disable-admission-plugins=ServiceAccount",
    ]


def _scheduler(layout: Layout, ports: Ports, programs: Programs) -> list[str]:
    return [
        programs["kube-scheduler"],
        f"--kubeconfig={layout.kubeconfig}",
        "--leader-elect=false",
        "--port=0",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports.scheduler}",
    ]


def _controller_manager(layout: Layout, ports: Ports, programs: Programs) -> list[str]:
    return [
        programs["kube-controller-manager"],
        f"--kubeconfig={layout.kubeconfig}",
        "--leader-elect=false",
        "--port=0",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports.controller_manager}",
        f"--service-account-private-key-file={layout.service_account_key}",
        f"--root-ca-file={layout.ca}",  # published in every namespace for pods that call the API server
    ]


def _kubelet(layout: Layout, ports: Ports, programs: Programs) -> list[str]:
    return [
        programs["kubelet"],
        f"--kubeconfig={layout.kubeconfig}",
        f"--hostname-override={NODE}",
        "--container-runtime=docker",
        f"--container-runtime-endpoint=unix://{layout.root / 'dockershim.sock'}",
        f"--docker-endpoint=unix://{layout.docker_socket}",
        f"--docker=unix://{layout.docker_socket}",
        f"--containerd={layout.docker_exec / 'containerd' / 'containerd.sock'}",
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


def _device_plugin(layout: Layout, gpu_ids: Iterable[str]) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tests.lab.device_plugin",
        f"--kubelet-socket={KUBELET_SOCKET}",
        f"--socket={PLUGIN_SOCKET}",
        f"--resource={GPU_RESOURCE}",
        f"--notice={layout.registration}",
        *gpu_ids,
    ]
