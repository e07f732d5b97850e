"""Failures of real components: what makes a pod fail, and the alert that names the cause."""

from __future__ import annotations

import base64
import io
import json
import secrets
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.detecting import second_registry
from tests.e2e.registry_content import damage_layer
from tests.lab.lab import Lab
from tests.lab.modern.containerd_engine import ContainerdLabEngine
from tests.lab.registry import push_layer
from tests.support import free_port

DEAD_MIRROR = "127.0.0.2:1"  # nothing listens there
FAILURE_SECONDS = 60.0  # until the components fail and Kubernetes reports it
EVICTION_SECONDS = 180.0  # the kubelet measures volumes once a minute
LAYER_BYTES = 1 << 16

# Prepares a failure that the stack undoes, with a directory of its own; returns fields of `pod_manifest`.
Prepare = Callable[[Lab, ExitStack, Path], dict[str, Any]]


class RealFailure(NamedTuple):
    """A failure, the rule and cause of its alert, and what the alert says."""

    name: str
    rule: str
    cause: str
    says: str
    prepare: Prepare
    within_seconds: float = FAILURE_SECONDS


def layer() -> bytes:
    """A layer that no other image has."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo("data")
        member.size = LAYER_BYTES
        tar.addfile(member, io.BytesIO(secrets.token_bytes(LAYER_BYTES)))
    return content.getvalue()


@contextmanager
def dead_mirror(lab: Lab, registry: str) -> Iterator[None]:
    """Let containerd ask a mirror that does not exist before the registry."""
    engine = lab.engine
    assert isinstance(engine, ContainerdLabEngine)
    engine.add_mirror(registry, f"http://{DEAD_MIRROR}")
    try:
        yield
    finally:
        engine.remove_mirror(registry)


def refusing_proxy(_lab: Lab, _undo: ExitStack, _directory: Path) -> dict[str, Any]:
    """The engine of the lab has a proxy that does not exist, for all names but those of other tests."""
    return {"image": "registry.example.com/team/train:1"}


def mirror_and_registry(lab: Lab, undo: ExitStack, _directory: Path) -> dict[str, Any]:
    """Neither the mirror nor the registry exists."""
    registry = f"127.0.0.1:{free_port()}"
    undo.enter_context(dead_mirror(lab, registry))
    return {"image": f"{registry}/team/train:1"}


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


def full_empty_dir(_lab: Lab, _undo: ExitStack, _directory: Path) -> dict[str, Any]:
    return {
        "command": ("sh", "-c", "dd if=/dev/zero of=/scratch/data bs=1M count=8; sleep 600"),
        "container": {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]},
        "spec": {"volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}]},
    }


def no_seccomp_profile(_lab: Lab, _undo: ExitStack, _directory: Path) -> dict[str, Any]:
    profile = {"type": "Localhost", "localhostProfile": "no-such-profile.json"}
    return {"container": {"securityContext": {"seccompProfile": profile}}}


def no_apparmor_profile(_lab: Lab, _undo: ExitStack, _directory: Path) -> dict[str, Any]:
    """With AppArmor in the kernel the runtime does not find the profile, otherwise the kubelet refuses the pod."""
    profile = {"type": "Localhost", "localhostProfile": "no-such-profile"}
    return {"container": {"securityContext": {"appArmorProfile": profile}}}


EVERYWHERE = (
    RealFailure("proxy", "image-pull", "proxy", "HTTPS_PROXY", refusing_proxy),
    RealFailure("corrupt-layer", "image-pull", "damaged-layer", "again", corrupt_layer),
    RealFailure("malformed-tar", "image-pull", "bad-image", "Build", malformed_tar),
    RealFailure("credential", "image-pull", "unauthorized", "imagePullSecrets", revoked_credential),
    RealFailure("empty-dir", "pod-start-failed", "evicted", "sizeLimit", full_empty_dir, EVICTION_SECONDS),
    RealFailure("seccomp", "pod-start-failed", "security-profile", "seccomp", no_seccomp_profile),
)
# Mirrors of any registry, and AppArmor as a field, need containerd and a current Kubernetes.
MODERN = (
    RealFailure("mirror", "image-pull", "mirror", DEAD_MIRROR, mirror_and_registry),
    RealFailure("apparmor", "pod-start-failed", "security-profile", "AppArmor", no_apparmor_profile),
)
