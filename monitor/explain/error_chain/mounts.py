"""Cause of a failed attachment or mount: the kubelet, mount(8) and its helpers, CSI drivers and their storage."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monitor.explain.error_chain import mount_phrases as phrases
from monitor.explain.error_chain.causes import MountFailureCause as M
from monitor.explain.error_chain.parse import Chain, Clause, parse
from monitor.explain.error_chain.wording import find, says

_OBJECT = re.compile(r"\b(persistentvolumeclaim|secret|configmap)s? \"?([^\"\s]+)\"? (?:is )?not found", re.IGNORECASE)
_OBJECTS = {
    "persistentvolumeclaim": M.CLAIM_MISSING,
    "secret": M.SECRET_MISSING,
    "configmap": M.CONFIG_MISSING,
}
# `mount error 13 = Permission denied` (Ceph), `mount error(13): ...` (CIFS), `(110) Connection timed out` (rbd).
_ERRNO = re.compile(r"(?:mount error|ret=-|errno) ?\(?(\d{1,3})\b|\((\d{1,3})\) [A-Z]")
_BY_ERRNO = {
    1: M.STORAGE_DENIED, 2: M.VOLUME_MISSING, 5: None, 13: M.STORAGE_DENIED, 19: M.HELPER_MISSING, 22: None,
    101: M.UNREACHABLE, 107: M.STALE, 108: M.UNREACHABLE, 110: M.UNREACHABLE, 111: M.UNREACHABLE, 112: M.UNREACHABLE,
    113: M.UNREACHABLE, 115: M.UNREACHABLE, 116: M.STALE,
}  # fmt: skip
# The kubelet looks for the path of a local volume and creates host paths; drivers look for files of their own.
_HOST_CALL = re.compile(
    r"setup failed for volume [^:]{1,300}:+ (?:"
    r"l?stat /(?!var/lib/|dev/|run/|proc/|sys/)[^\s:]+: no such file|"
    r"(?:mkdir|open) /(?!var/lib/kubelet)[^\s:]+: read-only file system$)"
)
_NFS_HELPER = re.compile(r"mount\.nfs4?: (.*)", re.DOTALL)
_KERNEL_PATH = re.compile(r"mkdir /(?:sys|proc)/")  # the kernel creates directories there, mkdir does not
# A share of a server, or a directory that a driver binds; not a device nor a path of the kubelet.
_NO_SOURCE = re.compile(r"special device (?!/(?:dev|var/lib|run|proc|sys)/)\S+ does not exist")
_TIMEOUT = re.compile(r"timeout(?![\w\"':=])")  # not an option nor a field
_NO_VOLUME = re.compile(r"\bvolume \S{1,100} (?:is |was )?(?:not found|does not exist)")
_CALL_ON_PATH = re.compile(
    r"\b(?:mkdir(?:all|at)?|open(?:at2?)?|l?chown|f?chmod|l?stat|remove|unlink(?:at)?|symlink|rename|write|mknod|readdir|rmdir|"
    r"creat|mount|cannot (?:create|open|access) \w*) ?[`'\"]?/(?!proc/|sys/)"
)
_CSI = re.compile(r"(?<!is)csi")  # not the daemon of iSCSI
_NODE_DEVICE = re.compile(r"/dev/(?!fuse)[\w/.-]+:? (?:[^:]{0,60}: )?no such device")
_NETWORK_SOURCE = re.compile(r"-t (?:nfs|cifs|ceph|lustre|glusterfs|smb3?|beegfs|gpfs|fuse)|\bon [\w.\-@]+:/|on //")


@dataclass(frozen=True, slots=True)
class MountAnswer:
    """Cause, the object that is missing if any, and the clause that decides."""

    cause: M
    name: str | None = None
    clause: Clause | None = None


def classify_mount(message: str | None) -> MountAnswer:
    """Cause of a failed attachment or mount; unknown messages yield UNKNOWN."""
    chain = parse(message)
    if "not found" in chain.low and (match := _OBJECT.search(chain.low)):
        text = _OBJECT.search(": ".join([clause.text for clause in chain.clauses]))
        return MountAnswer(_OBJECTS[match[1]], text[2] if text else match[2], chain.last)
    for decide in (_of_no_storage, _of_kubelet, _of_attachment, _of_helper, _of_storage, _of_errno, _of_code, _of_node):
        if cause := decide(chain):
            return MountAnswer(cause, None, chain.last)
    return MountAnswer(M.UNKNOWN, None, chain.last)


def _of_no_storage(chain: Chain) -> M | None:
    """Requests of the kubelet for tokens, secrets and config maps, and to systemd, say nothing of storage."""
    if not says(chain.low, phrases.NO_STORAGE):
        return None
    if "secrets store objects" in chain.low and says(chain.low, phrases.NO_PROVIDER):
        return M.DRIVER_MISSING
    return M.ATTACH_FAILED if says(chain.low, phrases.ATTACH) else M.UNKNOWN


def _of_kubelet(chain: Chain) -> M | None:
    """What the kubelet says itself: references, host paths, CSI drivers that are not registered."""
    if "multi-attach error" in chain.low:
        return M.MULTI_ATTACH
    if "subpath" in chain.words:
        return M.SUBPATH
    if "newmounter initialization failed" in chain.low and "does not exist" in chain.low:
        return M.HOST_PATH
    driver = any(clause.code for clause in chain.clauses)
    if chain.last.words == "path _ does not exist" or (
        not driver and says(chain.low, ("stat /", "read-only")) and _HOST_CALL.search(chain.low)
    ):
        return M.HOST_PATH
    return find(chain.low, phrases.KUBELET)


def _of_attachment(chain: Chain) -> M | None:
    """The storage's controller attaches the volume to the node before anything is mounted."""
    if not says(chain.low, phrases.ATTACH):
        return None
    return find(chain.low, phrases.ATTACHMENT) or M.ATTACH_FAILED


def _of_helper(chain: Chain) -> M | None:
    """mount(8) and mount.nfs. mount(8) says the same of a missing helper and of a damaged file system."""
    words = chain.words
    if says(chain.low, phrases.GLUSTER_DOWN):
        return M.UNREACHABLE
    if says(words, phrases.DEAD):
        return M.STALE
    if match := _NFS_HELPER.search(chain.low):
        return find(match[1], phrases.NFS)
    if says(chain.low, ("wrong fs type", "bad superblock")) and _NETWORK_SOURCE.search(chain.low):
        return M.HELPER_MISSING
    said = chain.low.replace("no such device or address", "").replace("missing codepage or helper program", "")
    if "no such device" in said:
        said = _NODE_DEVICE.sub("", said)
    if says(said, phrases.HELPER):
        return M.HELPER_MISSING
    return M.BAD_FILESYSTEM if says(words, phrases.BAD_FILESYSTEM) else None


def _of_storage(chain: Chain) -> M | None:
    """Object stores, Ceph, Lustre and CSI drivers that name the storage's answer."""
    if _NO_SOURCE.search(chain.low):
        return M.VOLUME_MISSING
    cause = find(chain.end, phrases.STORAGE)
    return None if cause is M.UNREACHABLE and says(chain.low, phrases.LOCAL_CALLS) else cause


def _of_errno(chain: Chain) -> M | None:
    """The number of the error, as the helpers of Ceph, RBD and CIFS print it."""
    cause = None
    if not says(chain.low, ("mount error", "ret=-", "errno", ") ")):
        return cause
    text = ": ".join([clause.text for clause in chain.clauses])
    for match in _ERRNO.finditer(text):
        cause = _BY_ERRNO.get(int(match[1] or match[2])) or cause
    return cause


def _of_code(chain: Chain) -> M | None:
    """The driver's gRPC code, if it is about the storage's answer."""
    denied = any(clause.code in ("PermissionDenied", "Unauthenticated") for clause in chain.clauses)
    if denied:
        return M.STORAGE_DENIED
    missing = any(clause.code == "NotFound" for clause in chain.clauses) and _NO_VOLUME.search(chain.end)
    return M.VOLUME_MISSING if missing else None


def _of_node(chain: Chain) -> M | None:
    """Generic statements count only where they end the chain."""
    last = chain.last_statement
    if "no space left on device" in last:
        return M.DISK_FULL
    if says(last, ("connection refused", "no such file or directory")) and "dial unix" in chain.low:
        return M.DRIVER_MISSING if _CSI.search(chain.low) else None
    cause = find(last, phrases.LAST)
    if cause is not None and not (cause is M.UNREACHABLE and says(chain.low, phrases.LOCAL_CALLS)):
        return cause
    refused = says(last, ("permission denied", "operation not permitted", "access denied"))
    if refused and _CALL_ON_PATH.search(chain.end_low) and not _KERNEL_PATH.search(chain.low):
        return M.PERMISSION
    return M.TIMED_OUT if _times_out(chain) else None


def _times_out(chain: Chain) -> bool:
    return (
        says(chain.end, phrases.TIMED_OUT)
        or _TIMEOUT.search(chain.end) is not None
        or any(clause.code == "DeadlineExceeded" for clause in chain.clauses)
    )
