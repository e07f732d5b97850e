"""Wording of drivers, CUDA, NCCL, PyTorch, TensorFlow, JAX, glibc and launchers that identifies a cause.

Each entry is a program's own sentence, not a common phrase, so that it counts wherever it appears. Fragments are in
lower case; of a tuple, all must occur. The first entry that matches a line wins: specific sentences come first.
"""

from __future__ import annotations

from monitor.facts.log_tails import LogCause as Cause
from monitor.facts.program_logs.evidence import Verdict, Weight

Fragment = str | tuple[str, ...]
_SHM_PATH = "/dev/shm"  # noqa: S108  # a text, not a path that is opened

_GPU_MEMORY: tuple[Fragment, ...] = (
    "cuda out of memory", "cuda error: out of memory", "cuda_error_out_of_memory", "cudaerrormemoryallocation",
    "hip out of memory", "cublas_status_alloc_failed", "cudnn_status_alloc_failed",
    ("cuda runtime error", "out of memory"), ("cuda failure", "out of memory"), ("cuda error", "out of memory"),
    "error 2: out of memory",
    ("resource_exhausted", "out of memory"), ("resource_exhausted", "failed to allocate"),
    ("oom when allocating tensor", "gpu"), ("ran out of memory trying to allocate", "gpu"),
    "no available memory for the cache blocks", "less than desired gpu memory utilization",
    ("cuda", "failed to allocate", "bytes"), "cudamalloc failed: out of memory",
)  # fmt: skip
_SHARED_MEMORY: tuple[Fragment, ...] = (
    "insufficient shared memory", "out of shared memory", "unable to write to file </torch_",
    ("unable to mmap", "</torch_"), "unable to allocate shared memory", ("posix_fallocate", "no space left"),
    (_SHM_PATH, "no space left"), (_SHM_PATH, "[errno 28]"), ("nccl warn", _SHM_PATH),
    ("nccl-", "shared memory segment"),
    ("killed by signal", "bus error"), ("shm", "nccl warn", "no space left"), "fatal python error: bus error",
    ("unable to open shared memory object", "no space left"), "increase shared memory size",
    ("shared memory", "docker", "--shm-size"),
)  # fmt: skip
_HOST_MEMORY: tuple[Fragment, ...] = (
    "defaultcpuallocator", "std::bad_alloc", ("oom when allocating tensor", "cpu"), "killed by signal: killed",
    ("unable to allocate", "for an array with shape"), "killed due to memory pressure", "oom-kill", "oomkilled",
    "java.lang.outofmemoryerror", "out of memory: killed process", "killed due to the node running low on memory",
    "perhaps out of memory?", "signal: killed", "内存不足",
)  # fmt: skip
_MODULES: tuple[Fragment, ...] = (
    "no module named", "cannot import name", "no matching distribution found for",
    "could not find a version that satisfies the requirement", "no package metadata was found for",
    "numpy.core.multiarray failed to import", "numpy.dtype size changed", "partially initialized module",
)  # fmt: skip
_SYMBOLS: tuple[Fragment, ...] = (
    "undefined symbol", "symbol lookup error", ("version `", "not found (required by"), "symbol not found in flat",
    ("cannot open shared object file", ".so"), ("could not load library", ".so"), ("could not load dynamic lib", ".so"),
    "error while loading shared libraries", "unable to load any of {lib", "invalid elf header",
)  # fmt: skip
_THREADS: tuple[Fragment, ...] = (
    "can't start new thread", "fork: retry", "pthread_create failed", "thread creation failed",
    ("fork", "resource temporarily unavailable"), ("clone", "resource temporarily unavailable"),
    ("what()", "resource temporarily unavailable"),
    "unable to create new native thread", "newosproc",
)  # fmt: skip
_NO_DRIVER: tuple[Fragment, ...] = (
    "found no nvidia driver", "no cuda gpus are available", "no cuda-capable device", "cuda_error_no_device",
    "couldn't communicate with the nvidia driver", "nvml: driver not loaded", "nvml_error_driver_not_loaded",
    "nvml shared library not found", "nvmlerror_librarynotfound", "libcuda.so.1: cannot open shared object file",
    "libnvidia-ml.so.1: cannot open shared object file", "libcuda.so cannot be found",
    "object on a cuda device but torch.cuda.is_available() is false", "cudaerrornodevice",
    "nvmlerror_drivernotloaded", "can't communicate with nvidia driver",
)  # fmt: skip
_NCCL_PEER: tuple[Fragment, ...] = (
    "remote process exited or there was a network error", "ncclremoteerror", "connection closed by remote peer",
    ("nccl warn", "got completion"), ("call to recv from", "failed"), ("call to send to", "failed"),
    ("nccl warn", "connection reset by peer"), ("nccl warn", "broken pipe"), ("socketprogress", "connection reset"),
    ("store->get", "connection reset by peer"), ("store->get", "broken pipe"), ("gloo", "connection closed by peer"),
    ("gloo", "connection reset by peer"), ("gloo", "broken pipe"), "connection closed by localrank",
    ("net/ib", "got completion"), ("tcpstore", "connection reset by peer"), ("tcpstore", "broken pipe"),
)  # fmt: skip
_NCCL_TIMEOUT: tuple[Fragment, ...] = (
    "caught collective operation timeout", "milliseconds before timing out",
    ("nccl", "operations have failed or timed"),
    ("store->get", "timeout"), ("gloo", "timed out waiting"), ("nccl", "collective timeout"), "timeout at nccl work",
    "monitoredbarrier", ("watchdog", "timed out after"),
    "stop making progress on watchdog", "horovod: one or more tensors were submitted to be reduced",
)  # fmt: skip
_NCCL_SETUP: tuple[Fragment, ...] = (
    "no socket interface found", ("ibv_", "failed"), ("nccl warn", "call to bind failed"), ("nccl warn", "memlock"),
    ("nccl warn", "call to connect to", "failed"), ("nccl", "no usable interface"),
    ("socketstartconnect", "failed"),
)  # fmt: skip

_TABLE: tuple[tuple[Cause, Weight, tuple[Fragment, ...]], ...] = (
    (Cause.INOTIFY, Weight.WORDING, (
        ("inotify", "too many open files"), ("inotify", "no space left"), "inotify watch limit reached",
        ("fsnotify", "too many open files"), ("fsnotify", "no space left"), "upper limit on inotify",
        "enospc: system limit",
    )),
    (Cause.OPEN_FILES, Weight.WORDING, ("too many open files", "received 0 items of ancdata", "[errno 24]")),
    (Cause.NODE_LIMIT, Weight.WORDING, (
        "inotify watch limit reached", "inotify instances", ("inotify", "no space left"), ("max_map_count", "too low"),
    )),
    (Cause.SHM, Weight.WORDING, _SHARED_MEMORY),
    (Cause.GPU_ECC, Weight.WORDING, ("uncorrectable ecc error", "cuda_error_ecc_uncorrectable", "eccuncorrectable")),
    (Cause.CUDA_OOM, Weight.WORDING, _GPU_MEMORY),
    (Cause.CUDA_ILLEGAL_ACCESS, Weight.WORDING, (
        "an illegal memory access was encountered", "cuda_error_illegal_address", "cudaerrorillegaladdress",
    )),
    (Cause.CUDA_ASSERT, Weight.WORDING, (
        "device-side assert triggered", "cuda_error_assert", "cudaerrorassert", (".cu:", "block: [", "assertion `"),
    )),
    (Cause.CUDA_ARCH, Weight.WORDING, (
        "no kernel image is available", "cuda_error_no_binary_for_gpu", "invalid device function",
        "cudaerrornokernelimagefordevice", "flashattention only supports", "is not defined for option 'gpu-name'",
    )),
    (Cause.DRIVER_TOO_OLD, Weight.WORDING, (
        "nvidia driver on your system is too old", "cuda driver version is insufficient", "insufficient_driver",
        "compiled with an unsupported toolchain", "cuda_error_unsupported_ptx_version", "cudaerrorinsufficientdriver",
    )),
    (Cause.DRIVER_MISMATCH, Weight.WORDING, (
        "driver/library version mismatch", "nvml/rm version mismatch", "lib_rm_version_mismatch", "error 803:",
        "error 804:",
        "forward compatibility was attempted on non supported hw", "cuda_error_system_driver_mismatch",
        "unsupported display driver / cuda driver combination", "cuda_error_compat_not_supported",
        ("kernel version", "does not match dso version"),
    )),
    (Cause.GPU_LOST, Weight.WORDING, (
        "gpu is lost", "fallen off the bus", "failed to initialize nvml: unknown error", "nvmlerror_gpuislost",
        ("unable to determine the device handle for gpu", "unknown error"), "nvml_error_gpu_is_lost",
    )),
    (Cause.DRIVER_NOT_LOADED, Weight.WORDING, _NO_DRIVER),
    (Cause.GPU_DRIVER, Weight.WORDING, (
        "cuda unknown error - this may be due to an incorrectly set up environment", "error 802:",
        "cuda_error_system_not_ready", "failed to initialize nvml", "unexpected error from cudagetdevicecount",
    )),
    (Cause.GPU_ERROR, Weight.CUDA_FAULT, (
        "unspecified launch failure", "misaligned address", "cuda error: unknown error", "cuda_error_launch_failed",
        "cuda error: an illegal instruction", "cublas_status_execution_failed", "cudnn_status_execution_failed",
        "cublas_status_internal_error", "cudnn_status_internal_error", "the launch timed out and was terminated",
        "cuda-capable device(s) is/are busy or unavailable", "all cuda-capable devices are busy or unavailable",
        "cublas_status_not_initialized", "cudnn_status_mapping_error", "uncorrectable nvlink error",
        "cuda error: hardware stack error", "cuda error: invalid program counter", "cudaerrorlaunchfailure",
    )),
    (Cause.NCCL_SYSTEM, Weight.NCCL_SETUP, _NCCL_SETUP),
    (Cause.NCCL_TIMEOUT, Weight.NCCL_TIMEOUT, _NCCL_TIMEOUT),
    (Cause.NCCL_PEER, Weight.NCCL_PEER, _NCCL_PEER),
    (Cause.NCCL_CUDA, Weight.NCCL_RESULT, ("unhandled cuda error", "ncclunhandledcudaerror", "nccl warn cuda failure")),
    (Cause.NCCL_SYSTEM, Weight.NCCL_RESULT, ("unhandled system error", "ncclsystemerror")),
    (Cause.NCCL, Weight.COLLECTIVE, (
        "nccl error", "ncclinternalerror", "ncclinvalidusage", "ncclinvalidargument", "nccl communicator was aborted",
        "nccl failure",
    )),
    (Cause.PIDS_LIMIT, Weight.WORDING, _THREADS),
    (Cause.OUT_OF_MEMORY, Weight.WORDING, _HOST_MEMORY),
    (Cause.SEGFAULT, Weight.FAILURE, (
        "fatal python error: segmentation fault", "signal: segmentation fault", ("killed by signal", "segmentation"),
        "segmentation fault (core dumped)", "sigsegv", "segfault encountered", "段错误",
    )),
    (Cause.MISSING_SYMBOL, Weight.WORDING, _SYMBOLS),
    (Cause.MISSING_MODULE, Weight.WORDING, _MODULES),
    (Cause.DISK_FULL, Weight.WORDING, (
        ("inline_container.cc", "file write failed"), ("inline_container.cc", "unexpected pos"),
        "database or disk is full", "not enough disk space", "os error 28)", ("pytorchstreamwriter", "failed writing"),
    )),
    (Cause.DISK_QUOTA, Weight.WORDING, ("disk quota exceeded", "[errno 122]", "os error 122)", "超出磁盘限额")),
    (Cause.MOUNT_DEAD, Weight.WORDING, (
        "stale file handle", "stale nfs file handle", "[errno 116]", "transport endpoint is not connected",
        "[errno 107]", "cannot send after transport endpoint shutdown", "[errno 108]", "[errno 112]",
    )),
    (Cause.SIGTERM, Weight.TEARDOWN, (("process", "got signal: 15"), ("process", "got signal: 2"), ("got signal: 1",))),
    (Cause.TIMEOUT, Weight.CONNECTION, (
        ("client socket has timed out",), ("client socket has failed", "no route to host"),
        ("client socket has failed", "timed out"), ("client socket has failed", "network is unreachable"),
    )),
    (Cause.REFUSED, Weight.CONNECTION, (("client socket has failed", "connection refused"),)),
    (Cause.DNS, Weight.WORDING, ("unable to resolve host address",)),
    (Cause.DNS, Weight.CONNECTION, (("cannot be retrieved (gai error",),)),
)  # fmt: skip


def match_wording(lower: str) -> Verdict | None:
    """Cause named by the wording of a program in a lower-case text."""
    for cause, weight, fragments in _TABLE:
        for fragment in fragments:
            if fragment in lower if isinstance(fragment, str) else all(part in lower for part in fragment):
                return Verdict(cause, weight)
    return None
