"""Cause of a container or sandbox that cannot be created or started: runtime, runc, its hooks, network plugin."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monitor.explain.error_chain import start_phrases as phrases
from monitor.explain.error_chain.causes import StartFailureCause as S
from monitor.explain.error_chain.parse import Chain, Clause, parse
from monitor.explain.error_chain.wording import find, says

_EXEC = re.compile(r"exec:? \"?(?P<file>[^\"\s:]+)|executable file `?\"?(?P<named>[^`\"\s]+)")
_STAT = re.compile(r"(?:stat|open|fork/exec|exec) (?P<path>/\S*)")
_DEVICE = re.compile(r"(?:stat|open|mknod|device|device path|device nodes: mount) \"?/dev/(?!shm|null|pts)")
# A system call on a file of the runtime or kubelet, not one within the container's root or a volume.
_NODE_FILE = re.compile(
    r"(?:open|write|read|mkdir|mkdirall|rename|fsync|sync|l?stat|readlink|symlink|unlinkat|remove|mount|chmod|chown|"
    r"creat|create|openat|file|directory) \"?"
    r"(?P<path>/(?:var/lib/(?:containerd|docker|containers|kubelet)|var/log/pods|run|var/run)/[^\s:\"]*)\"?"
    r"(?:: [^:]{0,80})?: (?:input/output error|read-only file system|structure needs cleaning)"
)
_NOT_NODE_FILE = ("/rootfs", "/merged", "/volumes/", "/volume-subpaths/", "/plugins/")
_CANNOT_FORK = re.compile(
    r"(?:fork|clone|exec|thread|setns|nsenter)\b[^:]{0,80}(?:: retry)?: resource temporarily unavailable"
)
_NOT_HOST_PATHS = ("/var/lib/kubelet/", "/var/lib/containerd", "/var/lib/docker", "/dev/", "/proc/", "/sys/", "/run/")
_VOLUME_PATH = re.compile(r"/pods/[^/\s]+/(?:volumes|volume-subpaths)/")
# The kubelet and containerd look for a host path or create it before the runtime mounts it.
_HOST_PATH = re.compile(
    r"(?:^|failed to generate spec: (?:failed to apply oci options: )?failed to (?:mkdir|stat) \"?/[^\s\"]{1,300}\"?: |"
    r"error while creating mount source path '?/[^\s']{1,300}'?: )"
    r"(?:l?stat|mkdir) (?P<path>/[^\s:]{1,300}): "
    r"(?:no such file or directory|read-only file system|not a directory)(?:: unknown)?$"
)
_NVIDIA_CLI = ("nvidia-container-cli", "nvidia-container-runtime-hook")
# An index, UUID or MIG device; device plugins also pass on a name of their own where they have found no card.
_UNKNOWN_DEVICE = re.compile(r"device error: (?:\d+(?::\d+)?|(?:gpu|mig)-[\w/-]+): unknown device")
_PLUGIN_SENTENCE = re.compile(r"device error: no-gpu-has-")
_NVIDIA_DEVICE = re.compile(r"(?:stat|open|mount operation) failed: /dev/nvidia(?:\d|-caps)")
# Files that Docker creates for every container: its own disk is read-only, not the container's root.
_DOCKER_FILE = re.compile(r"/var/lib/docker/containers/[^/\s]+/(?:resolv\.conf|hosts|hostname)")
_NO_SNAPSHOT = re.compile(r"snapshot \S{1,100} does not exist")
_MAX_BARE_CLAUSES = 3  # `exec: "file": error` without who calls it is what a container printed
_LAYER_FILE = re.compile(r"/overlay(?:2|fs)?/")
_RUNNING_HOOK = re.compile(r"error running (?:\w+ )?hook")
# Files of a cgroup, as crun and runc name them when they write a limit.
_CGROUP_FILE = re.compile(
    r"\b(?:devices\.(?:allow|deny)|memory\.(?:max|min|low|high|limit|swap|memsw|soft)|cpu\.(?:max|weight|shares|cfs)|"
    r"cpuset\.(?:cpus|mems)|pids\.max|(?:io|blkio)\.(?:max|weight|throttle|bfq)|cgroup\.(?:procs|subtree_control))"
)
_MEMORY_LIMIT_FILE = re.compile(r"\bmemory\.(?:max|limit_in_bytes|memsw\.limit_in_bytes|high)")
_FORBIDDEN_SYSCTL = re.compile(r"sysctl \"?[\w./-]+\"? (?:is )?not (?:allowed|in a separate kernel namespace)")
# What the runtime calls on the node; the container has programs of its own.
_RUNTIME_PROGRAM = re.compile(r"exec:? \"?(?:/\S*/)?(?:containerd-shim|runc|crun|conmon|kata-|runsc|youki)")
_TOOLKIT = re.compile(
    r"nvidia-container-cli|nvidia-container-runtime|nvidia-ctk|nvidia-cdi-hook|libnvidia-container|"
    r"(?<![\w-])nvidia-container-toolkit(?![\w-])|"  # the pods that install it have longer names
    r"could not select device driver|could not apply required modification"
)


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """Cause, the file that it is about if any, and the clause that decides."""

    cause: S
    file: str | None = None
    clause: Clause | None = None


def classify_start(message: str | None) -> StartAnswer:
    """Cause of a container that cannot be created or started; unknown messages yield OTHER."""
    chain = parse(message)
    file = _file(chain.low)
    for decide in (_of_gpu, _of_security, _of_network, _of_volume, _of_cgroup, _of_runtime, _of_program):
        if cause := decide(chain):
            return StartAnswer(cause, file, chain.last)
    return StartAnswer(S.OTHER, file, chain.last)


def _file(low: str) -> str | None:
    if match := _EXEC.search(low):
        return match["file"] or match["named"]
    match = _STAT.search(low)
    return match["path"] if match else None


def _of_gpu(chain: Chain) -> S | None:
    """NVIDIA's hook, its container runtime, CDI, and device nodes."""
    if says(chain.low, _NVIDIA_CLI) and (said := _after(chain.low, "nvidia-container-cli: ")):
        return _of_nvidia_cli(said)
    if cause := find(chain.low, phrases.NVML):
        return cause
    if "device plugin prestartcontainer" in chain.low:
        return S.DEVICE_PLUGIN
    if says(chain.low, phrases.CDI):
        cause = find(chain.end_low, phrases.NVIDIA_RUNTIME)
        return cause if cause is S.DRIVER_NOT_LOADED else S.CDI
    if says(chain.low, ("nvidia", "could not ")) and _TOOLKIT.search(chain.low):
        return find(chain.low, phrases.NVIDIA_RUNTIME) or S.TOOLKIT_BROKEN
    if "nvidia" in chain.low and _RUNNING_HOOK.search(chain.words):
        return S.TOOLKIT_BROKEN
    missing = "/dev/" in chain.low and says(chain.words, phrases.MISSING) and _DEVICE.search(chain.low) is not None
    return S.DEVICE_MISSING if missing or says(chain.low, phrases.DEVICE) else None


def _of_nvidia_cli(said: str) -> S | None:
    """nvidia-container-cli, which NVIDIA's hook calls."""
    if "unknown device" in said:
        return S.GPU_LOST if _UNKNOWN_DEVICE.search(said) else _of_device_name(said)
    if _NVIDIA_DEVICE.search(said):
        return S.DEVICE_MISSING
    cause = find(said, phrases.NVIDIA_CLI) or S.OTHER
    # A file of the driver that may not be opened exists.
    refused = says(said, ("permission denied", "operation not permitted"))
    return S.TOOLKIT_BROKEN if cause is S.DRIVER_NOT_LOADED and refused else cause


def _of_device_name(said: str) -> S:
    """What a device plugin passed on instead of a device: a sentence of its own where no card has room."""
    return S.DEVICE_PLUGIN if _PLUGIN_SENTENCE.search(said) else S.OTHER


def _after(low: str, speaker: str) -> str:
    """What a speaker says: the text after its last mention."""
    return low.rpartition(speaker)[2] if speaker in low else ""


def _of_security(chain: Chain) -> S | None:
    if "sysctl" in chain.low and _FORBIDDEN_SYSCTL.search(chain.low):
        return S.SYSCTL
    if "relabel" in chain.words and _VOLUME_PATH.search(chain.low):
        return S.RELABEL
    if "apparmor" in chain.words or "/attr/apparmor" in chain.low:
        return S.APPARMOR
    if ("seccomp" in chain.words or "/seccomp/" in chain.low) and not says(chain.low, phrases.LOADER):
        return S.SECCOMP
    if "session key" in chain.low or "create keyring" in chain.low:
        return S.KEYRING
    return (
        S.SECURITY_PROFILE
        if "selinux" in chain.words or "/attr/" in chain.low or "security label" in chain.low
        else None
    )


def _of_network(chain: Chain) -> S | None:
    """The network plugin of a sandbox. It calls the API server, daemons of its own and the kernel."""
    if says(chain.low, phrases.SANDBOX_IMAGE):
        return S.PAUSE_IMAGE
    if not says(chain.words.replace(phrases.SANDBOX_OF_CRIO, ""), phrases.NETWORK) or (
        "no space left on device" in chain.words and "netns" in chain.low
    ):
        return None
    if says(chain.words, phrases.MISSING) and says(chain.low, phrases.CNI_PATHS) and "dial " not in chain.low:
        return S.CNI_MISSING
    cause = find(chain.end_low, phrases.CNI)
    # A daemon that does not answer has not said what it lacks.
    return S.NETWORK if cause is None or (cause is S.NO_ADDRESS and "dial " in chain.low) else cause


def _of_volume(chain: Chain) -> S | None:
    """A mount of the container: what is mounted, where, and whether it is alive."""
    words = chain.words
    if says(chain.end, phrases.DEAD_MOUNT) and not says(words, phrases.BUS):
        return S.MOUNT_DEAD
    if cause := _of_source(chain):
        return cause
    volume = _VOLUME_PATH.search(chain.low) is not None
    if volume and ("file exists" in words or "input/output error" in words or "host is down" in words):
        return S.MOUNT_DEAD
    if "subpath" in words:
        return S.SUBPATH
    if "volume-subpaths" in chain.low and says(words, phrases.MISSING):
        return S.SUBPATH
    if says(words, ("are you trying to mount a directory", "not a directory", "is a directory")) and (
        ("mount" in words or "rootfs" in chain.low) and not ("chdir" in words or _starts_program(chain))
    ):
        return S.MOUNT_KIND
    if "read-only file system" in words and says(chain.low, phrases.MOUNT_POINT) and not _DOCKER_FILE.search(chain.low):
        return S.READ_ONLY_ROOT
    return None


def _of_source(chain: Chain) -> S | None:
    """What is to be mounted, before the runtime mounts it."""
    if phrases.NO_SOURCE in chain.words:
        return S.HOST_PATH if not _VOLUME_PATH.search(chain.low) else None
    if says(chain.words, phrases.MOUNT_SPEC):
        return S.MOUNT_SPEC
    if "stat /" in chain.low or "mkdir /" in chain.low:
        match = _HOST_PATH.search(chain.low)
        if match is not None and not match["path"].startswith(_NOT_HOST_PATHS):
            return S.HOST_PATH
    return None


def _of_cgroup(chain: Chain) -> S | None:
    """Cgroups and limits of the kernel. Both may fail with "no space left on device", which is not the disk."""
    words = chain.words
    if says(words, phrases.MEMORY_TOO_LOW) or (
        "device or resource busy" in words and "writ" in words and _MEMORY_LIMIT_FILE.search(chain.low) is not None
    ):
        return S.MEMORY_LIMIT_LOW
    if "writ" in words and _CGROUP_FILE.search(chain.low):
        return S.CGROUP
    if "inotify" in words or "fsnotify" in words:
        return S.INOTIFY
    if says(words, phrases.PIDS) or ("resource temporarily" in words and _CANNOT_FORK.search(chain.low)):
        return S.PIDS_LIMIT
    if "too many open files" in words:
        return S.NODE_LIMIT
    return S.CGROUP if says(words, phrases.CGROUP) or "/sys/fs/cgroup" in chain.low else None


def _of_runtime(chain: Chain) -> S | None:
    """The container runtime and its store on the node."""
    words = chain.words
    if says(chain.low, phrases.RUNTIME_CLASS):
        return S.RUNTIME_CLASS
    if says(chain.end, ("no space left on device", "disk quota exceeded", "free data blocks")):
        return S.DISK_FULL
    if says(words, ("input/output error", "read-only file system", "structure needs cleaning")):
        return S.NODE_DISK if _is_node_file(chain) else None
    if "dial unix" in chain.low:
        return S.RUNTIME_SLOW if says(chain.low, phrases.RUNTIME_SOCKETS) else None
    if (
        says(chain.end, phrases.NODE_STORE)
        or _NO_SNAPSHOT.search(chain.end)
        or (
            _LAYER_FILE.search(chain.low) is not None
            and says(words, (*phrases.MISSING, "invalid argument", "is a directory"))
            and "mount" not in words
            and not _starts_program(chain)
        )
    ):
        return S.NODE_STORE
    if (says(chain.low, phrases.RUNTIME_BROKEN) and not says(words, phrases.NO_RESOURCES)) or (
        "oci runtime state failed" in words and "invalid character" in words
    ):
        return S.RUNTIME_BROKEN
    slow = (
        chain.last_statement == "timeout"
        or any(clause.code == "DeadlineExceeded" for clause in chain.clauses)
        or says(chain.end_low, phrases.SLOW)
    )
    return S.RUNTIME_SLOW if slow and not says(chain.low, phrases.NOT_RUNTIME) else None


def _is_node_file(chain: Chain) -> bool:
    """Whether the disk error is that of a file of the runtime. The root of a container has a path of the node too."""
    if "creating overlay mount to /var/lib/docker/" in chain.low or (
        "read-only" in chain.words and _DOCKER_FILE.search(chain.low)
    ):
        return True
    match = _NODE_FILE.search(chain.low)
    return match is not None and not says(match["path"], _NOT_NODE_FILE)


def _of_program(chain: Chain) -> S | None:
    """The program that the container starts: its hook, user, directory and file."""
    words = chain.words
    if says(chain.low, ("/proc/sys/", "sysctl")) and says(words, phrases.SYSCTL):
        return S.SYSCTL
    if _RUNTIME_PROGRAM.search(chain.low):
        return S.RUNTIME_BROKEN if says(words, (*phrases.MISSING, "executable file", "permission denied")) else None
    if "sandbox" in words:
        return None  # it runs the pause image, which has its program
    if says(words, phrases.HOOK):
        return S.HOOK
    if says(chain.end, phrases.USER):
        return S.USER_MISSING
    return S.WORKDIR if says(chain.end, phrases.WORKDIR) or "chdir(" in chain.low else _of_start_file(chain)


def _of_start_file(chain: Chain) -> S | None:
    words = chain.words
    if "exec format error" in words:
        return S.EXEC_FORMAT
    if says(words, phrases.NO_COMMAND) or ("executable file" in words and says(words, phrases.CONTAINER_PROCESS)):
        return S.NO_START_FILE if "permission denied" not in words else S.NOT_EXECUTABLE
    if _starts_program(chain) and (len(chain.clauses) <= _MAX_BARE_CLAUSES or says(words, phrases.CONTAINER_PROCESS)):
        if says(chain.last_statement, ("permission denied", "is a directory")):
            return S.NOT_EXECUTABLE
        return S.NO_START_FILE if says(chain.last_statement, phrases.MISSING) else None
    return None


def _starts_program(chain: Chain) -> bool:
    """Whether the failing call starts the program, rather than a helper of the runtime."""
    return any(
        clause.low == "exec" or clause.low.startswith(("exec ", "exec: ", "open executable"))
        for clause in chain.clauses
    )
