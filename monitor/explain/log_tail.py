"""What the end of a container's log says about its exit, as its agent reports it or the pod's status quotes it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from monitor.explain.keys import Key
from monitor.explain.quote import quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact, TerminationFact
from monitor.facts.log_tails import LogCause, LogTailFact
from monitor.facts.program_logs import classify_log
from monitor.facts.text import Text, Value

# Signals from outside end a program whatever its log says: an out-of-memory kill, the end of the grace period.
_KILLED_FROM_OUTSIDE = (137, 143)
# Members of the CRASH family of texts; every other class has the member of its name.
_MEMBERS = {
    LogCause.CUDA_OOM: "GPU_MEMORY",
    LogCause.MISSING_MODULE: "NO_MODULE",
    LogCause.MISSING_FILE: "NO_FILE",
    LogCause.OUT_OF_MEMORY: "HOST_MEMORY",
    LogCause.SEGFAULT: "NATIVE_CRASH",
    LogCause.USAGE: "ARGUMENTS",
    LogCause.NOT_EXECUTABLE: "BAD_EXECUTABLE",
    LogCause.SIGTERM: "ASKED_TO_STOP",
}
_SAY_NOTHING = frozenset({LogCause.APP.value, LogCause.UNKNOWN.value})
_CAUSES = {cause.value: cause for cause in LogCause}


def log_tail_of(pod: PodFact, end: TerminationFact, facts: ClusterFacts) -> LogTailFact | None:
    """What the agent found at the end of the log of a terminated container; None if it has not read it."""
    snapshot = facts.snapshots.get(pod.node or "")
    if snapshot is None or end.container_id is None:
        return None
    return next((tail for tail in snapshot.log_tails or () if tail.container_id == end.container_id), None)


def message_tail(end: TerminationFact) -> LogTailFact | None:
    """What the termination message says; with `terminationMessagePolicy` it is the end of the log."""
    return _classified(end.message) if end.message else None


@lru_cache(maxsize=256)
def _classified(message: str) -> LogTailFact:
    result = classify_log(message)
    return LogTailFact(container_id="", cause=result.name.value, exception=result.exception, rank=result.rank)


def proves(end: TerminationFact, tail: LogTailFact | None) -> bool:
    """Whether the log says why the container ended."""
    return crash_member(end, tail) is not None


def log_counts(end: TerminationFact) -> bool:
    """Whether the log may say why a container ended: it failed and was not killed from outside."""
    return bool(end.exit_code) and end.exit_code not in _KILLED_FROM_OUTSIDE


def crash_member(end: TerminationFact, tail: LogTailFact | None) -> str | None:
    """Member of the CRASH family of texts that the log proves; None if exit code and signal say more."""
    if tail is None or tail.cause in _SAY_NOTHING or not log_counts(end):
        return None
    cause = _CAUSES.get(tail.cause)  # an agent that is newer may know others
    if cause is LogCause.PYTHON_EXCEPTION and tail.exception is None:
        return None
    return None if cause is None else _MEMBERS.get(cause, cause.name)


def log_values(tail: LogTailFact | None) -> dict[str, Value]:
    """Values of the texts about a log."""
    return {"exception": quote(tail.exception)} if tail is not None and tail.exception else {}


def log_evidence(tail: LogTailFact | None) -> Iterable[Text]:
    """The line of the log, and the rank that failed first."""
    if tail is not None and tail.rank is not None:
        yield Text(Key.FIRST_RANK, {"rank": tail.rank})
    if tail is not None and tail.line:
        yield Text(Key.LOG_SAYS, {"message": quote(tail.line)})
