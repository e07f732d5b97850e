"""Why a container ended, according to the end of its log. The log itself stays on the node."""

from __future__ import annotations

from enum import StrEnum

from monitor.facts.base import BoundedFloat, BoundedInt, BoundedText, Fact, Identifier


class LogCause(StrEnum):
    """Class of a failure that the end of a log proves."""

    CUDA_OOM = "cuda-oom"
    CUDA_ILLEGAL_ACCESS = "cuda-illegal-access"
    CUDA_ASSERT = "cuda-assert"
    CUDA_ARCH = "cuda-arch"
    GPU_ECC = "gpu-ecc"
    GPU_LOST = "gpu-lost"
    GPU_ERROR = "gpu-error"  # a CUDA fault of the GPU or of the program
    GPU_DRIVER = "gpu-driver"
    DRIVER_TOO_OLD = "driver-too-old"
    DRIVER_MISMATCH = "driver-mismatch"
    DRIVER_NOT_LOADED = "driver-not-loaded"
    SHM = "shm"
    OUT_OF_MEMORY = "out-of-memory"
    SEGFAULT = "segfault"
    PIDS_LIMIT = "pids-limit"
    OPEN_FILES = "open-files"
    INOTIFY = "inotify"
    NODE_LIMIT = "node-limit"
    NCCL = "nccl"
    NCCL_TIMEOUT = "nccl-timeout"
    NCCL_PEER = "nccl-peer"
    NCCL_SYSTEM = "nccl-system"
    NCCL_CUDA = "nccl-cuda"
    RANK_FAILED = "rank-failed"
    MISSING_FILE = "missing-file"
    PERMISSION = "permission"
    READ_ONLY = "read-only"
    DISK_FULL = "disk-full"
    DISK_QUOTA = "disk-quota"
    STORAGE_IO = "storage-io"
    MOUNT_DEAD = "mount-dead"
    MISSING_MODULE = "missing-module"
    MISSING_SYMBOL = "missing-symbol"
    DNS = "dns"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    HTTP = "http"  # an HTTP error that may have several reasons
    HTTP_DENIED = "http-denied"
    HTTP_MISSING = "http-missing"
    HTTP_ERROR = "http-error"
    RATE_LIMITED = "rate-limited"
    USAGE = "usage"
    NOT_EXECUTABLE = "not-executable"
    SIGTERM = "sigterm"
    PYTHON_EXCEPTION = "python-exception"
    APP = "app"  # the program failed, and its log does not say why
    UNKNOWN = "unknown"


# What the processes of a distributed job report after another one of them has failed.
CONSEQUENCES = frozenset(
    {
        LogCause.NCCL, LogCause.NCCL_TIMEOUT, LogCause.NCCL_PEER, LogCause.NCCL_SYSTEM, LogCause.RANK_FAILED,
        LogCause.SIGTERM, LogCause.TIMEOUT, LogCause.REFUSED, LogCause.APP, LogCause.UNKNOWN,
    }
)  # fmt: skip


class LogTailFact(Fact, frozen=True, kw_only=True):
    """The class of a container's failure and the line of its log that proves it, shortened and without secrets.

    `cause` is a LogCause, or that of a newer agent. `exception` is the name of the Python exception, `rank` the process
    of a distributed job that failed first. `line` is None if none proves the cause or the agent must not send lines.
    """

    container_id: Identifier
    cause: Identifier
    line: BoundedText | None = None
    exception: Identifier | None = None
    rank: BoundedInt | None = None
    finished_at: BoundedFloat | None = None
