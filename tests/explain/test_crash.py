# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.crash import _EXIT_CODE_CAUSES
from monitor.explain.keys import Key
from monitor.explain.pod import explain_pod
from monitor.explain.termination_message import MESSAGE_FRAGMENTS
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import ContainerStatusFact, PodContainerFact, PodFact, PodVolumeFact, TerminationFact
from tests.explain.builders import (
    GIB,
    NOW,
    Case,
    assert_renders,
    check,
    event,
    looping,
    names,
    node,
    pod,
    running_container,
    waiting,
)

HERE = {"nodes": [node("gpu-01")]}
LIMITED = (PodContainerFact(name="main", limits={"memory": 16.0 * GIB}),)
SHM = PodVolumeFact(name="shm", kind="emptyDir", medium="Memory", size_limit_bytes=2.0 * GIB)


def crashing(*statuses: ContainerStatusFact, **more: Any) -> PodFact:
    return pod(**({"node": "gpu-01", "phase": "Running", "statuses": statuses} | more))


CASES = [
    Case(
        "its own error",
        crashing(looping(1)),
        "crash-error",
        says=("failed (exit code 1)", "--previous", "It had run for 1 min 40 s; restarted 7 times."),
        facts=HERE,
    ),
    Case("some other code", crashing(looping(42)), "crash-error", says=("exit code 42",), facts=HERE),
    Case("255 is no signal", crashing(looping(255)), "crash-error", facts=HERE),
    Case("usage", crashing(looping(2)), "crash-usage", says=("the start file was not found",), facts=HERE),
    Case("not executable", crashing(looping(126)), "crash-not-executable", says=("chmod +x",), facts=HERE),
    Case("no command", crashing(looping(127)), "crash-no-command", facts=HERE),
    Case("interrupted", crashing(looping(130)), "crash-interrupted", facts=HERE),
    Case("illegal instruction", crashing(looping(132)), "crash-illegal", facts=HERE),
    Case("aborted", crashing(looping(134)), "crash-aborted", says=("NCCL or CUDA",), facts=HERE),
    Case("segmentation fault", crashing(looping(139)), "crash-segfault", facts=HERE),
    Case("terminated", crashing(looping(143)), "crash-terminated", facts=HERE),
    Case(
        "some other signal", crashing(looping(136)), "crash-signal", says=("signal SIGFPE (exit code 136)",), facts=HERE
    ),
    Case(
        "out of memory",
        crashing(looping(137, reason="OOMKilled"), containers=LIMITED),
        "crash-out-of-memory",
        says=("Its memory limit is 16 GiB.",),
        facts=HERE,
    ),
    Case(
        "killed, and not for its memory",
        crashing(looping(137)),
        "crash-killed",
        says=("no memory limit",),
        silent=("OOMKilled",),
        facts=HERE,
    ),
    Case(
        "out of memory with another code", crashing(looping(1, reason="OOMKilled")), "crash-out-of-memory", facts=HERE
    ),
    Case(
        "killed by its liveness probe",
        crashing(looping(137)),
        "crash-liveness",
        facts=HERE
        | {"events": [event("Killing", "Container main failed liveness probe, will be restarted", type="Normal")]},
    ),
    Case(
        "another container's probe",
        crashing(looping(137)),
        "crash-killed",
        facts=HERE
        | {"events": [event("Killing", "Container side failed liveness probe, will be restarted", container="side")]},
    ),
    Case(
        "bus error: 64 MiB of /dev/shm",
        crashing(looping(135)),
        "crash-shm",
        says=("/dev/shm is too small", "the default of 64 MiB", "medium: Memory"),
        facts=HERE,
    ),
    Case(
        "bus error with a volume in memory",
        crashing(looping(135), volumes=(SHM,)),
        "crash-shm",
        says=("limited to 2 GiB",),
        silent=("default",),
        facts=HERE,
    ),
    Case(
        "bus error in the last words",
        crashing(
            looping(
                1,
                message="RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
            )
        ),
        "crash-shm",
        facts=HERE,
    ),
    Case(
        "GPU memory",
        crashing(looping(1, message="torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")),
        "crash-gpu-memory",
        says=("Its last log lines: torch.cuda",),
        facts=HERE,
    ),
    Case(
        "no module",
        crashing(looping(1, message="ModuleNotFoundError: No module named 'apex'")),
        "crash-no-module",
        facts=HERE,
    ),
    Case(
        "no data",
        crashing(looping(1, message="FileNotFoundError: [Errno 2] No such file or directory: '/data/train'")),
        "crash-no-file",
        facts=HERE,
    ),
    Case(
        "python cannot open the start file",
        crashing(looping(2, message="python: can't open file '/code/train.py'")),
        "crash-no-file",
        facts=HERE,
    ),
    Case(
        "rights",
        crashing(looping(1, message="PermissionError: [Errno 13] Permission denied: '/out'")),
        "crash-permission",
        facts=HERE,
    ),
    Case(
        "ends well, again and again",
        crashing(looping(0, reason="Completed", message="no such file or directory")),
        "crash-ended",
        says=("exit code 0",),
        facts=HERE,
    ),
    Case("nobody knows", crashing(looping(None, reason="ContainerStatusUnknown")), "crash-lost", facts=HERE),
    Case(
        "terminated and not yet back",
        crashing(waiting("Error", state="terminated", exit_code=1)),
        "crash-error",
        facts=HERE,
    ),
    Case(
        "an init container",
        crashing(looping(1, name="fetch", init=True), waiting("PodInitializing"), phase="Pending"),
        "crash-error",
        says=("container fetch",),
        facts=HERE,
    ),
    Case(
        "one runs, another keeps crashing",
        crashing(running_container(name="side"), looping(1)),
        "crash-error",
        facts=HERE,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_crash(case: Case) -> None:
    check(case, "crashing")


def test_every_word_has_its_sentences() -> None:
    crashes = {
        *_EXIT_CODE_CAUSES.values(),
        *(cause for cause, _ in MESSAGE_FRAGMENTS),
        "OUT_OF_MEMORY",
        "LOST",
        "LIVENESS",
        "SIGNAL",
    }
    keys = {f"CRASH_{cause}" for cause in crashes}
    assert {f"{name}{end}" for name in keys for end in ("", "_ADVICE")} <= set(Key.__members__)


@given(st.text(), st.one_of(st.none(), st.integers()), st.one_of(st.none(), st.integers(0, 64)))
def test_no_ending_breaks_it(message: str, code: int | None, signal: int | None) -> None:
    last = TerminationFact(message=message, exit_code=code, signal=signal)
    status = waiting("CrashLoopBackOff", last=last)
    given_pod = crashing(status)
    assert_renders(explain_pod(given_pod, make_cluster_facts(), NOW))
