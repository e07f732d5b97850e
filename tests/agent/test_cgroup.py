"""Owner of a process, for the cgroup names of every known runtime, driver and nesting."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.agent.cgroup import ContainerOwner, parse_owner, read_owner
from tests.agent.children import child

C1 = "2cc65c162ca1388b6b8d5ccfb701d22fc96675ccf8b2f1590c490c2c4039547f"
C2 = "65a1b6ad09655b3f1475ede1aa0061a97c0d1ada9f2b2acac959afbc92094463"
UID = "045b1e35-7f13-11e7-ac42-0050568ffca0"
UID_ = UID.replace("-", "_")
OUTER_ = "96dd7de3_0783_4613_a707_e0effc077ef5"
STATIC = "487a0dc6dccaeefbcfedba7a7ce1ca18"
BESTEFFORT = f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice"
KIND = "kubelet.slice/kubelet-kubepods.slice"

IN_A_POD = {
    "v1 cgroupfs": f"11:pids:/kubepods/besteffort/pod{UID}/{C1}",
    "v1 cgroupfs, guaranteed": f"4:memory:/kubepods/pod{UID}/{C1}",
    "v1 cgroupfs, cri-o": f"4:memory:/kubepods/burstable/pod{UID}/crio-{C1}",
    "v1 systemd, docker": f"3:pids:{BESTEFFORT}/docker-{C1}.scope",
    "v1 systemd, co-mounted": f"8:cpu,cpuacct:{BESTEFFORT}/docker-{C1}.scope",
    "v1 kubelet on systemd, containerd on cgroupfs": (
        f"11:pids:/system.slice/containerd.service/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{C1}"
    ),
    "v1 the same, other controllers": f"5:memory:/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{C1}",
    "v1 the same, cri-o": f"5:memory:/system.slice/crio.service/kubepods-pod{UID_}.slice:crio:{C1}",
    "v2 systemd, containerd": f"0::{BESTEFFORT}/cri-containerd-{C1}.scope",
    "v2 systemd, guaranteed": f"0::/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{C1}.scope",
    "v2 systemd, cri-o": f"0::{BESTEFFORT}/crio-{C1}.scope",
    "v2 systemd, cri-o with crun": f"0::{BESTEFFORT}/crio-{C1}.scope/container",
    "v2 cgroupfs (k3s, microk8s)": f"0::/kubepods/burstable/pod{UID}/{C1}",
    "v2 uid not escaped": f"0::/kubepods.slice/kubepods-pod{UID}.slice/docker-{C1}.scope",
    "uid in capitals": f"0::/kubepods/burstable/pod{UID.upper()}/{C1}",
    "foreign namespace, systemd": f"0::/../../kubepods-besteffort-pod{UID_}.slice/docker-{C1}.scope",
    "foreign namespace, cgroupfs": f"0::/../../pod{UID}/{C1}",
    "foreign namespace, other QoS": (
        f"0::/../../../kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/crio-{C1}.scope"
    ),
    "kind, from the host, v1": f"9:cpuset:/docker/{C2}/kubelet/kubepods/besteffort/pod{UID}/{C1}",
    "kind, from the host, v1 systemd": (
        f"9:cpuset:/docker/{C2}/kubelet/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{C1}.scope"
    ),
    "kind, from the host, v2": (
        f"0::/system.slice/docker-{C2}.scope/{KIND}/kubelet-kubepods-besteffort.slice/"
        f"kubelet-kubepods-besteffort-pod{UID_}.slice/cri-containerd-{C1}.scope"
    ),
    "kind, from inside": f"0::/{KIND}/kubelet-kubepods-pod{UID_}.slice/cri-containerd-{C1}.scope",
    "minikube, docker driver": f"2:memory:/docker/{C2}/kubepods/burstable/pod{UID}/{C1}",
    "k3s rootless": f"0::/user.slice/user-1000.slice/user@1000.service/k3s-rootless.service/kubepods/pod{UID}/{C1}",
    "a pod inside a pod: the inner one": (
        f"0::/kubepods.slice/kubepods-pod{OUTER_}.slice/cri-containerd-{C2}.scope/{KIND}/"
        f"kubelet-kubepods-pod{UID_}.slice/cri-containerd-{C1}.scope"
    ),
    "docker inside a pod: the pod's own container": f"4:memory:/kubepods/pod{UID}/{C1}/docker/{C2}",
    "systemd inside a container": f"0::{BESTEFFORT}/cri-containerd-{C1}.scope/system.slice/ssh.service",
    "a dead process in a removed cgroup": f"0::{BESTEFFORT}/cri-containerd-{C1}.scope (deleted)",
}

OTHERS = {
    "static pod": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{STATIC}.slice/crio-{C1}.scope",
        ContainerOwner(C1, STATIC),
    ),
    "static pod, cgroupfs": (f"3:pids:/kubepods/burstable/pod{STATIC}/{C1}", ContainerOwner(C1, STATIC)),
    "the pod's own cgroup": (f"0::{BESTEFFORT}", ContainerOwner(None, UID)),
    "the pod's own cgroup, removed": (f"0::{BESTEFFORT} (deleted)", ContainerOwner(None, UID)),
    "kata: a machine, not a container": (f"0::/kubepods/pod{UID}/kata_{C1}", ContainerOwner(None, UID)),
    "cri-o's watcher, in the pod": (f"0::{BESTEFFORT}/crio-conmon-{C1}.scope", ContainerOwner(None, UID)),
    "cri-o's watcher, cgroupfs": (f"0::/kubepods/pod{UID}/crio-conmon-{C1}", ContainerOwner(None, UID)),
    "cri-o's watcher, outside": (f"0::/system.slice/crio-conmon-{C1}.scope", ContainerOwner(None, None)),
    "same pod, seen from its other container": (f"0::/../cri-containerd-{C1}.scope", ContainerOwner(C1, None)),
    "docker": (f"12:pids:/docker/{C1}", ContainerOwner(C1, None)),
    "docker, systemd": (f"0::/system.slice/docker-{C1}.scope", ContainerOwner(C1, None)),
    "docker, cgroup parent": (f"12:pids:/batch/jobs/{C1}", ContainerOwner(C1, None)),
    "docker, foreign namespace": (f"0::/../{C1}", ContainerOwner(C1, None)),
    "docker in docker: the node's own container": (f"12:pids:/docker/{C1}/docker/{C2}", ContainerOwner(C1, None)),
    "nerdctl": (f"0::/default/{C1}", ContainerOwner(C1, None)),
    "nerdctl, systemd": (f"0::/system.slice/nerdctl-{C1}.scope", ContainerOwner(C1, None)),
    "containerd without a pod": (f"5:memory:/k8s.io/{C1}", ContainerOwner(C1, None)),
    "podman": (f"0::/machine.slice/libpod-{C1}.scope/container", ContainerOwner(C1, None)),
    "podman, rootless": (
        f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{C1}.scope/container",
        ContainerOwner(C1, None),
    ),
    "podman, cgroupfs": (f"13:pids:/libpod_parent/libpod-{C1}", ContainerOwner(C1, None)),
    "podman pod": (f"0::/machine.slice/machine-libpod_pod_{C2}.slice/libpod-{C1}.scope", ContainerOwner(C1, None)),
    "podman pod, cgroupfs": (f"13:pids:/libpod_parent/{C2}/libpod-{C1}", ContainerOwner(C1, None)),
    "podman's watcher": (f"0::/machine.slice/libpod-conmon-{C1}.scope", ContainerOwner(None, None)),
    "init": ("0::/init.scope", ContainerOwner(None, None)),
    "root": ("0::/", ContainerOwner(None, None)),
    "login": ("0::/user.slice/user-0.slice/session-1.scope", ContainerOwner(None, None)),
    "systemd-run": ("0::/system.slice/run-r0c1f6d3f5f3f4b6db8e5a2b7a5d6c7e8.scope", ContainerOwner(None, None)),
    "kubelet itself": ("0::/system.slice/kubelet.service", ContainerOwner(None, None)),
    "slurm": ("4:memory:/slurm/uid_1000/job_77/step_0/task_0", ContainerOwner(None, None)),
    "lxc": ("0::/lxc.payload.train/init.scope", ContainerOwner(None, None)),
    "kubepods without a pod": ("0::/kubepods.slice/kubepods-burstable.slice", ContainerOwner(None, None)),
    "a pod's uid cut short": ("0::/kubepods/pod045b1e35-7f13", ContainerOwner(None, None)),
    "32 hex, but dashes elsewhere": (f"0::/kubepods/pod{UID[::-1]}", ContainerOwner(None, None)),
    "someone's slice that ends like a pod's": (f"0::/lab-pod{UID_}.slice", ContainerOwner(None, None)),
    "63 digits are no id": (f"0::/docker/{C1[:-1]}", ContainerOwner(None, None)),
    "65 digits are no id": (f"0::/docker/{C1}0", ContainerOwner(None, None)),
    "64 letters are no id": (f"0::/docker/{'x' * 64}", ContainerOwner(None, None)),
    "nothing": ("", ContainerOwner(None, None)),
}


@pytest.mark.parametrize("line", IN_A_POD.values(), ids=IN_A_POD)
def test_container_of_a_pod(line: str) -> None:
    assert parse_owner(line + "\n") == ContainerOwner(C1, UID)


@pytest.mark.parametrize(("line", "owner"), OTHERS.values(), ids=OTHERS)
def test_other_cgroups(line: str, owner: ContainerOwner) -> None:
    assert parse_owner(line + "\n") == owner


@pytest.mark.parametrize(
    ("lines", "owner"),
    [
        pytest.param(
            ["12:devices:/", "11:rdma:/", f"10:pids:/kubepods/pod{UID}/{C1}", "1:name=systemd:/", "0::/"],
            ContainerOwner(C1, UID),
            id="most controllers at the root",
        ),
        pytest.param(
            [f"5:cpu:/docker/{C2}", f"4:memory:/kubepods/pod{UID}/{C1}"],
            ContainerOwner(C1, UID),
            id="one names a container, a later one the pod too",
        ),
        pytest.param(
            [f"5:cpu:/kubepods/pod{UID}", f"4:memory:/kubepods/pod{UID}/{C1}"],
            ContainerOwner(C1, UID),
            id="one names the pod, a later one the container too",
        ),
        pytest.param(
            [f"5:cpu:/kubepods/pod{UID}", f"4:memory:/docker/{C2}"],
            ContainerOwner(None, UID),
            id="two that disagree: the pod",
        ),
        pytest.param(
            [f"5:cpu:/docker/{C2}", f"4:memory:/kubepods/pod{UID}", "0::/init.scope"],
            ContainerOwner(None, UID),
            id="two that disagree, the other way round",
        ),
        pytest.param(
            ["9:name=systemd:/init.scope", f"5:cpu:/docker/{C1}", "4:memory:/user.slice"],
            ContainerOwner(C1, None),
            id="a container on one line only",
        ),
        pytest.param(
            ["0::/a\x0bb\u2028c", f"5:cpu:/docker/{C1}"], ContainerOwner(C1, None), id="odd characters in a name"
        ),
    ],
)
def test_of_many_lines_the_best_counts(lines: list[str], owner: ContainerOwner) -> None:
    assert parse_owner("\n".join(lines)) == owner


PIECES = st.sampled_from(
    ["/", ":", "\n", "0::", "pod", "-pod", "kubepods", ".slice", ".scope", "..", " (deleted)", UID, UID_, STATIC, C1]
)


@given(st.text() | st.lists(PIECES | st.text(max_size=3)).map("".join))
def test_no_text_is_refused(text: str) -> None:
    owner = parse_owner(text)
    assert owner.container_id is None or len(owner.container_id) == 64
    assert owner.pod_uid is None or len(owner.pod_uid) in (32, 36)


def test_of_a_real_process() -> None:
    with child() as pid:
        assert read_owner("/proc", pid) is not None
    assert read_owner("/proc", pid) is None, "gone"


def test_what_is_no_text_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_bytes(b"0::/\xff\xfe/docker/" + C1.encode() + b"\n")
    assert read_owner(str(tmp_path), 7) == ContainerOwner(C1, None)
