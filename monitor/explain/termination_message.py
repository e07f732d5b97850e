"""What a container's termination message says about its exit: members of the CRASH family of texts."""

from __future__ import annotations

from monitor.explain.quote import Fragments

# The first match in the lower-cased message wins.
MESSAGE_FRAGMENTS: Fragments[str] = (
    (
        "SHM",
        (
            "bus error", "insufficient shared memory", "out of shared memory", "unable to mmap",
            "creating shared memory segment", "nccl-shm", "unable to allocate shared memory",
        ),
    ),
    ("INOTIFY", ("inotify", "fsnotify")),
    ("OPEN_FILES", ("too many open files",)),
    (
        "GPU_MEMORY",
        ("cuda out of memory", "cuda_error_out_of_memory", "outofmemoryerror: cuda", "cuda error: out of memory"),
    ),
    ("GPU_ECC", ("uncorrectable ecc",)),
    ("CUDA_ILLEGAL_ACCESS", ("an illegal memory access was encountered",)),
    ("CUDA_ASSERT", ("device-side assert",)),
    ("CUDA_ARCH", ("no kernel image is available",)),
    ("DRIVER_TOO_OLD", ("driver on your system is too old", "cuda driver version is insufficient")),
    ("DRIVER_MISMATCH", ("driver/library version mismatch",)),
    ("GPU_LOST", ("gpu is lost", "fallen off the bus")),
    ("DRIVER_NOT_LOADED", ("found no nvidia driver", "couldn't communicate with the nvidia driver")),
    ("NCCL_TIMEOUT", ("collective operation timeout", "milliseconds before timing out")),
    ("NCCL_PEER", ("ncclremoteerror", "remote process exited or there was a network error")),
    ("NCCL_CUDA", ("ncclunhandledcudaerror", "nccl error: unhandled cuda error")),
    ("NCCL_SYSTEM", ("ncclsystemerror", "nccl error: unhandled system error")),
    ("NCCL", ("nccl error", "ncclinternalerror", "ncclinvalidusage")),
    (
        "GPU_GONE",
        ("no cuda-capable device", "cuda error", "acceleratorerror", "cublas_status", "cudnn_status"),
    ),
    ("HOST_MEMORY", ("std::bad_alloc", "defaultcpuallocator", "cannot allocate memory", "java.lang.outofmemoryerror")),
    ("PIDS_LIMIT", ("can't start new thread", "pthread_create failed", "unable to create new native thread")),
    ("ASKED_TO_STOP", ("got signal: 15", "received sigterm", "signalexception", "caught signal 15")),
    ("SEGFAULT", ("segmentation fault",)),
    ("ILLEGAL", ("illegal instruction",)),
    ("DISK_QUOTA", ("disk quota exceeded",)),
    ("DISK_FULL", ("no space left on device",)),
    ("MOUNT_DEAD", ("transport endpoint is not connected", "stale file handle")),
    ("MISSING_SYMBOL", ("undefined symbol", "error while loading shared libraries", "cannot open shared object file")),
    ("NO_MODULE", ("modulenotfounderror", "no module named", "importerror")),
    ("NO_FILE", ("filenotfounderror", "no such file or directory", "can't open file")),
    ("READ_ONLY", ("read-only file system",)),
    ("PERMISSION", ("permissionerror", "permission denied")),
)  # fmt: skip
