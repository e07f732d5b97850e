"""Configuration files of containerd and the kubelet."""

from __future__ import annotations

import json
from typing import Any

from tests.lab.images import PAUSE_IMAGE
from tests.lab.layout import LOOPBACK, Layout
from tests.lab.modern import paths
from tests.lab.ports import Ports
from tests.lab.programs import Programs

# A VM or container may forbid the negative scores that pod sandboxes request: restrict_oom_score_adj.
CONTAINERD = """\
version = 3
root = "{root}"
state = "{state}"

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{root}/opt"

[plugins."io.containerd.nri.v1.nri"]
disable = true

[plugins."io.containerd.cri.v1.images"]
stats_collect_period = 1
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause}"
[plugins."io.containerd.cri.v1.images".registry]
config_path = "{hosts}"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
cdi_spec_dirs = ["{devices}"]
[plugins."io.containerd.cri.v1.runtime".cni]
conf_dir = "{network}"
bin_dirs = ["{network}"]
use_internal_loopback = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = "{shim}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runc}"
Root = "{state}/runc"
"""
# Without a network the node would not be ready. Pods of the lab use that of the host, so no plugin is ever called.
NETWORK = {"cniVersion": "1.0.0", "name": "lab", "plugins": [{"type": "none"}]}
NO_EVICTION = dict.fromkeys(
    ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"), "0%"
)

KUBELET_API = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
# Figures of no effect here that differ from the main file.
DROP_IN = {"imageGCLowThresholdPercent": 96, "evictionHard": NO_EVICTION | {"imagefs.available": "2Mi"}}


def write_files(layout: Layout, ports: Ports, programs: Programs) -> None:
    """Write the configuration of containerd and the kubelet."""
    for directory in (
        paths.registry_hosts(layout),
        paths.network_config(layout),
        paths.device_specs(layout),
        paths.kubelet_drop_ins(layout),
    ):
        directory.mkdir()
    (paths.network_config(layout) / "lab.conflist").write_text(json.dumps(NETWORK))
    config = CONTAINERD.format(
        root=paths.containerd_root(layout),
        state=paths.containerd_state(layout),
        socket=paths.containerd_socket(layout),
        hosts=paths.registry_hosts(layout),
        network=paths.network_config(layout),
        devices=paths.device_specs(layout),
        pause=PAUSE_IMAGE,
        shim=programs["containerd-shim-runc-v2"],
        runc=programs["runc"],
    )
    paths.containerd_config(layout).write_text(config)
    paths.kubelet_config(layout).write_text(json.dumps(kubelet_config(layout, ports), indent=2))
    (paths.kubelet_drop_ins(layout) / "50-images.conf").write_text(json.dumps(KUBELET_API | DROP_IN, indent=2))


def kubelet_config(layout: Layout, ports: Ports) -> dict[str, Any]:
    """Configuration of the kubelet, as JSON, which is YAML too."""
    return {
        **KUBELET_API,
        "address": LOOPBACK,
        "port": ports.kubelet,
        "healthzPort": 0,
        "readOnlyPort": 0,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{paths.containerd_socket(layout)}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": ["none"],
        "oomScoreAdj": 0,
        "resolvConf": "",
        "podLogsDir": str(layout.root / "pod-logs"),
        "volumePluginDir": str(layout.root / "volume-plugins"),
        # Otherwise a preloaded image that shares its id with a pulled one is pulled again.
        "imagePullCredentialsVerificationPolicy": "NeverVerify",
        # Ignore this machine's own disk and firewall.
        "evictionHard": NO_EVICTION,
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "hairpinMode": "none",
        # Makes the GPUs appear in the node status soon after the device plugin registers.
        "nodeStatusUpdateFrequency": "2s",
    }
