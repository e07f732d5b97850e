"""Causes of pod-start-failed: which explanations each stands for, and what a container's earlier failure said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from monitor.detect.base import RuleContext
from monitor.detect.lib.pods import advice_keys
from monitor.explain import crash
from monitor.explain.log_tail import log_tail_of
from monitor.explain.model import PodDiagnosis
from monitor.explain.refused import EVICTED_CAUSES, REFUSED_CAUSES
from monitor.facts.kube import ContainerStatusFact, PodFact, TerminationFact
from monitor.facts.log_tails import LogTailFact

PROGRAM, DISTRIBUTED, UNKNOWN = "program", "distributed", "unknown"
# Causes of the explanations by cause of the finding. Of the others, exits are "program" and all else is "unknown".
_EXPLAINED = {
    "file-not-found": (
        "crash-no-command", "crash-no-file", "crash-no-module", "crash-missing-symbol", "start-no-start-file",
        "start-workdir",
    ),
    "not-executable": (
        "crash-not-executable", "crash-bad-executable", "crash-illegal", "start-not-executable", "start-exec-format",
    ),
    "permission": ("crash-permission",),
    "out-of-memory": ("crash-out-of-memory", "crash-gpu-memory", "crash-killed", "crash-host-memory"),
    "bus-error": ("crash-shm", "crash-segfault", "crash-native-crash"),
    "gpu-fault": ("crash-gpu-ecc", "crash-gpu-lost", "crash-gpu-error", "crash-nccl-cuda"),
    "gpu-driver": (
        "start-driver-mismatch", "start-driver-too-old", "start-driver-not-loaded", "start-driver-broken",
        "start-gpu-lost", "start-toolkit-broken", "start-cdi", "crash-gpu-driver", "crash-driver-too-old",
        "crash-driver-mismatch", "crash-driver-not-loaded",
    ),
    "node-trouble": (
        "start-cgroup", "start-keyring", "start-inotify", "start-pids-limit", "start-node-limit", "start-disk-full",
        "start-node-disk", "start-node-store", "start-runtime-broken", "start-runtime-slow", "start-device-missing",
        "sandbox-runtime-class",
    ),
    "security-profile": ("start-apparmor", "start-seccomp", "start-security-profile"),
    "volume": ("start-mount-kind", "start-subpath", "start-mount-dead", "start-read-only-root"),
    "storage": ("crash-read-only", "crash-disk-full", "crash-disk-quota", "crash-storage-io", "crash-mount-dead"),
    "network": (
        "crash-dns", "crash-refused", "crash-timeout", "crash-http", "crash-http-denied", "crash-http-missing",
        "crash-http-error", "crash-rate-limited",
    ),
    "limit": ("crash-inotify", "crash-pids-limit", "crash-open-files", "crash-node-limit"),
    DISTRIBUTED: (
        "crash-nccl", "crash-nccl-timeout", "crash-nccl-peer", "crash-nccl-system", "crash-rank-failed",
    ),
    "config": ("bad-configuration", "start-user-missing", "start-memory-limit-low", "start-hook"),
    "refused": REFUSED_CAUSES,
    "evicted": EVICTED_CAUSES,
    PROGRAM: (
        "crash-python-exception", "crash-arguments", "crash-cuda-illegal-access", "crash-cuda-assert",
        "crash-cuda-arch", "crash-asked-to-stop",
    ),
}  # fmt: skip
_CAUSES = {explained: cause for cause, several in _EXPLAINED.items() for explained in several}
CAUSES = (*_EXPLAINED, UNKNOWN)
_CONFIG = ("config-object-missing", "config-key-missing", "config-root", *_EXPLAINED["config"][1:])
_REFUSED = ("devices", "devices-ill", "node-refused", "admission-topology", "admission-affinity", "admission-other")
_EVICTED = ("evicted", "evicted-disk", *EVICTED_CAUSES[1:])
ADVICE = {cause: advice_keys(*causes) for cause, causes in _EXPLAINED.items()} | {
    "config": advice_keys(*_CONFIG),
    "refused": advice_keys(*_REFUSED),
    "evicted": advice_keys(*_EVICTED),
    PROGRAM: advice_keys(*_EXPLAINED[PROGRAM], "crash-error", "crash-usage", "crash-aborted", "crash-ended"),
    UNKNOWN: advice_keys("start-other"),
}


def cause_of(answer: PodDiagnosis) -> str:
    """Cause of the finding about a pod with this diagnosis."""
    return _CAUSES.get(answer.cause, PROGRAM if answer.cause.startswith("crash-") else UNKNOWN)


@dataclass(frozen=True)
class FailingContainer:
    """A failing container: since when, and what the log of its last failure with this exit code said."""

    since: float | None = None
    code: int | None = None
    tail: LogTailFact | None = None

    @classmethod
    def load(cls, memory: Any) -> FailingContainer:
        if isinstance(memory, int | float):
            return cls(since=memory)
        if not isinstance(memory, dict) or not isinstance(memory.get("since"), int | float):
            return cls()
        try:
            tail = msgspec.convert(memory.get("tail"), LogTailFact | None)
        except msgspec.ValidationError:
            tail = None
        return cls(memory["since"], memory.get("code"), tail)

    def dump(self) -> Any:
        if self.tail is None:
            return self.since
        return {"since": self.since, "code": self.code, "tail": msgspec.to_builtins(self.tail)}

    def updated(self, pod: PodFact, status: ContainerStatusFact, context: RuleContext) -> FailingContainer:
        end = crash.last_termination(status)
        tail = log_tail_of(pod, end, context.facts) or self.tail_of(end)
        return FailingContainer(min(self.since or context.now, context.now), end.exit_code, tail)

    def tail_of(self, end: TerminationFact) -> LogTailFact | None:
        return self.tail if self.code == end.exit_code else None
