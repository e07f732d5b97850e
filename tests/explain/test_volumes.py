# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.error_chain.causes import MountFailureCause
from monitor.explain.keys import Key
from monitor.explain.volumes import classify
from monitor.facts.kube import PodVolumeFact
from tests.explain.builders import Case, check, event, names, node, pod, waiting

M = MountFailureCause
NFS = (
    'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32\nMounting command: mount\n'
    "Mounting arguments: -t nfs nas:/export/data /var/lib/kubelet/pods/c9/volumes/kubernetes.io~nfs/data\nOutput: "
)
TIMED_OUT = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[token data]: timed out waiting for the condition"
DENIED = NFS + "mount.nfs: access denied by server while mounting nas:/export/data"

MESSAGES: list[tuple[str, MountFailureCause, str]] = [
    ("denied", M.ACCESS_DENIED, DENIED),
    ("denied, under systemd-run", M.ACCESS_DENIED, NFS + "Running scope as unit run-20707.scope.\nmount.nfs: access denied by server while mounting nas:/x"),
    ("no such export", M.NO_SUCH_EXPORT, NFS + "mount.nfs: mounting nas:/export/data failed, reason given by server: No such file or directory"),
    ("no helper", M.HELPER_MISSING, NFS + "mount: wrong fs type, bad option, bad superblock on nas:/export/data, missing codepage or helper program, or other error (for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program)"),
    ("server down", M.NFS_UNREACHABLE, NFS + "mount.nfs: Connection timed out"),
    ("server refuses", M.NFS_REFUSED, NFS + "mount.nfs: Connection refused"),
    ("server unknown", M.NFS_UNREACHABLE, NFS + "mount.nfs: Failed to resolve server nas: Name or service not known"),
    ("stale", M.STALE, 'MountVolume.SetUp failed for volume "data" : stat /var/lib/kubelet/pods/c9/volumes: stale NFS file handle'),
    ("FUSE is gone", M.STALE, 'MountVolume.SetUp failed for volume "data" : transport endpoint is not connected'),
    ("two nodes", M.MULTI_ATTACH, 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) bert-1'),
    ("claim", M.CLAIM_MISSING, 'error processing PVC team-a/data: failed to fetch PVC from API server: persistentvolumeclaim "data" not found'),
    ("secret", M.SECRET_MISSING, 'MountVolume.SetUp failed for volume "cert" : secret "tls-cert" not found'),
    ("config map", M.CONFIG_MISSING, 'MountVolume.SetUp failed for volume "conf" : configmap "train-conf" not found'),
    ("key", M.KEY_MISSING, 'MountVolume.SetUp failed for volume "conf" : references non-existent config key: train.yaml'),
    ("host path", M.HOST_PATH, 'MountVolume.SetUp failed for volume "data" : hostPath type check failed: /mnt/data is not a directory'),
    ("driver", M.DRIVER_MISSING, 'MountVolume.MountDevice failed for volume "pvc-1" : kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: driver name nas.csi.lab not found in the list of registered CSI drivers'),
    ("disk full", M.DISK_FULL, 'MountVolume.SetUp failed for volume "conf" : write /var/lib/kubelet/pods/1/x: no space left on device'),
    ("broken", M.BAD_FILESYSTEM, 'MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = Internal desc = \'fsck\' found errors on device /dev/rbd3 but could not correct them: fsck from util-linux 2.37.2'),
    ("guesses of mount", M.UNKNOWN, 'MountVolume.MountDevice failed for volume "pvc-1" : mount: /x: wrong fs type, bad option, bad superblock on /dev/sdb1, missing codepage or helper program, or other error.'),
    ("rights", M.PERMISSION, 'MountVolume.SetUp failed for volume "data" : mkdir /nas/x: permission denied'),
    ("time out", M.TIMED_OUT, TIMED_OUT),
    ("attach", M.ATTACH_FAILED, 'AttachVolume.Attach failed for volume "pvc-1" : rpc error: code = DeadlineExceeded desc = context deadline exceeded'),
    ("storage refuses its key", M.STORAGE_DENIED, 'MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = Internal desc = an error (exit status 32) occurred while running mount args: [-t ceph] stderr: mount error 13 = Permission denied'),
    ("storage does not answer", M.UNREACHABLE, 'MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = Internal desc = mount failed: exit status 5\nOutput: mount.lustre: mount 10.0.0.6@tcp:/lfs at /x failed: Input/output error\nIs the MGS running?'),
    ("no such bucket", M.VOLUME_MISSING, 'MountVolume.SetUp failed for volume "data" : rpc error: code = NotFound desc = NoSuchBucket: The specified bucket does not exist'),
    ("too many volumes", M.ATTACH_LIMIT, 'AttachVolume.Attach failed for volume "pvc-1" : rpc error: code = Internal desc = AttachmentLimitExceeded: The maximum number of attachments'),
    ("subPath", M.SUBPATH, 'failed to prepare subPath for volumeMount "data" of container "main"'),
    ("something new", M.UNKNOWN, 'MountVolume.SetUp failed for volume "data" : the moon is full'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expect", "message"), MESSAGES, ids=[m[0] for m in MESSAGES])
def test_cause(name: str, expect: MountFailureCause, message: str) -> None:
    assert classify(message).cause is expect


def test_every_cause_has_a_message_and_its_sentences() -> None:
    assert {expect for _, expect, _ in MESSAGES} == set(MountFailureCause)
    assert {f"MOUNT_{c.name}{end}" for c in MountFailureCause for end in ("", "_ADVICE")} <= set(Key.__members__)


@given(st.text())
def test_no_message_breaks_it(message: str) -> None:
    assert classify(message).cause in MountFailureCause


CREATING = pod(
    node="gpu-01",
    statuses=(waiting("ContainerCreating"),),
    volumes=(PodVolumeFact(name="data", kind="nfs", server="nas", path="/export/data"),),
)
HERE = {"nodes": [node("gpu-01")]}
CASES = [
    Case(
        "denied: the general one that follows does not hide it",
        CREATING,
        "mount-access-denied",
        says=("The file server does not let gpu-01 mount nas:/export/data.", "exportfs -v"),
        facts=HERE | {"events": [event("FailedMount", DENIED, ago=120, count=9), event("FailedMount", TIMED_OUT, ago=10)]},
    ),
    Case(
        "only the general one",
        CREATING,
        "mount-timed-out",
        says=("Volume data was not mounted on gpu-01 in time",),
        facts=HERE | {"events": [event("FailedMount", TIMED_OUT)]},
    ),
    Case(
        "the source comes from the pod where the message has none",
        CREATING,
        "mount-nfs-unreachable",
        says=("gpu-01 cannot reach the NFS server of nas:/export/data.",),
        facts=HERE | {"events": [event("FailedMount", NFS + "mount.nfs: Connection timed out")]},
    ),
    Case(
        "a missing config map is named",
        CREATING,
        "mount-config-missing",
        says=("The ConfigMap train-conf that it mounts does not exist in team-a.",),
        facts=HERE | {"events": [event("FailedMount", 'MountVolume.SetUp failed for volume "conf" : configmap "train-conf" not found')]},
    ),
    Case(
        "what was mounted in the end is no reason any more",
        CREATING,
        "pulling",
        status="pulling",
        facts=HERE | {"events": [event("FailedMount", DENIED, ago=120), event("Pulling", 'Pulling image "x"', ago=60)]},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_not_mounted(case: Case) -> None:
    check(case, "creating")
