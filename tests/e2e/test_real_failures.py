"""Failures of real components: each has its cause in the alert a few seconds after Kubernetes reports it."""

from __future__ import annotations

import base64
import io
import json
import secrets
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from monitor.facts.findings import Finding
from tests.detect.builders_pods import text
from tests.e2e.detecting import Looker, looking, second_registry
from tests.e2e.registry_content import damage_layer
from tests.lab.lab import Lab
from tests.lab.registry import push_layer

FAILURE_SECONDS = 60.0  # until the components fail and Kubernetes reports it
DIAGNOSIS_SECONDS = 60.0  # generous: other tests may occupy the machine
EVICTION_SECONDS = 180.0  # the kubelet measures volumes once a minute
LAYER_BYTES = 1 << 16

Prepare = Callable[[Lab, ExitStack, Path], dict[str, Any]]


@pytest.fixture(scope="module")
def looker(lab: Lab) -> Iterator[Looker]:
    with looking(lab.kubeconfig) as looker:
        yield looker


def soon(finding: Finding) -> None:
    assert finding.since is not None
    assert time.time() - finding.since < DIAGNOSIS_SECONDS
    assert finding.raw


def layer() -> bytes:
    """A layer that no other image has."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo("data")
        member.size = LAYER_BYTES
        tar.addfile(member, io.BytesIO(secrets.token_bytes(LAYER_BYTES)))
    return content.getvalue()


def refusing_proxy(_lab: Lab, _undo: ExitStack, _directory: Path) -> dict[str, Any]:
    """The engine of the lab has a proxy that does not exist, for all names but those of other tests."""
    return {"image": "registry.example.com/team/train:1"}


def corrupt_layer(_lab: Lab, undo: ExitStack, directory: Path) -> dict[str, Any]:
    port, content = undo.enter_context(second_registry(directory, "127.0.0.1")), layer()
    image = push_layer(f"127.0.0.1:{port}", "team/corrupt:1", content)
    damage_layer(directory, content)
    return {"image": image}


def malformed_tar(_lab: Lab, undo: ExitStack, directory: Path) -> dict[str, Any]:
    port = undo.enter_context(second_registry(directory, "127.0.0.1"))
    return {"image": push_layer(f"127.0.0.1:{port}", "team/malformed:1", secrets.token_bytes(LAYER_BYTES))}


def revoked_credential(lab: Lab, undo: ExitStack, directory: Path) -> dict[str, Any]:
    """The secret has a password that the registry accepts no more."""
    port = undo.enter_context(second_registry(directory, "127.0.0.1", login=True))
    registry = f"127.0.0.1:{port}"
    login = base64.b64encode(b"robot:revoked").decode()
    secret = {
        "metadata": {"name": "revoked"}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": json.dumps({"auths": {registry: {"auth": login}}})},
    }  # fmt: skip
    lab.cluster.core.create_namespaced_secret("default", secret)
    undo.callback(lab.cluster.core.delete_namespaced_secret, "revoked", "default")
    return {"image": f"{registry}/team/secret:1", "spec": {"imagePullSecrets": [{"name": "revoked"}]}}


@pytest.mark.parametrize(
    ("cause", "prepare", "says"),
    [
        ("proxy", refusing_proxy, "proxy"),
        ("damaged-layer", corrupt_layer, "again"),
        ("bad-image", malformed_tar, "Build"),
        ("unauthorized", revoked_credential, "imagePullSecrets"),
    ],
)
def test_a_failed_pull(
    lab: Lab, looker: Looker, pods: list[Any], undo: ExitStack, tmp_path: Path, cause: str, prepare: Prepare, says: str
) -> None:
    pods.append(lab.run_pod(f"real-{cause}", phase=None, **prepare(lab, undo, tmp_path)))
    finding = looker.expect("image-pull", cause, FAILURE_SECONDS, pod=pods[0].metadata.name)
    soon(finding)
    assert says in text(finding)


def test_an_empty_dir_over_its_limit(lab: Lab, looker: Looker, pods: list[Any]) -> None:
    volume = {"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}
    mount = {"name": "scratch", "mountPath": "/scratch"}
    command = ("sh", "-c", "dd if=/dev/zero of=/scratch/data bs=1M count=8; sleep 600")
    pods.append(
        lab.run_pod("real-empty-dir", command=command, container={"volumeMounts": [mount]}, spec={"volumes": [volume]})
    )
    finding = looker.expect("pod-start-failed", "evicted", EVICTION_SECONDS, pod="real-empty-dir")
    assert "exceeds the limit" in (finding.raw or "")
    assert "sizeLimit" in text(finding)


def test_a_seccomp_profile_that_does_not_exist(lab: Lab, looker: Looker, pods: list[Any]) -> None:
    profile = {"seccompProfile": {"type": "Localhost", "localhostProfile": "no-such-profile.json"}}
    pods.append(lab.run_pod("real-seccomp", phase=None, container={"securityContext": profile}))
    soon(looker.expect("pod-start-failed", "security-profile", FAILURE_SECONDS, pod="real-seccomp"))
