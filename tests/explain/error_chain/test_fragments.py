"""Sentences that contain a known fragment but mean something else: the fragment alone must not decide."""

from __future__ import annotations

import pytest

from monitor.explain.error_chain.causes import MountFailureCause as M
from monitor.explain.error_chain.causes import PullFailureCause as P
from monitor.explain.error_chain.causes import SchedulingCause as C
from monitor.explain.error_chain.causes import StartFailureCause as S
from monitor.explain.error_chain.mounts import classify_mount
from monitor.explain.error_chain.pulls import classify_pull
from monitor.explain.error_chain.scheduling import main_reason, parse_scheduling
from monitor.explain.error_chain.starts import classify_start

IMAGE = "h.lab/a:1"
CODE = "rpc error: code = Unknown desc = "
PULLS = [
    (P.NOT_FOUND, f"[{CODE}manifest unknown, {CODE}unauthorized: authentication required]"),
    (P.NOT_FOUND, f"[{CODE}unauthorized: authentication required, {CODE}manifest unknown]"),
    (P.CONNECTION_BROKEN, "failed to read expected number of bytes: unexpected EOF"),
    (P.CORRUPT_LAYER, "failed to register layer: Error processing tar file(exit status 1): unexpected EOF"),
    (P.UNKNOWN, 'failed to extract layer sha256:aa: exec: "unpigz": executable file not found in $PATH'),
    (P.DNS, 'checking signature: Get "https://rekor.lab/": dial tcp: lookup rekor.lab: no such host'),
    (P.TIMEOUT, "verifying signatures: dial tcp 10.0.0.1:443: i/o timeout"),
    (P.SNAPSHOTTER, 'failed to prepare snapshot "x": write /var/lib/containerd-nydus/x: input/output error'),
    (P.REGISTRY_ERROR, "unexpected status code https://h.lab/v2/a/blobs/sha256:aa: 415 Unsupported Media Type"),
    (P.REGISTRY_ERROR, "unexpected status code https://h.lab/v2/a/manifests/1: 503: manifest invalid"),
    (P.UNKNOWN, "write /var/lib/docker/tmp/GetImageBlob1: invalid argument"),
    (P.UNKNOWN, "failed to register layer: Error processing tar file(exit status 1): operation not permitted"),
    (P.UNKNOWN, "failed to load image geoffrey"),
    (P.UNKNOWN, "readlink /opt/a: invalid argument"),
    (P.UNKNOWN, "cannot lookup label in index"),
    (P.UNKNOWN, "image pull failed for unknown error"),
    (P.UNKNOWN, "failed to load configuration: permission denied: unknown"),
    (P.UNKNOWN, "open /etc/containerd/config.toml: no such file or directory"),
    (P.TLS, "open /etc/docker/certs.d/h.lab/ca.crt: no such file or directory"),
    (P.DISK_FULL, "failed to register layer: open /etc/ssl/certs/ca.pem: no space left on device"),
    (P.UNAUTHORIZED, f"(Mirrors also failed: [m.lab/a:1: {CODE}status 500]): h.lab/a:1: requested access is denied"),
    (P.UNKNOWN, "image a/forbidden:1 is odd"),
]
STARTS = [
    (S.OTHER, "failed to create shim task: ttrpc: closed: unknown"),
    (S.OTHER, "failed to create shim task: failed to connect to the kata agent: timed out: unknown"),
    (S.OTHER, "error running hook #0: exit status 1, stdout: , stderr: own-hook: context deadline exceeded"),
    (S.OTHER, "dial unix /run/agent.sock: connect: resource temporarily unavailable"),
    (S.OTHER, "failed to create snapshot: dial unix /run/nydus/api.sock: connect: connection refused"),
    (
        S.TOOLKIT_BROKEN,
        "nvidia-container-cli: mount error: file creation failed: /run/x/rootfs/socket: no such device or address",
    ),
    (S.TOOLKIT_BROKEN, "nvidia-container-cli: mount error: open failed: /proc/driver/nvidia/x: permission denied"),
    (S.DRIVER_BROKEN, "nvidia-container-cli: initialization error: nvml error: gpu access blocked"),
    (S.RUNTIME_SLOW, 'name "nvidia-container-toolkit-daemonset-x" is reserved for "a"'),
    (S.OTHER, 'error mounting "/mnt/x" to rootfs at "/run/containerd/io/rootfs/x": input/output error: unknown'),
    (S.NODE_DISK, "open /var/lib/containerd/io.containerd.x/meta.db: input/output error"),
    (S.MOUNT_KIND, 'error mounting "/etc/selinux" to rootfs at "/x": mount /etc/selinux:/x: not a directory'),
    (S.NETWORK, 'plugin type="portmap" failed (add): exec: "iptables": executable file not found in $PATH'),
    (S.NETWORK, 'plugin type="bridge" failed (add): cannot list certificate directory'),
    (S.CGROUP, "rmdir /sys/fs/cgroup/memory/kubepods/x: device or resource busy"),
    (
        S.OTHER,
        'error mounting "/usr/lib/libcuda.so.1" to rootfs: stat /usr/lib/libcuda.so.1: no such file or directory',
    ),
    (S.HOST_PATH, 'invalid mount config for type "bind": bind source path does not exist: /data'),
    (S.HOST_PATH, 'failed to generate spec: failed to mkdir "/data/x": mkdir /data/x: read-only file system'),
    (S.OTHER, "failed to sync configmap cache: timed out waiting for the condition"),
    (S.OTHER, "stat /var/lib/kubelet/pods/1/etc-hosts: no such file or directory"),
    (S.MOUNT_SPEC, "Error response from daemon: Duplicate mount point: /data"),
    (S.OTHER, 'failed to create shim task: exec: "newuidmap": executable file not found in $PATH'),
    (S.OTHER, "failed to create pod network sandbox k8s_x: host ports already in use"),
    (S.OTHER, "failed to start shim: fork/exec /usr/bin/containerd-shim-runc-v2: cannot allocate memory"),
    (S.OTHER, "failed to mount rootfs component &{overlay overlay [workdir=/x]}: invalid argument: unknown"),
    (S.CGROUP, "container create failed: sd-bus call: Transport endpoint is not connected"),
    (S.RUNTIME_BROKEN, 'failed to start sandbox: exec: "containerd-shim-kata-v2": file does not exist'),
    (S.DRIVER_NOT_LOADED, "failed to generate CDI spec: failed to locate libcuda.so: not found"),
]
ATTACH = 'AttachVolume.Attach failed for volume "x" : '
MOUNT = 'MountVolume.SetUp failed for volume "x" : '
MOUNTS = [
    (
        M.ATTACH_FAILED,
        f"{ATTACH}Invalid value '/dev/xvdb' for unixDevice. Attachment point /dev/xvdb is already in use",
    ),
    (M.ATTACH_FAILED, f"{ATTACH}RequestLimitExceeded: Request limit exceeded."),
    (M.ATTACH_FAILED, f"{ATTACH}gave up after the maximum number of retries"),
    (M.ATTACH_LIMIT, f"{ATTACH}maximum number of volumes reached"),
    (M.UNKNOWN, f"{MOUNT}WARNING: Failed to connect to lvmetad. Falling back to device scanning."),
    (M.UNKNOWN, f"{MOUNT}rpc error: code = Internal desc = failed: 1 error occurred"),
    (M.UNKNOWN, f"{MOUNT}open /dev/rbd0: no such device"),
    (M.UNKNOWN, f"{MOUNT}dial unix /run/iscsid.sock: connect: connection refused"),
    (M.UNKNOWN, f'{MOUNT}Get "http://169.254.169.254/latest": connection refused'),
    (M.UNKNOWN, f"{MOUNT}failed to run fsck: /dev/rbd0 is in use"),
    (M.UNKNOWN, f"{MOUNT}Mounting arguments: -t nfs -o timeout=30 s:/x /y: mount.nfs: an incorrect mount option"),
    (M.UNKNOWN, f"{MOUNT}mount: special device /dev/sdb does not exist"),
    (M.UNKNOWN, f"{MOUNT}mount: special device /var/lib/kubelet/plugins/x/globalmount does not exist"),
    (M.UNKNOWN, f"{MOUNT}mount: /y: wrong fs type, bad option, bad superblock on /dev/rbd1, missing codepage"),
    (M.VOLUME_MISSING, f"{MOUNT}mount: special device /jfs/data does not exist"),
    (M.UNKNOWN, f'{MOUNT}{{"code":1,"stderr":"nsenter: cannot open /proc/1/ns/mnt","timeout":false}}'),
    (M.UNKNOWN, 'MountVolume.SetUp failed for volume "timeout-data" : unexpected reply'),
    (M.UNKNOWN, f"{MOUNT}failed to read mount table: open /proc/mounts: permission denied"),
    (M.UNKNOWN, f"{MOUNT}the driver says: permission denied"),
    (M.UNKNOWN, f"{MOUNT}rpc error: code = Unknown desc = lstat /csi/config: no such file or directory"),
    (M.HOST_PATH, f"{MOUNT}lstat /data: no such file or directory"),
    (M.UNKNOWN, f"{MOUNT}access denied: a: b: c: d: e: f"),
    (M.DRIVER_MISSING, f"{MOUNT}dial unix /var/lib/kubelet/plugins/nfs/csi.sock: connect: connection refused"),
]
SCHEDULING = [
    (C.OTHER, 'incompatible with provisioner "default", kubernetes.io/hostname In [hostname-placeholder-1]'),
    (C.OTHER, 'incompatible with nodepool "gang", no instance type has enough resources'),
    (C.OTHER, "timeout waiting for placeholder node"),
    (C.OTHER, "the workload is inactive"),
    (C.OTHER, "the job is stopped"),
    (C.QUEUE_CLOSED, "ClusterQueue gpu is inactive"),
    (C.DEVICE_CLAIM, "device class selector failed: CEL error"),
    (C.DEVICE_CLASS_MISSING, "device class gpu.nvidia.com does not exist"),
    (C.OTHER, 'running PreFilter plugin "Coscheduling": PodGroup not found'),
    (C.OTHER, "pod didn't trigger scale-up: 1 max node group size reached, 1 node(s) didn't match node affinity"),
    (C.OTHER, "requirements of the policy do not meet"),
    (C.OTHER, 'running Reserve plugin "DeviceShare": Insufficient Devices'),
    (C.OTHER, 'running PreBind plugin "DynamicResources": the pod is gone'),
    (C.OTHER, 'rejected by "coscheduling" at prefilter'),
    (C.GANG_INCOMPLETE, 'rejected by "coscheduling" at prefilter: less than minAvailable'),
    (C.SELECTOR, "0/9 nodes are available: 9 node(s) didn't match node selector, 4 Insufficient cpu."),
    (C.CPU, "0/9 nodes are available: 5 node(s) didn't match node selector, 4 Insufficient cpu."),
    (C.TAINT, "0/1 nodes are available: 1 node(s) had untolerated taint {pod: placeholder}."),
    (C.OTHER, 'extender: Post "https://hami:443/filter": context deadline exceeded'),
]


@pytest.mark.parametrize(("cause", "message"), PULLS)
def test_pulls(cause: P, message: str) -> None:
    assert classify_pull(f'Failed to pull image "{IMAGE}": {message}', IMAGE).cause is cause


@pytest.mark.parametrize(("cause", "message"), STARTS)
def test_starts(cause: S, message: str) -> None:
    assert classify_start(message).cause is cause


@pytest.mark.parametrize(("cause", "message"), MOUNTS)
def test_mounts(cause: M, message: str) -> None:
    assert classify_mount(message).cause is cause


@pytest.mark.parametrize(("cause", "message"), SCHEDULING)
def test_scheduling(cause: C, message: str) -> None:
    reason = main_reason(parse_scheduling(message))
    assert reason is not None
    assert reason.cause is cause
