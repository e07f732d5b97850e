"""Pods as a current kubelet runs and ends them: sidecars, resizes in place, and pods that Kubernetes ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client

from monitor.explain.model import Explanation
from monitor.explain.pod import explain_pod
from monitor.facts.findings import Finding
from monitor.facts.kube import PodFact
from monitor.i18n import LANGUAGES
from monitor.present.explanation import render_explanation
from tests.e2e.cleaning import Pods
from tests.e2e.detecting import Looker, looking
from tests.e2e.scenes import Scene
from tests.lab.images import IMAGE
from tests.lab.lab import Lab
from tests.lab.layout import NODE
from tests.support import wait_until

pytestmark = pytest.mark.lab("1.35")
PATIENCE_SECONDS = 90.0
BEAT_SECONDS = 0.2
FINALIZER = "lab.test/keep"
FAILURES = ("pod-start-failed", "pod-stuck-creating")
SLEEP = ["sleep", "1000000"]
# Ends with an error when asked to end: one that is reported of a program that ends so by itself.
EXIT_CODE = 127
ENDS_BADLY = ("sh", "-c", f"trap 'exit {EXIT_CODE}' TERM; while true; do sleep 0.2; done")


class Kubernetes:
    """The lab's node and the daemon's facts about its pods."""

    def __init__(self, lab: Lab, looker: Looker) -> None:
        self.lab = lab
        self.looker = looker

    def fact(self, pod: Any) -> PodFact | None:
        return self.looker.world().pod_by_uid.get(pod.metadata.uid)

    def why(self, pod: Any) -> Explanation | None:
        fact = self.fact(pod)
        return explain_pod(fact, self.looker.world(), time.time()) if fact is not None else None

    def lines(self, pod: Any) -> str:
        """The explanation of a pod in both languages."""
        explanation = self.why(pod)
        if explanation is None:
            return ""
        return "\n".join(line for lang in LANGUAGES for line in render_explanation(explanation, lang))

    def says(self, pod: Any, *words: str) -> None:
        """Wait until the explanation of a pod has these words, in English or Chinese."""
        missing = [word for word in words if word not in self.lines(pod)]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while missing and time.monotonic() < deadline:
            time.sleep(BEAT_SECONDS)
            missing = [word for word in words if word not in self.lines(pod)]
        assert not missing, f"{missing} not in\n{self.lines(pod)}"

    def reported(self, pod: Any) -> list[Finding]:
        """Findings that call a pod failed or stuck."""
        return [
            each for each in self.looker.look() if each.rule in FAILURES and each.labels.get("pod") == pod.metadata.name
        ]


@pytest.fixture(scope="module")
def kubernetes(lab: Lab) -> Iterator[Kubernetes]:
    with looking(lab.kubeconfig) as looker:
        yield Kubernetes(lab, looker)


@pytest.fixture(scope="module")
def scene(lab: Lab, kubernetes: Kubernetes) -> Iterator[Scene]:
    with Scene(lab, "current") as scene:
        yield scene


@pytest.fixture
def pods(lab: Lab, scene: Scene) -> Iterator[Pods]:
    made = Pods(lab, scene.name)
    yield made
    made.clear()


# Sidecars


def with_sidecar(**fields: Any) -> dict[str, Any]:
    """A pod whose init container stays beside the program."""
    sidecar = {"name": "logs", "image": IMAGE, "command": SLEEP, "restartPolicy": "Always", **fields}
    return {"initContainers": [sidecar]}


def test_a_sidecar_that_runs_is_no_init_container_that_does_not_end(kubernetes: Kubernetes, pods: Pods) -> None:
    pod = pods.run("with-logs", spec=with_sidecar())
    kubernetes.says(pod, "is running", "正在运行")
    (sidecar,) = [status for status in kubernetes.fact(pod).statuses if status.sidecar]  # type: ignore[union-attr]
    assert (sidecar.name, sidecar.init, sidecar.state) == ("logs", True, "running")
    assert kubernetes.reported(pod) == []


def test_a_sidecar_that_does_not_pass_its_startup_probe_is_named(kubernetes: Kubernetes, pods: Pods) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1000}
    pod = pods.run("waits-for-logs", phase=None, spec=with_sidecar(startupProbe=probe))
    kubernetes.says(pod, "Its sidecar logs has been running for", "startup probe", "sidecar 容器 logs")


# Resizes in place


def resize(lab: Lab, pod: Any, cpu: str) -> None:
    body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
    lab.cluster.core.patch_namespaced_pod_resize(pod.metadata.name, pod.metadata.namespace, body, _request_timeout=60)


def pending(lab: Lab, pod: Any) -> list[str]:
    """Why the kubelet has not applied a resize."""
    return [each.reason for each in lab.cluster.read_pod(pod).status.conditions if each.type == "PodResizePending"]


def cpus(kubernetes: Kubernetes) -> float:
    """CPUs of the node that no pod requests."""
    world = kubernetes.looker.world()
    return world.free(world.node_by_name[NODE], "cpu")


@pytest.mark.parametrize(
    ("name", "share", "said", "words"),
    [
        ("never-fits", 1000.0, "Infeasible", ("Its resize is not possible on gpu-01", "在 gpu-01 上无法实现")),
        ("fits-later", 0.9, "Deferred", ("Its resize waits until gpu-01 has room", "在等 gpu-01 腾出资源")),
    ],
)
def test_a_resize_that_waits_does_not_count_as_used(
    kubernetes: Kubernetes, pods: Pods, name: str, share: float, said: str, words: tuple[str, ...]
) -> None:
    lab = kubernetes.lab
    total = kubernetes.looker.world().node_by_name[NODE].allocatable["cpu"]
    asks = {"resources": {"requests": {"cpu": "100m"}}}
    pod = pods.run(name, container=asks)
    half = {"resources": {"requests": {"cpu": f"{round(total * 500)}m"}}}
    pods.run(f"beside-{name}", container=half)
    wait_until(lambda: kubernetes.fact(pod), 30, "the pod is known")
    resize(lab, pod, f"{round(total * share * 1000)}m")
    wait_until(lambda: said in pending(lab, pod), PATIENCE_SECONDS, f"the kubelet says {said}")
    kubernetes.says(pod, *words)
    fact = kubernetes.fact(pod)
    assert fact is not None
    assert fact.requests["cpu"] == pytest.approx(0.1)
    assert cpus(kubernetes) == pytest.approx(total - 0.1 - total / 2, abs=0.3)


# Pods that Kubernetes ends


def expect_no_failure(kubernetes: Kubernetes, pods: Pods, pod: Any) -> None:
    """Wait until the program has ended with its error, and expect that only one that failed by itself is reported."""

    def ended() -> bool:
        fact = kubernetes.fact(pod)
        return fact is not None and any(status.exit_code == EXIT_CODE for status in fact.statuses)

    wait_until(ended, PATIENCE_SECONDS, "the program has ended")
    failed = pods.run(f"beside-{pod.metadata.name}", command=("sh", "-c", f"exit {EXIT_CODE}"), phase="Failed")
    kubernetes.looker.expect("pod-start-failed", "file-not-found", PATIENCE_SECONDS, pod=failed.metadata.name)
    assert kubernetes.reported(pod) == []


def kept() -> dict[str, Any]:
    """Fields of a pod whose last state stays."""
    return {"command": ENDS_BADLY, "spec": {"terminationGracePeriodSeconds": 30}}


def test_a_pod_that_the_scheduler_preempts_has_not_failed(kubernetes: Kubernetes, scene: Scene, pods: Pods) -> None:
    scene.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": scene.name}, "value": 1000, "description": ""},
    )
    pod = pods.run("victim", gpus=8, **kept())
    pods.keep(pod, [FINALIZER])
    pods.run("urgent", gpus=8, phase=None, spec={"priorityClassName": scene.name})
    expect_no_failure(kubernetes, pods, pod)
    kubernetes.says(
        pod, "A pod with a higher priority preempted it on gpu-01", "优先级更高的 Pod 占了它在 gpu-01 上的位置"
    )


def test_a_pod_that_the_api_evicts_has_not_failed(kubernetes: Kubernetes, scene: Scene, pods: Pods) -> None:
    pod = pods.run("drained", **kept())
    pods.keep(pod, [FINALIZER])
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="drained", namespace=scene.name))
    kubernetes.lab.cluster.core.create_namespaced_pod_eviction("drained", scene.name, eviction, _request_timeout=60)
    expect_no_failure(kubernetes, pods, pod)
    kubernetes.says(pod, "It was evicted through the Kubernetes API from gpu-01", "从 gpu-01 驱逐")
