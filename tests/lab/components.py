"""Command lines of the lab's components, from paths and ports."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.lab.layout import GPU_RESOURCE, KUBELET_SOCKET, LOOPBACK, PLUGIN_SOCKET, Layout
from tests.lab.ports import Ports
from tests.lab.programs import Programs
from tests.lab.variant import Variant

DEAD_PROXY = f"http://{LOOPBACK}:1"
# Variables of container engines. Their proxy does not exist; loopback addresses do not use it.
ENGINE_ENVIRONMENT = {"HTTP_PROXY": DEAD_PROXY, "HTTPS_PROXY": DEAD_PROXY, "NO_PROXY": ".invalid,.test"}
# Components that start containers or react to others stopping: stopped first.
FIRST_TO_STOP = ("dra-driver", "device-plugin", "kubelet", "scheduler", "controller-manager")


def command_lines(
    variant: Variant, layout: Layout, ports: Ports, programs: Programs, gpu_ids: Sequence[str]
) -> dict[str, list[str]]:
    """Command line of every component, by name."""
    lines = {
        "etcd": _etcd(layout, ports, programs),
        "registry": [programs["docker-registry"], "serve", str(layout.registry_config)],
        "apiserver": _apiserver(layout, ports, programs),
        "scheduler": _scheduler(layout, ports, programs),
        "controller-manager": _controller_manager(layout, ports, programs),
        "device-plugin": _device_plugin(layout, gpu_ids),
    }
    shared = {name: [*line, *variant.options(name)] for name, line in lines.items()}
    return shared | variant.commands(layout, ports, programs, gpu_ids)


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
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports.scheduler}",
    ]


def _controller_manager(layout: Layout, ports: Ports, programs: Programs) -> list[str]:
    return [
        programs["kube-controller-manager"],
        f"--kubeconfig={layout.kubeconfig}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports.controller_manager}",
        f"--service-account-private-key-file={layout.service_account_key}",
        f"--root-ca-file={layout.ca}",  # published in every namespace for pods that call the API server
    ]


def _device_plugin(layout: Layout, gpu_ids: Sequence[str]) -> list[str]:
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
