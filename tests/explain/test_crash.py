from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.crash import _CODES, _LAST_WORDS, _START, cannot_start
from monitor.explain.explain import explain_pod
from monitor.explain.keys import Key
from monitor.explain.world import make_world
from monitor.facts.kube import ContainerStatusFact, PodContainerFact, PodFact, PodVolumeFact, TerminationFact
from tests.explain.builders import GIB, NOW, Case, assert_speaks, check, event, looping, names, node, pod, up, waiting

HERE = {"nodes": [node("gpu-01")]}
LIMITED = (PodContainerFact(name="main", limits={"memory": 16.0 * GIB}),)
SHM = PodVolumeFact(name="shm", kind="emptyDir", medium="Memory", size_limit_bytes=2.0 * GIB)
OCI = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "


def crashing(*statuses: ContainerStatusFact, **more: Any) -> PodFact:
    return pod(**({"node": "gpu-01", "phase": "Running", "statuses": statuses} | more))


CASES = [
    Case("its own error", crashing(looping(1)), "crash-error", says=("ended with an error (exit code 1)", "--previous", "It had run for 1 min 40 s; restarted 7 times."), world=HERE),
    Case("some other code", crashing(looping(42)), "crash-error", says=("exit code 42",), world=HERE),
    Case("255 is no signal", crashing(looping(255)), "crash-error", world=HERE),
    Case("usage", crashing(looping(2)), "crash-usage", says=("the start file was not found",), world=HERE),
    Case("not executable", crashing(looping(126)), "crash-not-executable", says=("chmod +x",), world=HERE),
    Case("no command", crashing(looping(127)), "crash-no-command", world=HERE),
    Case("interrupted", crashing(looping(130)), "crash-interrupted", world=HERE),
    Case("illegal instruction", crashing(looping(132)), "crash-illegal", world=HERE),
    Case("aborted", crashing(looping(134)), "crash-aborted", says=("NCCL or CUDA",), world=HERE),
    Case("segmentation fault", crashing(looping(139)), "crash-segfault", world=HERE),
    Case("terminated", crashing(looping(143)), "crash-terminated", world=HERE),
    Case("some other signal", crashing(looping(136)), "crash-signal", says=("signal SIGFPE (exit code 136)",), world=HERE),
    Case("out of memory", crashing(looping(137, reason="OOMKilled"), containers=LIMITED), "crash-out-of-memory", says=("Its memory limit is 16 GiB.",), world=HERE),
    Case("killed, and not for its memory", crashing(looping(137)), "crash-killed", says=("not for its memory limit",), silent=("OOMKilled",), world=HERE),
    Case("out of memory with another code", crashing(looping(1, reason="OOMKilled")), "crash-out-of-memory", world=HERE),
    Case(
        "killed by its liveness probe",
        crashing(looping(137)),
        "crash-liveness",
        world=HERE | {"events": [event("Killing", "Container main failed liveness probe, will be restarted", type="Normal")]},
    ),
    Case(
        "another container's probe",
        crashing(looping(137)),
        "crash-killed",
        world=HERE | {"events": [event("Killing", "Container side failed liveness probe, will be restarted", container="side")]},
    ),
    Case("bus error: 64 MiB of /dev/shm", crashing(looping(135)), "crash-shm", says=("/dev/shm is too small", "the default, 64 MiB", "medium: Memory"), world=HERE),
    Case("bus error with a volume in memory", crashing(looping(135), volumes=(SHM,)), "crash-shm", says=("may hold 2 GiB",), silent=("default",), world=HERE),
    Case("bus error in the last words", crashing(looping(1, message="RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.")), "crash-shm", world=HERE),
    Case("GPU memory", crashing(looping(1, message="torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")), "crash-gpu-memory", says=("Its last words: torch.cuda",), world=HERE),
    Case("no module", crashing(looping(1, message="ModuleNotFoundError: No module named 'apex'")), "crash-no-module", world=HERE),
    Case("no data", crashing(looping(1, message="FileNotFoundError: [Errno 2] No such file or directory: '/data/train'")), "crash-no-file", world=HERE),
    Case("python cannot open the start file", crashing(looping(2, message="python: can't open file '/code/train.py'")), "crash-no-file", world=HERE),
    Case("rights", crashing(looping(1, message="PermissionError: [Errno 13] Permission denied: '/out'")), "crash-permission", world=HERE),
    Case("ends well, again and again", crashing(looping(0, reason="Completed", message="no such file or directory")), "crash-ended", says=("exit code 0",), world=HERE),
    Case("nobody knows", crashing(looping(None, reason="ContainerStatusUnknown")), "crash-lost", world=HERE),
    Case("terminated and not yet back", crashing(waiting("Error", state="terminated", exit_code=1)), "crash-error", world=HERE),
    Case("an init container", crashing(looping(1, name="fetch", init=True), waiting("PodInitializing"), phase="Pending"), "crash-error", says=("container fetch",), world=HERE),
    Case("one runs, another does not stay up", crashing(up(name="side"), looping(1)), "crash-error", world=HERE),
]  # fmt: skip

STARTS = [
    Case("no start file", crashing(waiting("RunContainerError", OCI + 'exec: "/start.sh": stat /start.sh: no such file or directory: unknown')), "start-no-start-file", says=("does not exist: /start.sh",), world=HERE),
    Case("not in PATH", crashing(waiting("CreateContainerError", OCI + 'exec: "pyhton": executable file not found in $PATH: unknown')), "start-no-start-file", says=("pyhton",), world=HERE),
    Case("not executable", crashing(waiting("RunContainerError", OCI + 'exec: "/start.sh": permission denied: unknown')), "start-not-executable", says=("chmod +x /start.sh",), world=HERE),
    Case("another processor", crashing(looping(1, reason="StartError", message="exec /usr/bin/python: exec format error")), "start-exec-format", world=HERE),
    Case("Docker: cannot run", crashing(looping(127, reason="ContainerCannotRun", message='OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "train": executable file not found in $PATH: unknown')), "start-no-start-file", world=HERE),
    Case("driver too old, not a missing file", crashing(waiting("RunContainerError", OCI + "error running hook #0: exit status 1, stdout: , stderr: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver")), "start-driver-too-old", world=HERE),
    Case("driver updated without a reboot", crashing(waiting("RunContainerError", OCI + "stderr: nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown")), "start-driver-mismatch", says=("reboot",), world=HERE),
    Case("driver broken, not a missing file", crashing(waiting("RunContainerError", OCI + "stderr: Auto-detected mode as 'legacy' nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory")), "start-driver-broken", world=HERE),
    Case("the runtime itself is broken, not the start file", crashing(waiting("CreateContainerError", "OCI runtime create failed: unable to retrieve OCI runtime error (open /run/containerd/x/log.json: no such file or directory): fork/exec /usr/bin/nvidia-container-runtime: permission denied: unknown")), "start-runtime-broken", world=HERE),
    Case("working directory", crashing(waiting("RunContainerError", OCI + 'chdir to cwd ("/code") set in config.json failed: no such file or directory')), "start-workdir", world=HERE),
    Case("a file over a directory", crashing(waiting("CreateContainerError", OCI + 'error mounting "/x" to rootfs at "/y": not a directory: unknown: Are you trying to mount a directory onto a file')), "start-mount-kind", world=HERE),
    Case("hook", crashing(waiting("PostStartHookError", 'Exec lifecycle hook ([/hook.sh]) for Container "main" failed - error: command exited with 1')), "start-hook", world=HERE),
    Case("slow", crashing(waiting("CreateContainerError", "context deadline exceeded")), "start-runtime-slow", world=HERE),
    Case("disk", crashing(waiting("CreateContainerError", "mkdir /var/lib/docker/x: no space left on device")), "start-disk-full", world=HERE),
    Case("told by the event", crashing(waiting("RunContainerError")), "start-no-start-file", world=HERE | {"events": [event("Failed", 'Error: failed to start container "main": exec: "/x": no such file or directory')]}),
    Case("something new", crashing(waiting("RunContainerError", "the moon is full")), "start-other", says=("the moon is full",), world=HERE),
]  # fmt: skip


@pytest.mark.parametrize(
    "case", CASES + STARTS, ids=[f"crash: {n}" for n in names(CASES)] + [f"start: {n}" for n in names(STARTS)]
)
def test_crash(case: Case) -> None:
    check(case, "crashing")


def test_every_word_has_its_sentences() -> None:
    crashes = {*_CODES.values(), *(word for word, _ in _LAST_WORDS), "OUT_OF_MEMORY", "LOST", "LIVENESS", "SIGNAL"}
    starts = {*(word for word, _ in _START), "OTHER"}
    wanted = {f"CRASH_{word}" for word in crashes} | {f"START_{word}" for word in starts}
    assert {f"{name}{end}" for name in wanted for end in ("", "_ADVICE")} <= set(Key.__members__)


@given(st.text(), st.one_of(st.none(), st.integers()), st.one_of(st.none(), st.integers(0, 64)))
def test_no_ending_breaks_it(message: str, code: int | None, signal: int | None) -> None:
    last = TerminationFact(message=message, exit_code=code, signal=signal)
    status = waiting("CrashLoopBackOff", last=last)
    given_pod = crashing(status)
    assert_speaks(explain_pod(given_pod, make_world(), NOW))
    cannot_start(given_pod, waiting("RunContainerError", message), make_world())
