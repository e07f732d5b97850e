# ruff: noqa: E501  # messages are quoted in full
"""Containers that the runtime cannot start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.crash import SANDBOX_CAUSES, cannot_start
from monitor.explain.error_chain.causes import StartFailureCause
from monitor.explain.keys import Key
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import ContainerStatusFact, PodFact
from tests.explain.builders import Case, check, event, looping, names, node, pod, waiting

HERE = {"nodes": [node("gpu-01")]}
OCI = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "


def crashing(*statuses: ContainerStatusFact) -> PodFact:
    return pod(node="gpu-01", phase="Running", statuses=statuses)


CASES = [
    Case(
        "no start file",
        crashing(
            waiting("RunContainerError", OCI + 'exec: "/start.sh": stat /start.sh: no such file or directory: unknown')
        ),
        "start-no-start-file",
        says=("does not exist: /start.sh",),
        facts=HERE,
    ),
    Case(
        "not in PATH",
        crashing(waiting("CreateContainerError", OCI + 'exec: "pyhton": executable file not found in $PATH: unknown')),
        "start-no-start-file",
        says=("pyhton",),
        facts=HERE,
    ),
    Case(
        "not executable",
        crashing(waiting("RunContainerError", OCI + 'exec: "/start.sh": permission denied: unknown')),
        "start-not-executable",
        says=("chmod +x /start.sh",),
        facts=HERE,
    ),
    Case(
        "another CPU architecture",
        crashing(looping(1, reason="StartError", message="exec /usr/bin/python: exec format error")),
        "start-exec-format",
        facts=HERE,
    ),
    Case(
        "Docker: cannot run",
        crashing(
            looping(
                127,
                reason="ContainerCannotRun",
                message='OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "train": executable file not found in $PATH: unknown',
            )
        ),
        "start-no-start-file",
        facts=HERE,
    ),
    Case(
        "driver too old, not a missing file",
        crashing(
            waiting(
                "RunContainerError",
                OCI
                + "error running hook #0: exit status 1, stdout: , stderr: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver",
            )
        ),
        "start-driver-too-old",
        facts=HERE,
    ),
    Case(
        "driver updated without a reboot",
        crashing(
            waiting(
                "RunContainerError",
                OCI
                + "stderr: nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
            )
        ),
        "start-driver-mismatch",
        says=("reboot",),
        facts=HERE,
    ),
    Case(
        "driver broken, not a missing file",
        crashing(
            waiting(
                "RunContainerError",
                OCI
                + "stderr: Auto-detected mode as 'legacy' nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory",
            )
        ),
        "start-driver-not-loaded",
        facts=HERE,
    ),
    Case(
        "the runtime itself is broken, not the start file",
        crashing(
            waiting(
                "CreateContainerError",
                "OCI runtime create failed: unable to retrieve OCI runtime error (open /run/containerd/x/log.json: no such file or directory): fork/exec /usr/bin/nvidia-container-runtime: permission denied: unknown",
            )
        ),
        "start-toolkit-broken",
        facts=HERE,
    ),
    Case(
        "working directory",
        crashing(
            waiting(
                "RunContainerError", OCI + 'chdir to cwd ("/code") set in config.json failed: no such file or directory'
            )
        ),
        "start-workdir",
        facts=HERE,
    ),
    Case(
        "a file over a directory",
        crashing(
            waiting(
                "CreateContainerError",
                OCI
                + 'error mounting "/x" to rootfs at "/y": not a directory: unknown: Are you trying to mount a directory onto a file',
            )
        ),
        "start-mount-kind",
        facts=HERE,
    ),
    Case(
        "hook",
        crashing(
            waiting(
                "PostStartHookError",
                'Exec lifecycle hook ([/hook.sh]) for Container "main" failed - error: command exited with 1',
            )
        ),
        "start-hook",
        facts=HERE,
    ),
    Case(
        "slow", crashing(waiting("CreateContainerError", "context deadline exceeded")), "start-runtime-slow", facts=HERE
    ),
    Case(
        "disk",
        crashing(waiting("CreateContainerError", "mkdir /var/lib/docker/x: no space left on device")),
        "start-disk-full",
        facts=HERE,
    ),
    Case(
        "told by the event",
        crashing(waiting("RunContainerError")),
        "start-no-start-file",
        facts=HERE
        | {
            "events": [
                event("Failed", 'Error: failed to start container "main": exec: "/x": no such file or directory')
            ]
        },
    ),
    Case(
        "something new",
        crashing(waiting("RunContainerError", "the moon is full")),
        "start-other",
        says=("the moon is full",),
        facts=HERE,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_cannot_start(case: Case) -> None:
    check(case, "crashing")


def test_every_word_has_its_sentences() -> None:
    causes = [cause.name for cause in StartFailureCause if cause not in SANDBOX_CAUSES]
    assert {f"START_{cause}{end}" for cause in causes for end in ("", "_ADVICE")} <= set(Key.__members__)


@given(st.text())
def test_no_message_breaks_it(message: str) -> None:
    status = waiting("RunContainerError", message)
    assert cannot_start(crashing(status), status, make_cluster_facts()).cause.startswith(("start-", "sandbox-"))


MISMATCH = (
    OCI
    + "error running hook #0: stderr: nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown"
)


def test_pods_of_one_node_with_one_fault_share_it() -> None:
    status = waiting("RunContainerError", MISMATCH)
    failing = [pod(f"p-{number}", node="gpu-01", statuses=(status,)) for number in range(3)]
    well = pod("well", node="gpu-01", statuses=(waiting("RunContainerError", OCI + 'exec: "x": permission denied'),))
    facts = make_cluster_facts(pods=[*failing, well], nodes=[node("gpu-01")])
    diagnosis = cannot_start(failing[0], failing[0].statuses[0], facts)
    shared = [text for text in diagnosis.evidence if text.key == Key.START_SHARED]
    assert [text.values for text in shared] == [{"node": "gpu-01", "count": 3}]
    assert Key.START_SHARED not in [text.key for text in cannot_start(well, well.statuses[0], facts).evidence]
