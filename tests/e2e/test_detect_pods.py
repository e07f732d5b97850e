"""Pods that fail to start, to stay or to terminate in a real cluster: each has the right cause."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client.exceptions import NotFoundException

from monitor.detect.base import Limits
from monitor.detect.rules import pod_stuck_terminating
from monitor.probes.runner import ServiceTarget
from tests.e2e.detecting import (
    Looker,
    host_alias,
    looking,
    probing,
    push_new_image,
    second_registry,
)
from tests.lab.lab import Lab
from tests.support import wait_until
from tests.support.filesystems import ext4_disk, fill

DETECTION_SECONDS = 60.0  # from the first failure to the finding
FINALIZER = "lab.test/keep"
NAME = "plain-registry.test"
LIMITS = {"pod-stuck-terminating": Limits(pod_stuck_terminating.Limits(overdue=3.0))}


@pytest.fixture(scope="module")
def looker(lab: Lab) -> Iterator[Looker]:
    with looking(lab.kubeconfig, limits=LIMITS) as looker:
        yield looker


def expect_failed_pull(looker: Looker, pod: Any, cause: str) -> None:
    """Expect the finding soon after the first failure reported by the kubelet."""
    finding = looker.expect("image-pull", cause, 40, pod=pod.metadata.name)
    seen = time.time()
    assert finding.since is not None
    assert seen - finding.since < DETECTION_SECONDS, f"{seen - finding.since:.1f} s after the first failure"
    assert finding.labels["image"] == pod.spec.containers[0].image
    assert finding.labels["node"] == "gpu-01"
    assert finding.raw
    assert finding.explained_by is None


def stopped(lab: Lab, undo: ExitStack, _directory: Path) -> str:
    image = lab.push_image("team/stopped:1")
    lab.stop_registry()
    undo.callback(lab.start_registry)
    return image


def wrong_tag(lab: Lab, _undo: ExitStack, _directory: Path) -> str:
    return lab.push_image("team/train:1").removesuffix(":1") + ":no-such-tag"


def no_login(_lab: Lab, undo: ExitStack, directory: Path) -> str:
    port = undo.enter_context(second_registry(directory, "127.0.0.1", login=True))
    return f"127.0.0.1:{port}/team/secret:1"


def no_such_host(_lab: Lab, _undo: ExitStack, _directory: Path) -> str:
    return "no-such-registry.invalid/team/train:1"


def without_tls(lab: Lab, undo: ExitStack, directory: Path) -> str:
    """The engine accepts registries without TLS in 127.0.0.0/8, also by another name, but not on ::1."""
    port = undo.enter_context(second_registry(directory, "::1"))
    undo.enter_context(host_alias(NAME, "::1"))
    image = f"{NAME}:{port}/team/train:1"
    wait_until(lambda: "no such host" not in lab.engine.pull_error(image), 15, "the engine has read the new name")
    return image


def no_room(lab: Lab, undo: ExitStack, _directory: Path) -> str:
    """The engine's download directory is on a full disk of its own."""
    image = push_new_image(lab, "team/large:1", megabytes=8)
    downloads = lab.engine.downloads
    undo.callback(downloads.with_name(f"{downloads.name}.img").unlink)
    fill(undo.enter_context(ext4_disk(downloads.parent, downloads.name, megabytes=4, inodes=64)))
    return image


@pytest.mark.parametrize(
    ("cause", "image_of"),
    [
        ("connection-refused", stopped),
        ("not-found", wrong_tag),
        ("unauthorized", no_login),
        ("dns", no_such_host),
        ("plain-http", without_tls),
        ("disk-full", no_room),
    ],
)
def test_a_failed_pull_has_its_cause_soon(
    lab: Lab, looker: Looker, pods: list[Any], undo: ExitStack, tmp_path: Path, cause: str, image_of: Any
) -> None:
    image = image_of(lab, undo, tmp_path)
    pods.append(lab.run_pod(f"pull-{cause}", image=image, phase=None))
    expect_failed_pull(looker, pods[0], cause)


def test_a_stopped_registry_is_one_finding_however_many_pods_wait(
    lab: Lab, looker: Looker, pods: list[Any], undo: ExitStack
) -> None:
    images = [lab.push_image(f"team/one-of-five:{number}") for number in range(5)]
    lab.stop_registry()
    undo.callback(lab.start_registry)
    pods += [lab.run_pod(f"waits-{n}", image=image, phase=None) for n, image in enumerate(images)]
    names = {pod.metadata.name for pod in pods}
    wait_until(lambda: {each.labels["pod"] for each in looker.finds("image-pull")} == names, 40, "all five fail")
    (registry,) = looker.finds("registry-unreachable")
    assert (registry.cause, registry.labels) == ("node-cannot-connect", {"node": "gpu-01"})
    assert {each.explained_by for each in looker.finds("image-pull")} == {registry.key}

    # With a daemon probe that fails too, the registry is named, still only once.
    with probing(looker, ServiceTarget(name="registry", kind="registry", url=f"http://{lab.registry}")):
        (registry,) = looker.finds("registry-unreachable")
        assert (registry.cause, registry.labels) == ("registry-down", {"service": lab.registry})
        assert {each.explained_by for each in looker.finds("image-pull")} == {registry.key}


def test_a_pod_that_a_finalizer_keeps_is_stuck(lab: Lab, looker: Looker, pods: list[Any], undo: ExitStack) -> None:
    pod = lab.run_pod("kept")
    pods.append(pod)
    keep(lab, pod, [FINALIZER])
    undo.callback(let_go, lab, pod)
    lab.cluster.core.delete_namespaced_pod(pod.metadata.name, pod.metadata.namespace, _request_timeout=60)
    finding = looker.expect("pod-stuck-terminating", "finalizer", 30, pod="kept")
    assert any(FINALIZER in str(value) for note in finding.evidence for value in note.values.values())
    let_go(lab, pod)
    looker.expect_over("pod-stuck-terminating", 20, pod="kept")


def keep(lab: Lab, pod: Any, finalizers: list[str] | None) -> None:
    body = {"metadata": {"finalizers": finalizers}}
    lab.cluster.core.patch_namespaced_pod(pod.metadata.name, pod.metadata.namespace, body, _request_timeout=60)


def let_go(lab: Lab, pod: Any) -> None:
    with suppress(NotFoundException):  # already released
        keep(lab, pod, None)


# name, command (Kubernetes reads $$ as one $), whether it restarts, cause, text in the evidence
ENDINGS = [
    ("loops", ("sh", "-c", "exit 3"), True, "program", 3),
    ("exits-127", ("sh", "-c", "no-such-command"), False, "file-not-found", 127),
    ("exits-126", ("sh", "-c", "/etc"), False, "not-executable", 126),
    ("no-file", ("/no/such/file",), False, "file-not-found", "/no/such/file"),
    ("a-directory", ("/etc",), False, "not-executable", "/etc"),
    ("bus-error", ("sh", "-c", "sh -c 'kill -BUS $$$$'; exit $?"), False, "bus-error", 135),
]


def test_a_container_that_does_not_start_or_stay_has_its_cause(lab: Lab, looker: Looker, pods: list[Any]) -> None:
    for name, command, again, _, _ in ENDINGS:
        spec = {"restartPolicy": "Always" if again else "Never"}
        pods.append(lab.run_pod(name, command=command, spec=spec, phase=None))
    for name, _, _, cause, told in ENDINGS:
        finding = looker.expect("pod-start-failed", cause, 30, pod=name)
        assert finding.labels["container"] == "main"
        values = [value for note in finding.evidence for value in note.values.values()]
        assert told in values, (name, values)
    wait_until(lambda: is_in_crash_loop(lab, pods[0]), 30, "it crashes again and again")
    looker.expect("pod-start-failed", "program", 10, pod="loops")


def is_in_crash_loop(lab: Lab, pod: Any) -> bool:
    status = lab.cluster.read_pod(pod).status.container_statuses[0]
    waiting = status.state.waiting
    return status.restart_count >= 1 and waiting is not None and waiting.reason == "CrashLoopBackOff"
