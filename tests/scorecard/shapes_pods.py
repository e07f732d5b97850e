"""Outages of pods: failing to start, to keep running, to terminate, or to log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from monitor.sim import manifests
from monitor.sim.cluster import SimPod
from monitor.sim.node import GIB
from monitor.sim.outages import NO_SUCH_HOST, image
from tests.scorecard.model import Act, Happening, May, Shape, Tell
from tests.scorecard.scene import change_processes, set_mount

Wait = Iterator[float | None]
MINUTE = 60.0
CREDIT = 5 * MINUTE
POD = {"node": "{node}", "pod": "{id}"}
REGISTRY = {"service": "harbor.lab"}
REFUSED = ("tcp", "connection-refused", "dial tcp 10.0.0.9:443: connect: connection refused")
TIMEOUT = ("tcp", "timeout", "dial tcp 10.0.0.9:443: i/o timeout")
UNTRUSTED = ("tls", "tls-untrusted", "tls: failed to verify certificate: x509: certificate signed by unknown authority")


def _cannot_pull(said: str) -> Act:
    """A pod whose image cannot be pulled although the registry is up: the kubelet retries."""

    def act(it: Happening) -> Wait:
        pod = it.job(held=True)
        message = f'Failed to pull image "{pod.work.image}": rpc error: code = Unknown desc = {said}'
        it.scene.cluster.put_pod(manifests.waiting(it.scene.cluster.pod_object(pod), "ErrImagePull", message, it.now))
        it.scene.cluster.record_event(pod, "Failed", message)
        yield 15.0
        waits = f'Back-off pulling image "{pod.work.image}"'
        it.scene.cluster.put_pod(manifests.waiting(it.scene.cluster.pod_object(pod), "ImagePullBackOff", waits, it.now))
        yield None

    return act


def _registry_lost(failure: tuple[str, str, str]) -> Act:
    """One node cannot reach the registry; two of its pods need images."""

    def act(it: Happening) -> Wait:
        it.node.probe_failure = failure
        yield 30.0
        it.job(more="-a")
        it.job(more="-b")
        yield None
        it.node.probe_failure = None

    return act


def _registry_down(it: Happening) -> Wait:
    """The registry is down for all nodes and the daemon."""
    it.scene.services["harbor"].failure = {"cause": "refused", "detail": "connection refused"}
    for node in it.scene.nodes:
        node.probe_failure = REFUSED
    yield 30.0
    for node in it.scene.nodes[:3]:
        it.job(more=f"-{node.name}", node=node.name)
    yield None
    it.scene.services["harbor"].failure = None
    for node in it.scene.nodes:
        node.probe_failure = None


def _slow_pull(size: int | None = None, *, busy_disk: bool = False) -> Act:
    """A pull that never completes. The image size is known if another node has it."""

    def act(it: Happening) -> Wait:
        name = image("big", f"{it.id}:1")
        other = next(node for node in it.scene.nodes if node is not it.node)
        if size is not None:
            other.add_image(name, size, it.now, it.now)
        if busy_disk:
            it.node.runtime_disk.busy = 0.96
        it.scene.pull(it.job(held=True, image=name))
        yield None
        it.node.runtime_disk.busy = 0.2
        if size is not None:
            other.remove_image(other.images[name].id)

    return act


def _slow_pull_done(it: Happening) -> Wait:
    """A pull of 14 minutes is noticed on completion: the event contains its duration."""
    pod = it.job()
    it.scene.pull(pod, 840, 4 * GIB)
    yield None


def _never_created(reason: str, said: str, volumes: list[dict[str, Any]] | None = None) -> Act:
    """A scheduled pod without containers; the kubelet reports the reason every two minutes."""

    def act(it: Happening) -> Wait:
        pod = it.job(held=True)
        it.scene.change_pod(
            pod, {"spec": {"volumes": volumes or []}, "status": {"startTime": manifests.rfc3339(it.now)}}
        )
        for _ in range(5):
            it.scene.cluster.record_event(pod, reason, said)
            yield 2 * MINUTE
        yield None

    return act


def _mount_hung(it: Happening) -> Wait:
    """A pod waits for a volume on a share that hangs on its node."""
    set_mount(it.node, "hung", it.now, "no answer within 5 s")
    said = "Unable to attach or mount volumes: unmounted volumes=[share]: timed out waiting for the condition"
    volume = {"name": "share", "hostPath": {"path": "/mnt/share/zhang"}}
    yield from _never_created("FailedMount", said, [volume])(it)
    set_mount(it.node, "ok", it.now)


def _stays_down(ended: dict[str, Any], reason: str | None = None, message: str = "") -> Act:
    """A container that exits repeatedly or never starts: it waits with the reason."""

    def act(it: Happening) -> Wait:
        pod = it.job(held=True)
        waits = message or "back-off 5m0s restarting failed container"
        shown = manifests.waiting(it.scene.cluster.pod_object(pod), reason or "CrashLoopBackOff", waits, it.now)
        if ended:
            times = {"startedAt": manifests.rfc3339(it.now - 3), "finishedAt": manifests.rfc3339(it.now)}
            status = shown["status"]["containerStatuses"][0]
            status |= {"restartCount": 3, "lastState": {"terminated": ended | times}}
        it.scene.cluster.put_pod(shown)
        yield None

    return act


def _fails_once(ended: dict[str, Any]) -> Act:
    """A job fails permanently."""

    def act(it: Happening) -> Wait:
        pod = it.job()
        yield MINUTE
        it.scene.cluster.finish(pod, "Failed")
        status = it.scene.cluster.pod_object(pod)["status"]
        status["containerStatuses"][0]["state"]["terminated"] |= ended
        it.scene.change_pod(pod, {"status": status})
        yield None

    return act


def _delete(it: Happening, pod: SimPod) -> None:
    """Delete a pod without effect."""
    pod.stuck = True
    it.scene.cluster.delete_pod(pod.work.namespace, pod.work.name, None)


def _finalizer(it: Happening) -> Wait:
    pod = it.job()
    it.scene.change_pod(pod, {"metadata": {"finalizers": ["platform.lab/accounting"]}})
    it.scene.cluster.finish(pod)
    _delete(it, pod)
    yield None


def _does_not_end(reason: str, said: str) -> Act:
    def act(it: Happening) -> Wait:
        pod = it.job()
        _delete(it, pod)
        it.scene.cluster.record_event(pod, reason, said)
        yield None

    return act


def _d_state(it: Happening) -> Wait:
    pod = it.job(1)
    yield MINUTE
    change_processes(it.node, pod, state="D", state_since=it.now)
    _delete(it, pod)
    yield None


def _silent(*, never: bool = False, error: str | None = None) -> Act:
    def act(it: Happening) -> Wait:
        container = it.scene.container(it.job(1))
        container.quiet_since, container.log_error = it.now, error
        container.log_bytes = 0 if never else 4096
        yield None

    return act


def _shm(size: int, used: int) -> Act:
    def act(it: Happening) -> Wait:
        container = it.scene.container(it.job(1))
        container.shm_size, container.shm_used = size, used
        yield None

    return act


def _start(name: str, ids: tuple[str, ...], act: Act, cause: str, begins: float = 0.0) -> Shape:
    return Shape(name, ids, 2 * CREDIT, act, (Tell("pod-start-failed", cause, POD, begins=begins),))


def _creating(name: str, act: Act, cause: str, ids: tuple[str, ...] = ("P9",)) -> Shape:
    return Shape(name, ids, 2 * CREDIT, act, (Tell("pod-stuck-creating", cause, POD),))


def _ending(name: str, act: Act, cause: str) -> Shape:
    return Shape(name, ("P3",), 2 * CREDIT, act, (Tell("pod-stuck-terminating", cause, POD),))


def _lost(name: str, failure: tuple[str, str, str], cause: str) -> Shape:
    return Shape(
        name, ("P1",), 2 * CREDIT, _registry_lost(failure), (Tell("registry-unreachable", cause),),
        (May("image-pull", {"node": "{node}"}),), ("registry",),
    )  # fmt: skip


RUNC = "failed to create task for container: failed to create shim task: OCI runtime create failed: "
HUGE = 22 * GIB
SHAPES = (
    _lost("node lost the registry's name", NO_SUCH_HOST, "node-cannot-resolve"),
    _lost("node does not reach the registry", TIMEOUT, "node-cannot-connect"),
    _lost("node does not trust the registry", UNTRUSTED, "node-does-not-trust"),
    Shape(
        "registry down", ("P1", "N2"), 2 * CREDIT, _registry_down,
        (
            Tell("registry-unreachable", "registry-down", REGISTRY),
            Tell("service-down", "refused", {"service": "harbor"}),
        ),
        (May("image-pull", REGISTRY), May("registry-unreachable")), ("registry", "services"), False,
    ),
    Shape("wrong tag", ("P1",), 2 * CREDIT, _cannot_pull("Error response from daemon: manifest unknown"),
          (Tell("image-pull", "not-found", POD),)),
    Shape("not allowed to pull", ("P1",), 2 * CREDIT,
          _cannot_pull("Error response from daemon: unauthorized: authentication required"),
          (Tell("image-pull", "unauthorized", POD),)),
    Shape("large image", ("P2",), 2 * CREDIT, _slow_pull(HUGE), (Tell("image-pull-slow", "large-image"),)),
    Shape("slow registry", ("P2",), 2 * CREDIT, _slow_pull(), (Tell("image-pull-slow", "slow-registry"),)),
    Shape("slow disk for images", ("P2", "D2"), 2 * CREDIT, _slow_pull(busy_disk=True),
          (Tell("image-pull-slow", "slow-disk"),)),
    Shape("pull of 14 minutes", ("P2",), 2 * CREDIT, _slow_pull_done,
          (Tell("image-pull-slow", "slow-registry", {"image": "harbor.lab/nlp/{id}:1"}),)),
    _creating("volume refused", _never_created(
        "FailedMount", 'MountVolume.SetUp failed for volume "data": mount failed: exit status 32: mount.nfs: '
        "access denied by server while mounting nas:/data"), "mount-failed", ("P9", "N4")),
    _creating("export missing", _never_created(
        "FailedMount", 'MountVolume.SetUp failed for volume "data": mount.nfs: mounting nas:/data failed, '
        "reason given by server: No such file or directory"), "mount-failed", ("P9", "N4")),
    _creating("secret missing", _never_created(
        "FailedMount", 'MountVolume.SetUp failed for volume "token": secret "user-token" not found'), "config-missing"),
    _creating("no network for the pod", _never_created(
        "FailedCreatePodSandBox", 'Failed to create pod sandbox: plugin type="calico" failed (add): cni error'),
        "sandbox"),
    Shape(
        "volume on a share that hangs", ("P9", "N4"), 2 * CREDIT, _mount_hung,
        (Tell("mount-lost", "hung"),), (May("pod-stuck-creating", POD),), ("share",),
    ),
    _start("start file missing", ("P9",), _stays_down(
        {"exitCode": 128, "reason": "StartError", "message": f'{RUNC}exec: "/start.sh": no such file or directory'}),
        "file-not-found"),
    _start("start file not executable", ("P9",), _stays_down(
        {"exitCode": 126, "reason": "ContainerCannotRun", "message": f'{RUNC}exec: "/start.sh": permission denied'}),
        "not-executable"),
    _start("data file missing", ("P9",), _fails_once(
        {"exitCode": 1, "reason": "Error", "message": "FileNotFoundError: No such file or directory: '/data/a'"}),
        "file-not-found", MINUTE),
    _start("no permission", ("P9",), _fails_once(
        {"exitCode": 1, "reason": "Error", "message": "PermissionError: [Errno 13] Permission denied: '/data/a'"}),
        "permission", MINUTE),
    _start("out of memory", ("P9",), _stays_down({"exitCode": 137, "reason": "OOMKilled"}), "out-of-memory"),
    _start("bus error", ("P7",), _fails_once(
        {"exitCode": 135, "reason": "Error", "message": "DataLoader worker is killed by signal: Bus error."}),
        "bus-error", MINUTE),
    _start("ConfigMap missing", ("P9",), _stays_down(
        {}, "CreateContainerConfigError", 'configmap "train-config" not found'), "config"),
    _ending("finalizer", _finalizer, "finalizer"),
    _ending("volume busy", _does_not_end(
        "FailedUnmount", "UnmountVolume.TearDown failed: device is busy"), "volume-busy"),
    _ending("runtime does not stop it", _does_not_end(
        "FailedKillPod", "error killing pod: context deadline exceeded"), "runtime-hung"),
    Shape("process in D keeps the pod", ("P3", "G1"), 14 * MINUTE, _d_state, (
        Tell("pod-stuck-terminating", "d-state", POD, begins=MINUTE),
        Tell("gpu-wedged", "d-state", POD, begins=MINUTE),
        Tell("gpu-zombie", "pod-terminating", POD, begins=MINUTE),
    )),
    Shape("job never logs", ("P8",), 15 * MINUTE + CREDIT, _silent(never=True),
          (Tell("pod-silent", "never-logged", POD),)),
    Shape("job stops logging", ("P8",), 60 * MINUTE + CREDIT, _silent(), (Tell("pod-silent", "stopped-logging", POD),)),
    Shape("log cannot be read", ("P8",), 15 * MINUTE + CREDIT, _silent(error="Permission denied"),
          (Tell("pod-silent", "log-unreadable", POD),)),
    Shape("shm nearly full", ("P7",), 2 * CREDIT, _shm(16 * GIB, 15 * GIB),
          (Tell("shm-pressure", "nearly-full", POD),)),
    Shape("shm as small as by default", ("P7",), 2 * CREDIT, _shm(64 << 20, 20 << 20),
          (Tell("shm-pressure", "default-size", POD),)),
    Shape("shm of 64 MB full", ("P7",), 2 * CREDIT, _shm(64 << 20, 62 << 20),
          (Tell("shm-pressure", "nearly-full", POD),)),
)  # fmt: skip
