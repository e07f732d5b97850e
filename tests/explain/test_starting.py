# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

from typing import Any

import pytest

from monitor.explain.crash import SANDBOX_CAUSES
from monitor.explain.keys import Key
from monitor.facts.kube import PodFact
from tests.explain.builders import NOW, Case, check, event, names, node, pod, running_container, waiting

HERE = {"nodes": [node("gpu-01")]}


def creating(*statuses: Any, **more: Any) -> PodFact:
    return pod(**({"node": "gpu-01", "statuses": statuses or (waiting("ContainerCreating"),)} | more))


def sandbox(message: str) -> dict[str, Any]:
    return HERE | {"events": [event("FailedCreatePodSandBox", f"Failed to create pod sandbox: rpc error: {message}")]}


CASES = [
    Case("just started", creating(age=30), "starting", says=("which is normal",), facts=HERE),
    Case("119 s are normal", creating(age=119), "starting", facts=HERE),
    Case(
        "120 s are not",
        creating(age=120),
        "starting-long",
        says=("should have started on gpu-01 long ago (2 min)",),
        facts=HERE,
    ),
    Case("not a word from the kubelet yet", creating(age=600, statuses=()), "starting-long", facts=HERE),
    Case(
        "the node is down",
        creating(),
        "node-not-ready",
        says=("gpu-01 is down (not ready)",),
        facts={"nodes": [node("gpu-01", ready=None)]},
    ),
    Case(
        "an init container at work",
        creating(running_container(name="fetch-data", init=True), waiting("PodInitializing")),
        "init-running",
        says=("init container fetch-data has been running for 1 h", "kubectl logs bert-0 -n team-a -c fetch-data"),
        facts=HERE,
    ),
    Case(
        "a sidecar runs for as long as its pod",
        creating(
            running_container(name="proxy", init=True, sidecar=True, started=True),
            waiting("ContainerCreating"),
            age=600,
        ),
        "starting-long",
        silent=("proxy",),
        facts=HERE,
    ),
    Case(
        "an init container after a sidecar",
        creating(
            running_container(name="proxy", init=True, sidecar=True, started=True),
            running_container(name="fetch-data", init=True),
            waiting("PodInitializing"),
        ),
        "init-running",
        says=("init container fetch-data",),
        facts=HERE,
    ),
    Case(
        "a sidecar that does not get ready",
        creating(running_container(name="proxy", init=True, sidecar=True), waiting("PodInitializing")),
        "sidecar-not-started",
        says=("Its sidecar proxy has been running for 1 h without passing its startup probe",),
        facts=HERE,
    ),
    Case(
        "CNI",
        creating(),
        "sandbox-network",
        facts=sandbox(
            'failed to set up sandbox container "a1" network for pod "bert-0": networkPlugin cni failed to set up pod'
        ),
    ),
    Case(
        "no address",
        creating(),
        "sandbox-no-address",
        facts=sandbox(
            'failed to setup network for sandbox "a1": plugin type="host-local" failed: failed to allocate for range 0: no IP addresses available in range set'
        ),
    ),
    Case(
        "the pause image is missing",
        creating(),
        "sandbox-pause-image",
        says=("the pause image is missing", "Why it cannot be pulled: dns"),
        facts=sandbox(
            'failed to get sandbox image "k8s.gcr.io/pause:3.5": failed to pull image "k8s.gcr.io/pause:3.5": dial tcp: lookup k8s.gcr.io: no such host'
        ),
    ),
    Case(
        "runtime class",
        creating(),
        "sandbox-runtime-class",
        facts=sandbox('failed to get sandbox runtime: no runtime for "nvidia" is configured'),
    ),
    Case(
        "slow runtime",
        creating(),
        "sandbox-runtime-slow",
        facts=sandbox("code = DeadlineExceeded desc = context deadline exceeded"),
    ),
    Case("disk", creating(), "sandbox-disk-full", facts=sandbox("mkdir /run/containerd/x: no space left on device")),
    Case(
        "something new",
        creating(),
        "sandbox-other",
        says=("The node says: Failed to create pod sandbox: rpc error: the moon is full",),
        facts=sandbox("the moon is full"),
    ),
    Case(
        "a sandbox that was made in the end is no reason",
        creating(age=30),
        "starting",
        facts=HERE | {"events": [event("FailedCreatePodSandBox", "cni", ago=100), event("Pulled", "x", ago=50)]},
    ),
    Case(
        "a missing secret is named",
        creating(waiting("CreateContainerConfigError", 'secret "wandb" not found')),
        "bad-configuration",
        says=("The Secret wandb that container main needs does not exist in team-a.",),
        facts=HERE,
    ),
    Case(
        "a missing config map, told by the event",
        creating(waiting("CreateContainerConfigError")),
        "bad-configuration",
        says=("The ConfigMap train-conf that container main needs",),
        facts=HERE | {"events": [event("Failed", 'Error: configmap "train-conf" not found')]},
    ),
    Case(
        "a missing key",
        creating(waiting("CreateContainerConfigError", "couldn't find key token in Secret team-a/wandb")),
        "bad-configuration",
        says=("The Secret wandb has no key token, which container main needs.",),
        facts=HERE,
    ),
    Case(
        "root",
        creating(waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")),
        "bad-configuration",
        says=("runAsNonRoot",),
        facts=HERE,
    ),
    Case(
        "something new in the configuration",
        creating(waiting("CreateContainerConfigError", "the moon is full")),
        "bad-configuration",
        says=("the moon is full",),
        facts=HERE,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_starting(case: Case) -> None:
    check(case, "creating")


def test_every_word_has_its_sentences() -> None:
    causes = [*(cause.name for cause in SANDBOX_CAUSES), "DISK_FULL", "RUNTIME_SLOW", "OTHER"]
    assert {f"SANDBOX_{cause}{end}" for cause in causes for end in ("", "_ADVICE")} <= set(Key.__members__)


def test_since_when() -> None:
    explanation = check(Case("since", creating(started_at=NOW - 45), "starting", status="creating", facts=HERE))
    assert explanation.seconds == 45
