"""Containers that exit or cannot start: exit codes, signals and container runtime messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from monitor.explain.error_chain.causes import PullFailureCause, StartFailureCause
from monitor.explain.error_chain.pulls import classify_pull
from monitor.explain.error_chain.starts import classify_start
from monitor.explain.keys import Key
from monitor.explain.log_tail import crash_member, log_evidence, log_tail_of, log_values, message_tail, proves
from monitor.explain.model import PodDiagnosis, PodStatus, deciding_containers, family_diagnosis, pod_values
from monitor.explain.quote import quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import ContainerStatusFact, PodFact, TerminationFact
from monitor.facts.log_tails import LogTailFact
from monitor.facts.text import Text, Value

SIGNALS = {2: "SIGINT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
START_FAILED_REASONS = ("StartError", "ContainerCannotRun")
_RUNTIME_REASONS = ("Failed", "FailedPostStartHook", "FailedPreStartHook")
SANDBOX_CAUSES = (
    StartFailureCause.NETWORK,
    StartFailureCause.CNI_AUTH,
    StartFailureCause.NO_ADDRESS,
    StartFailureCause.CNI_MISSING,
    StartFailureCause.PAUSE_IMAGE,
    StartFailureCause.RUNTIME_CLASS,
)
_SHARED_CAUSES = (StartFailureCause.DISK_FULL, StartFailureCause.RUNTIME_SLOW, StartFailureCause.OTHER)
# Faults of the node rather than of one pod.
_NODE_CAUSES = tuple(
    f"start-{cause}"
    for cause in (
        StartFailureCause.DRIVER_MISMATCH,
        StartFailureCause.DRIVER_NOT_LOADED,
        StartFailureCause.DRIVER_BROKEN,
        StartFailureCause.TOOLKIT_BROKEN,
        StartFailureCause.CDI,
        StartFailureCause.CGROUP,
        StartFailureCause.KEYRING,
        StartFailureCause.NODE_DISK,
        StartFailureCause.RUNTIME_BROKEN,
    )
)
MAX_COMPARED_PODS = 100
DEFAULT_SHM_BYTES = 64 * 1024**2  # container runtimes' default size of /dev/shm

# What runc and the shell of an image print if the kernel does not execute the program.
_EXEC_FAILED = re.compile(r"(?:standard_init_linux\.go:\d+: )?exec (?:user process caused:|\S+:) ")
_EXIT_CODE_CAUSES = {
    0: "ENDED",
    1: "ERROR",
    2: "USAGE",
    126: "NOT_EXECUTABLE",
    127: "NO_COMMAND",
    130: "INTERRUPTED",
    132: "ILLEGAL",
    134: "ABORTED",
    135: "SHM",
    137: "KILLED",
    139: "SEGFAULT",
    143: "TERMINATED",
}


def crashed(
    pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts, known_tail: LogTailFact | None = None
) -> PodDiagnosis:
    """Diagnosis of a container that has terminated, now or before its current back-off.

    `known_tail` is what its log said in an earlier evaluation; it counts while the agent reports nothing.
    """
    end = last_termination(status)
    if _was_not_executed(end):
        return start_diagnosis(pod, status.name, end.message or "", PodStatus.CRASHING)
    tail = log_tail_of(pod, end, facts) or known_tail
    proof = tail if proves(end, tail) else message_tail(end)
    cause = _cause(pod, status, end, facts, proof)
    values = _values(pod, status, end) | log_values(proof)
    evidence = (*_evidence(pod, status, end, cause), *log_evidence(tail))
    return family_diagnosis(PodStatus.CRASHING, "CRASH", cause, values, evidence)


def _was_not_executed(end: TerminationFact) -> bool:
    """Whether the kernel did not execute the program, according to the container's only words."""
    if not end.exit_code or not _EXEC_FAILED.match(end.message or ""):
        return False
    return classify_start(end.message).cause is not StartFailureCause.OTHER


def failed_containers(pod: PodFact) -> list[ContainerStatusFact]:
    """Containers that failed, now or before their last restart."""
    return [status for status in deciding_containers(pod) if last_termination(status).exit_code]


def last_termination(status: ContainerStatusFact) -> TerminationFact:
    """The current termination of a container, else the previous one."""
    if status.state == "terminated" or status.last is None:
        return TerminationFact(
            reason=status.reason,
            message=status.message,
            exit_code=status.exit_code,
            signal=status.signal,
            started_at=status.started_at,
            finished_at=status.finished_at,
            container_id=status.container_id,
        )
    return status.last


def _cause(
    pod: PodFact, status: ContainerStatusFact, end: TerminationFact, facts: ClusterFacts, proof: LogTailFact | None
) -> str:
    """The crash cause: from the kubelet's reason, then the log or termination message, then the exit code."""
    if end.reason == "OOMKilled":
        return "OUT_OF_MEMORY"
    if end.reason == "ContainerStatusUnknown":
        return "LOST"
    if end.exit_code in (137, 143) and _liveness(pod, status, facts):
        return "LIVENESS"
    if member := crash_member(end, proof):
        return member
    code = end.exit_code if end.exit_code is not None else (128 + end.signal if end.signal else None)
    if code is None:
        return "LOST"
    return _EXIT_CODE_CAUSES.get(code) or ("SIGNAL" if 128 < code <= 192 else "ERROR")


def _liveness(pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts) -> bool:
    events = (e for e in facts.events_of(pod) if e.container in (None, status.name) and e.reason == "Killing")
    return any("liveness" in (event.message or "") for event in events)


def _values(pod: PodFact, status: ContainerStatusFact, end: TerminationFact) -> dict[str, Value]:
    code = end.exit_code if end.exit_code is not None else 128 + (end.signal or 0)
    number = end.signal or (code - 128 if code > 128 else 0)
    return (
        {"container": status.name}
        | pod_values(pod)
        | {
            "code": code,
            "signal": SIGNALS.get(number, str(number)),
            "message": quote(end.message),
        }
    )


def _evidence(pod: PodFact, status: ContainerStatusFact, end: TerminationFact, cause: str) -> Iterable[Text]:
    if end.started_at is not None and end.finished_at is not None:
        seconds = max(0.0, end.finished_at - end.started_at)
        yield Text(Key.RAN_FOR, {"ran": seconds, "restarts": status.restart_count})
    elif status.restart_count:
        yield Text(Key.RESTARTED, {"restarts": status.restart_count})
    if cause == "OUT_OF_MEMORY":
        limits = next((container.limits for container in pod.containers if container.name == status.name), {})
        if "memory" in limits:
            yield Text(Key.MEMORY_LIMIT, {"limit": round(limits["memory"])})
    if cause == "SHM":
        yield shm_size(pod)
    if end.message:
        yield Text(Key.LAST_WORDS, {"message": quote(end.message)})


def shm_size(pod: PodFact) -> Text:
    """Size limit of the pod's /dev/shm; pods enlarge it with a memory-backed emptyDir."""
    sizes = [volume.size_limit_bytes for volume in pod.volumes if volume.medium == "Memory"]
    if not sizes:
        return Text(Key.SHM_DEFAULT, {"size": DEFAULT_SHM_BYTES})
    known = [size for size in sizes if size]
    return Text(Key.SHM_SIZE, {"size": round(max(known))}) if known else Text(Key.SHM_UNLIMITED)


def cannot_start(pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts) -> PodDiagnosis:
    """Diagnosis of a container that the runtime could not create or start."""
    # In CrashLoopBackOff the status message only names the back-off.
    status_message = None if status.reason == "CrashLoopBackOff" else status.message
    message = status_message or last_termination(status).message or event_message(pod, status, facts, _RUNTIME_REASONS)
    diagnosis = start_diagnosis(pod, status.name, message, PodStatus.CRASHING)
    alike = _alike_on_node(pod, diagnosis.cause, facts) if diagnosis.cause in _NODE_CAUSES else 0
    if not alike:
        return diagnosis
    shared = Text(Key.START_SHARED, {"node": pod.node or "?", "count": alike + 1})
    return replace(diagnosis, evidence=(shared, *diagnosis.evidence))


def _alike_on_node(pod: PodFact, cause: str, facts: ClusterFacts) -> int:
    """Other pods of the node that cannot start for the same reason."""
    messages = [
        [status.message or last_termination(status).message for status in other.statuses if status.state != "running"]
        for other in facts.bound.get(pod.node or "", ())[:MAX_COMPARED_PODS]
        if other.uid != pod.uid
    ]
    return sum(any(f"start-{classify_start(text).cause}" == cause for text in several if text) for several in messages)


def start_diagnosis(pod: PodFact, container: str, message: str, status: PodStatus) -> PodDiagnosis:
    """Diagnosis by the runtime's message. Causes that concern the whole pod have the texts of its sandbox."""
    answer = classify_start(message)
    values: dict[str, Value] = {"container": container, "node": pod.node or "?", "pod": pod.name}
    values |= {"namespace": pod.namespace, "file": answer.file or "?"}
    evidence = [Text(Key.RUNTIME_SAYS, {"message": quote(message)})] if message else []
    if (
        answer.cause is StartFailureCause.PAUSE_IMAGE
        and (pull := classify_pull(message).cause) is not PullFailureCause.UNKNOWN
    ):
        evidence.append(Text(Key.PAUSE_PULL, {"cause": pull.value}))
    sandbox = answer.cause in SANDBOX_CAUSES or (status is PodStatus.CREATING and answer.cause in _SHARED_CAUSES)
    return family_diagnosis(status, "SANDBOX" if sandbox else "START", answer.cause.name, values, evidence)


def event_message(pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts, reasons: tuple[str, ...]) -> str:
    """Message of the newest event of the container with one of these reasons."""
    events = [e for e in facts.events_of(pod) if e.reason in reasons and e.container in (None, status.name)]
    return (events[-1].message or "") if events else ""
