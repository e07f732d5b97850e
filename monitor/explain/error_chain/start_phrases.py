"""Wording of containers and sandboxes that cannot start, by speaker. Fragments are lower case; the first match wins."""

from __future__ import annotations

from monitor.explain.error_chain.causes import StartFailureCause as S
from monitor.explain.error_chain.wording import wording

MISSING = ("no such file or directory", "does not exist", "not found", "no such device")

# The dynamic loader cannot start a program of the node.
LOADER = ("symbol lookup error", "error while loading shared libraries")
# nvidia-container-cli, which NVIDIA's hook calls: the kind of error, then its detail.
NVIDIA_CLI = wording(
    (
        S.TOOLKIT_BROKEN,
        ("error while loading shared libraries", "symbol lookup error", "relocation error", "undefined symbol",
         "not defined", "double free", "core dumped", "segmentation fault"),
    ),
    (S.DRIVER_MISMATCH, ("driver/library version mismatch", "api mismatch")),
    (S.DRIVER_TOO_OLD, ("requirement error", "unsatisfied condition", "please update your driver")),
    (
        S.GPU_LOST,
        (
            "gpu is lost", "fallen off the bus", "gpu requires reset",
            "detection error: nvml error: unknown error",  # NVML works, one of its devices does not
        ),
    ),
    (
        S.DRIVER_NOT_LOADED,
        (
            "driver not loaded", "load library failed", "cannot open shared object", "driver is not loaded",
            "/dev/nvidiactl", "/dev/nvidia-uvm", "/proc/driver/nvidia", "wsl environment",
        ),
    ),
    (S.DRIVER_BROKEN, ("nvml error", "cuda error", "driver rpc error", "driver error", "initialization error")),
    (S.OTHER, ("file exists",)),  # the image contains files of the driver
    (
        S.TOOLKIT_BROKEN,
        (
            "ldcache error", "container error", "mount error", "permission error", "input error",
            "unrecognized option", "cgroup", "namespace",
            "seccomp error", "privilege error", "policy error", "process error", "ldconfig",
        ),
    ),
)  # fmt: skip
# The NVIDIA container runtime and nvidia-ctk, which change the specification before runc starts.
NVIDIA_RUNTIME = wording(
    (S.RUNTIME_CLASS, ("unknown or invalid runtime name", "no runtime for")),
    (S.DRIVER_NOT_LOADED, ("libnvidia-ml.so", "libcuda.so", "libraries_not_found")),
    (S.TOOLKIT_BROKEN, ("could not select device driver",)),
)  # fmt: skip
NVML = wording(
    (S.DRIVER_MISMATCH, ("driver/library version mismatch",)),
    (S.GPU_LOST, ("gpu is lost", "fallen off the bus")),
    (S.DRIVER_NOT_LOADED, ("driver not loaded", "driver is not loaded", "error_library_not_found")),
    (S.DRIVER_BROKEN, ("failed to initialize nvml", "nvml error", "nvidia-smi has failed")),
)
CDI = ("cdi device", "cdi host device", "cdi registry", "cdi spec", 'device driver "cdi"')
DEVICE = (
    "error stating device path",
    "error gathering device information",
    "not a device node",
    "failed to stat device",
)

SANDBOX_IMAGE = ("sandbox image", "pause image", "/pause:", "/pause-", "infra container image", "/pause@")
SANDBOX_OF_CRIO = "pod network sandbox"  # whatever it fails for
NETWORK = (
    "cni", "plugin type=", "setup network", "set up sandbox", "network for sandbox", "network for pod", "networkplugin",
    "network plugin", "multus", "adding pod to network", "pod network",
    "network namespace", "setup pod network", "ipam",
)  # fmt: skip
CNI = wording(
    (
        S.NO_ADDRESS,
        (
            "no ip addresses available", "failed to allocate for range", "no available ip", "no free ip",
            "failed to assign an ip", "no more ips", "insufficientfreeaddresses", "unable to allocate ip",
            "range is full", "no ips available", "no addresses available", "no more free",
            "could not allocate ip", "failed to allocate ip", "out of ip", "pool exhausted", "pool is exhausted",
            "no ip available", "ipam allocated only", "available ip address", "ips exhausted", "assigned 0 out of",
            "addresses exhausted", "no more addresses", "pool is full", "no ip address available",
            "no available addresses",
        ),
    ),
    (
        S.CNI_MISSING,
        (
            "not initialized", "uninitialized", "network not ready", "plugin not ready", "networkpluginnotready",
            "subnet.env", "failed to find plugin",
            "no networks found in",
            "/var/lib/calico/nodename",
            "no valid networks found", "has not yet been initialized",
            "network config not found", "missing network name",
        ),
    ),
    (
        S.CNI_AUTH,
        (
            "unauthorized", "forbidden", "x509", "certificate has expired", "bad certificate",
            "provide credentials", "token has expired",
            "cannot get resource", "cannot list resource", "invalid bearer token", "authentication",
        ),
    ),
)  # fmt: skip

# Files that a network plugin installs on the node.
CNI_PATHS = (
    "/etc/cni",
    "/opt/cni",
    "/run/flannel",
    "/var/lib/calico",
    "/var/lib/cni",
    "kubeconfig",
)

DEAD_MOUNT = (
    "transport endpoint is not connected", "stale file handle", "stale nfs file handle", "socket is not connected",
    "software caused connection abort",
)  # fmt: skip

# The bus of systemd: the kernel says the same of it
BUS = ("sd-bus", "dbus", "d-bus")
# Docker checks the mounts of a container before it creates it.
MOUNT_SPEC = ("invalid volume specification", "invalid mount config", "duplicate mount point")
NO_SOURCE = "bind source path does not exist"

# runc and crun create what a volume is mounted on.
MOUNT_POINT = ("rootfs", "mountpoint", "mounting", "creating `", "openat2 `")

MEMORY_TOO_LOW = (
    "memory limit too low", "oom-killed", "minimum memory limit", "too low; should be at least", "minimum memory",
    "limit is too low", "memory limit is too small", "oom killed",
)  # fmt: skip
PIDS = (
    "failed to create new os thread", "pids.max", "cannot fork", "newosproc",
    "pthread_create failed", "unable to create thread", "can't create thread",
)  # fmt: skip
CGROUP = (
    "cgroup", "systemd unit", "start unit", "sd-bus", "dbus", "unable to freeze", "cpuset", "hugetlb", "systemd1",
    "no subsystem for mount", ".slice",
)  # fmt: skip

RUNTIME_CLASS = (
    "no runtime for", "runtime handler", "runtimehandler", "invalid runtime name", "unknown runtime",
    "binary not installed",
    "runtimeclass", "runtime class",
)  # fmt: skip
NODE_STORE = (
    "content digest", "content store", "parent snapshot", "error unpacking image", "layer not known", "image not known",
    "failed to get image from containerd", "unable to find image", "blob not found", "no such image",
    "snapshot does not exist", "failed to unpack image", "failed to stat snapshot", "no such container layer",
    "creating read-write layer", "rw layer", "failed to create snapshot",
    "failed to get snapshot", "layer does not exist", "creating overlay mount", "does not resolve to an image id",
)  # fmt: skip
# The node cannot start any program now; the program is there.
NO_RESOURCES = ("cannot allocate memory", "too many open files", "resource temporarily", "argument list too long")
RUNTIME_BROKEN = (
    "unable to retrieve oci runtime error",
    *LOADER,
    "fork/exec /usr/bin/",
    "fork/exec /usr/local/bin/",
    "fork/exec /usr/sbin/",
)
SLOW = (
    "context deadline exceeded", "deadlineexceeded", "is reserved for", "reserve container name",
    "reserve sandbox name",
    "reserve pod name", "reserving pod name", "reserving ctr name", "name is reserved", "is already in use by",
    "operation timeout", "timed out", "context canceled",
    "error reading from server", "is the docker daemon running", "transport is closing", "timeout expired",
)  # fmt: skip

# Sockets of the runtimes. Plugins, snapshotters and agents have others.
RUNTIME_SOCKETS = ("containerd.sock", "/run/containerd/s/", "docker.sock", "dockershim.sock", "crio.sock")
# The guest of a virtual machine, a hook, or the API server: that these do not answer says nothing of the runtime.
NOT_RUNTIME = (
    "kata",
    "vsock",
    "hypervisor",
    "grpc server",
    "virtiofs",
    "qemu",
    "firecracker",
    "hook",
    "gvisor",
    "failed to sync ",
)

# Of a sysctl that the pod sets. "Permission denied" is about those that the runtime sets itself.
SYSCTL = ("no such file or directory", "invalid argument")
HOOK = ("lifecycle hook", "poststarthook", "prestarthook", "poststart hook", "failedpoststart")
NO_COMMAND = ("no command specified", "no entrypoint")
# The runtime starts the container's program, not a helper of its own.
CONTAINER_PROCESS = (
    "container process", "oci runtime", "container create failed", "container init", "user process",
    "failed to start container",
)  # fmt: skip
USER = (
    "unable to find user", "no users found", "no matching entries in passwd", "unable to find group", "no groups found",
    "no matching entries in group", "cannot find user", "find user", "unknown user", "no such user",
    "get supplementary groups",
)  # fmt: skip
WORKDIR = (
    "chdir to cwd",
    "cwd must be",
    "chdir",
    "working directory",
    "getcwd",
    "set in config.json failed",
)
