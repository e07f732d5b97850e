"""Wording of failed attachments and mounts, by speaker. Fragments are lower case; the first match wins."""

from __future__ import annotations

from monitor.explain.error_chain.causes import MountFailureCause as M
from monitor.explain.error_chain.wording import wording

# The secrets store driver calls a provider of its own on the node.
NO_PROVIDER = ("provider not found", "failed to find provider binary", "error connecting to provider")
# The kubelet's requests to the API server and to systemd, and stores of secrets.
NO_STORAGE = (
    "failed to fetch token", "failed to sync secret cache", "failed to sync configmap cache",
    "/api/v1/", ":6443/apis/", ":443/apis/",
    "failed to start transient scope", "secrets store objects",
)  # fmt: skip
ATTACH = (
    "attachvolume", "failed to attach volume", "failed to attach to node", "attach volume", "external-attacher",
    "attach timeout",
)  # fmt: skip
KUBELET = wording(
    (M.SECRET_MISSING, ("couldn't get secret ",)),
    (M.KEY_MISSING, ("non-existent secret key", "non-existent config key")),
    (
        M.DRIVER_MISSING,
        (
            "not found in the list of registered csi drivers", "no volume plugin matched", "failed to get csi client",
            "failed to create newcsidriverclient", "csi driver not registered", "csidriver not found",
            "(no csidriver object)",
        ),
    ),
    (
        M.HOST_PATH,
        (
            "hostpath type check failed", "host path does not exist",
            "bind source path does not exist",
        ),
    ),
)  # fmt: skip
ATTACHMENT = wording(
    (M.ATTACH_FAILED, ("is forbidden: user ",)),  # says the API server
    # Limits on requests, and names of devices on the same node
    (
        M.ATTACH_FAILED,
        (
            "requestlimitexceeded", "request limit exceeded", "rate exceeded", "throttl", "too many requests",
            "rate limit", "attachment point", "device name", "number of retries", "quota",
        ),
    ),
    (M.DRIVER_MISSING, ("not found in the list of registered csi drivers", "does not contain driver")),
    (
        M.ATTACH_LIMIT,
        (
            "maximum number of", "volumelimitexceeded", "attachmentlimitexceeded", "too many volumes", "volume limit",
            "attachment limit", "attach limit", "max volume", "maximum volume", "limit exceeded", "exceed max",
            "exceeded limit 'maximum_",
            "no available attachment slot", "number of data disks", "resource exhausted", "more volumes than",
        ),
    ),
    (
        M.MULTI_ATTACH,
        (
            "already attached to", "attached to a different", "volumeinuse", "is in use", "exclusively attached",
            "currently attached to", "attached to another", "already in use", "resource_in_use", "already mounted on",
            "is being used by", "still being used", "already owned by",
            "is attached to instance",
        ),
    ),
    (
        M.VOLUME_MISSING,
        ("volume not found", "volume.notfound", "volume does not exist", "disk does not exist", "no such volume"),
    ),
    (
        M.STORAGE_DENIED,
        ("unauthorizedoperation", "not authorized", "accessdenied", "access denied", "forbidden", "invalidclient"),
    ),
)  # fmt: skip
DEAD = (
    "transport endpoint is not connected", "stale file handle", "stale nfs", "socket is not connected",
    "software caused connection abort",
)  # fmt: skip
# GlusterFS says of an unreachable brick what the kernel says of a dead mount.
GLUSTER_DOWN = ("all subvolumes are down", "failed to connect with remote-host", "all bricks are down")
NFS = wording(
    (M.ACCESS_DENIED, ("access denied", "operation not permitted", "permission denied", "not permitted")),
    (M.STALE, ("stale",)),
    (M.NO_SUCH_EXPORT, ("no such file or directory", "not exported", "no such export")),
    (M.HELPER_MISSING, ("not found", "rpc.statd", "no such device", "protocol not supported", "bad option")),
    (M.NFS_REFUSED, ("connection refused", "program not registered", "rpc: program")),
    (
        M.NFS_UNREACHABLE,
        (
            "timed out", "no route to host", "network is unreachable", "host is down", "failed to resolve",
            "name or service not known", "temporary failure", "unreachable", "not responding",
        ),
    ),
)  # fmt: skip
HELPER = (
    "unknown filesystem type", "/sbin/mount.", "helper program", "no such device", "executable file not found",
    "command not found", "mount.nfs: not found", "modprobe", "module not found", "not installed", "no kernel module",
    "failed to load kernel", "kernel module", "fuse: device not found", "/dev/fuse: no such file",
    "multipathd is not running", "iscsid is not running", "rpc.statd is not running", "rpcbind is not running",
)  # fmt: skip
BAD_FILESYSTEM = (
    "structure needs cleaning", "run fsck manually", "please run fsck",
    "found errors on device", "unexpected inconsistency",
    "could not correct", "run xfs_repair", "corrupt file", "corrupted file", "bad magic",
    "filesystem is damaged", "filesystem corrupt", "file system corrupt", "can't read superblock",
)  # fmt: skip
STORAGE = wording(
    (
        M.STORAGE_DENIED,
        (
            "accessdenied", "access denied", "invalidaccesskeyid", "signaturedoesnotmatch", "403 forbidden",
            "invalid credentials",
            "authentication failed", "failed to authenticate", "no signing credentials",
            "unauthenticated", "permissiondenied", "not authorized", "handle_auth_bad_method",
            "logon failure",
            "unauthorized", "status code: 403", "authorizationpermissionmismatch", "authenticationfailed",
            "login failed",
            "invalid password", "key does not have", "juicefs auth error", "token or volume is invalid",
            "mount error 13", "mount error(13)",
        ),
    ),
    (
        M.VOLUME_MISSING,
        (
            "nosuchbucket", "bucket does not exist", "bucket doesn't exist", "bucket not found",
            "is the mgs specification correct",
            "is the filesystem name correct", "no such volume", "subvolume does not exist", "filesystem not found",
            "file system does not exist", "share not found", "bad network name", "volume not found",
            "filesystemnotfound", "rbd image not found", "pool not found", "sharenotfound",
            "filesystem does not exist", "no such share", "directory does not exist", "not a valid file system",
        ),
    ),
    (
        M.UNREACHABLE,
        (
            "is the mgs running", "no mds server is up", "cannot send after transport endpoint shutdown",
            "failed to connect to", "unable to connect", "could not connect", "mon_command failed", "no monitors",
            "cannot connect", "monclient", "no mds", "i/o timeout", "no route to host", "network is unreachable",
            "connection timed out", "host is down", "name or service not known", "no such host", "failed to resolve",
            "could not resolve", "unable to resolve", "network unreachable", "connection reset",
            "nodename nor servname",
        ),
    ),
    (
        M.MULTI_ATTACH,
        (
            "is still being used", "still mounted on node", "already attached to", "volume is in use",
            "exclusively locked", "image is locked",
        ),
    ),
    (M.TIMED_OUT, ("not ready in", "function timeout", "operation with the given volume", "mount timeout")),
)  # fmt: skip
LAST = wording(
    (M.UNREACHABLE, ("connection refused", "host is unreachable")),
    (M.PERMISSION, ("selinux", "relabel", "fsgroup", "chown", "chmod")),
)
# What is called on the node itself, and a warning of LVM.
LOCAL_CALLS = ("dial unix", "unix:/", "lvmetad", "d-bus", "system bus", "127.0.0.1", "localhost", "169.254.", "[::1]")
TIMED_OUT = (
    "context deadline exceeded", "deadlineexceeded", "timed out", "time out", "is not ready, mountpod", "in progress",
    "pending operation",
)  # fmt: skip
