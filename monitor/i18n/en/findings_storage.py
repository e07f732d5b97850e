"""English: text of the rules about disks, images on disk and mounts."""

from __future__ import annotations

_FULL = "Disk {mount} of {place} is {share:percent} full, {available:bytes} left: "
_FILLING = "Disk {mount} of {place} will be full in {left:duration} ({rate:bytes} an hour): "

WORDS: dict[str, str] = {
    # shared
    "disk-space": "{used:bytes} of {size:bytes} used, {available:bytes} available.",
    "disk-inodes": "{used} of {inodes} inodes used.",
    "disk-nodes": "{count:node has|nodes have} it mounted, including {node}.",
    "disk-part.images": "Images and build cache: {bytes:bytes} ({share:percent} of used space).",
    "disk-part.container-layers": "Writable container layers: {bytes:bytes} ({share:percent}).",
    "disk-part.logs": "Container logs: {bytes:bytes} ({share:percent}).",
    "disk-part.volumes": "Container runtime volumes: {bytes:bytes} ({share:percent}).",
    "disk-part.datasets": "Data: {bytes:bytes} ({share:percent}).",
    "disk-part.other": "Everything else: {bytes:bytes} ({share:percent}).",
    "disk-owner": "{pod} of {user}: {layer:bytes} in the container layer, {log:bytes} of logs.",
    "disk-image.used": "Image {image}: {bytes:bytes}, used by {users}.",
    "disk-image.unused": "Image {image}: {bytes:bytes}, unused.",
    "disk-image.local": (
        "Image {image}: {bytes:bytes}, unused and in no known registry: push or save it before removing it."
    ),
    # shm-pressure
    "rule.shm-pressure": "Shared memory too small",
    "doc.shm-pressure": "A pod's shared memory is nearly full, or too small for its data loaders.",
    "doc.shm-pressure.severity": "warning; critical above `critical`",
    "doc.shm-pressure.incident": 'Jobs crashed with "bus error": out of shared memory.',
    "doc.shm-pressure.limit.nearly_full": "How full shared memory may be.",
    "doc.shm-pressure.limit.default_size": "Size that counts as the unchanged default.",
    "shm-pressure.nearly-full": (
        "Shared memory of {pod} on {node} is {share:percent} full ({used:bytes} of {size:bytes}): the next write may "
        'crash it with "bus error".'
    ),
    "shm-pressure.default-size": (
        "{pod} on {node} trains on GPUs with only the default {size:bytes} of shared memory: its data loaders will "
        "run out of it."
    ),
    "shm-pressure.used": "{used:bytes} of {size:bytes} in /dev/shm used.",
    "shm-pressure.processes": "{count:of its processes holds|of its processes hold} GPUs.",
    "shm-pressure.owner": "It belongs to {user}.",
    "shm-pressure.advice": (
        "Give the pod an emptyDir with medium: Memory and sizeLimit: {wanted}, mounted at /dev/shm (plain Docker: "
        "--shm-size); until then use fewer data loader workers."
    ),
    # disk-full
    "rule.disk-full": "Disk nearly full",
    "doc.disk-full": (
        "A disk is nearly out of space or inodes, or the kernel has made it read-only; names what fills it."
    ),
    "doc.disk-full.severity": "warning; critical above `critical` and when read-only",
    "doc.disk-full.incident": "The system disk was full, and the cause was found only after the platform went down.",
    "doc.disk-full.limit.warning": "How full a disk may be, as `df` counts; applies to inodes too.",
    "disk-full.images": _FULL + "mostly container images ({bytes:bytes}).",
    "disk-full.container-layers": _FULL + "mostly writable container layers ({bytes:bytes}).",
    "disk-full.logs": _FULL + "mostly container logs ({bytes:bytes}).",
    "disk-full.volumes": _FULL + "mostly container runtime volumes ({bytes:bytes}).",
    "disk-full.datasets": _FULL + "mostly data ({bytes:bytes}).",
    "disk-full.other": _FULL + "mostly files outside containers ({bytes:bytes}).",
    "disk-full.inodes": (
        "Disk {mount} of {place} has used {share:percent} of its inodes: new files will soon fail although "
        "{available:bytes} are left."
    ),
    "disk-full.read-only": "Disk {mount} of {place} is read-only: every write to it fails.",
    "disk-full.images.advice": (
        "gpuwarden cleanup plan shows which images of {node} can be removed safely; a policy of the kind "
        "images removes them, at night or now with gpuwarden cleanup run POLICY"
    ),
    "disk-full.container-layers.advice": (
        "Ask the owners listed above to write to a data volume, or to restart the pod, which discards its layer."
    ),
    "disk-full.logs.advice": (
        "On {node}, empty the largest log (truncate -s 0 FILE), and limit logs: Docker log-opts max-size=100m, "
        "kubelet containerLogMaxSize."
    ),
    "disk-full.volumes.advice": (
        "On {node}, docker system df -v shows volumes that no container uses. Ask their owners before "
        "removing one: docker volume rm NAME"
    ),
    "disk-full.datasets.advice": "Find the largest directories: du -xh --max-depth=2 {mount} | sort -rh | head",
    "disk-full.other.advice": "On {node}, find the largest directories: du -xh --max-depth=2 {mount} | sort -rh | head",
    "disk-full.inodes.advice": (
        "On {node}, find the directories with the most files: du -x --inodes --max-depth=3 {mount} | sort -rn | head"
    ),
    "disk-full.read-only.advice": (
        "On {node}, check why ({device}: dmesg -T | grep -iE 'error|remount'), back up the data, then fsck or "
        "replace the disk."
    ),
    # disk-filling
    "rule.disk-filling": "Disk filling up",
    "doc.disk-filling": "At the growth rate of the last hours, a disk will soon be full; names what fills it.",
    "doc.disk-filling.severity": "warning; critical below `critical`",
    "doc.disk-filling.incident": "As for `disk-full`, with advance warning.",
    "doc.disk-filling.limit.warning": "How long before the disk is full to warn.",
    "disk-filling.images": _FILLING + "mostly container images.",
    "disk-filling.container-layers": _FILLING + "mostly writable container layers.",
    "disk-filling.logs": _FILLING + "mostly container logs.",
    "disk-filling.volumes": _FILLING + "mostly container runtime volumes.",
    "disk-filling.datasets": _FILLING + "mostly data.",
    "disk-filling.other": _FILLING + "mostly files outside containers.",
    "disk-filling.advice": (
        "Find out what grows: on {node}, du -xh --max-depth=2 {mount} | sort -rh | head, now and again later."
    ),
    "disk-filling.history": "It grew by {bytes:bytes} over the last {window:duration}.",
    # disk-io-saturated
    "rule.disk-io-saturated": "Disk overloaded",
    "doc.disk-io-saturated": "A disk is constantly busy and requests queue up; lists the pods of its node.",
    "doc.disk-io-saturated.severity": "warning",
    "doc.disk-io-saturated.incident": "Heavy I/O occasionally made jobs fail and connections drop.",
    "doc.disk-io-saturated.limit.busy": "How busy the disk must be.",
    "doc.disk-io-saturated.limit.queue": "How many requests must be queued.",
    "disk-io-saturated": (
        "Disk {device} of {node} has been busy for {seconds:duration} ({share:percent}) with {queue} queued "
        "requests: everything on it is slow."
    ),
    "disk-io-saturated.mounts": "Mounted from it: {mounts}.",
    "disk-io-saturated.queue": "{before} requests were queued at the start, {queue} are now.",
    "disk-io-saturated.waiting": "{pod} of {user} is waiting for it: {count:process|processes} in state D.",
    "disk-io-saturated.pod": "{pod} of {user} runs on this node.",
    "disk-io-saturated.advice": (
        "On {node}, iotop -oPa shows the heaviest readers and writers. Move datasets to another disk or into memory, "
        "and checkpoint less often."
    ),
    # image-cache-large
    "rule.image-cache-large": "Images use too much disk space",
    "doc.image-cache-large": "Images use more of a disk than allowed; lists what can be removed.",
    "doc.image-cache-large.severity": "warning",
    "doc.image-cache-large.incident": "The Docker cache urgently needed more space.",
    "doc.image-cache-large.limit.share": "Share of its disk that the cache may use.",
    "doc.image-cache-large.limit.size": "Maximum size of the cache; 0 applies only the share.",
    "image-cache-large.growth": (
        "Images use {bytes:bytes} on {mount} of {node}, {share:percent} of the disk, and most of them are in use."
    ),
    "image-cache-large.unused-images": (
        "Images use {bytes:bytes} on {mount} of {node}, {share:percent} of the disk; {unused:bytes} are unused."
    ),
    "image-cache-large.build-cache": (
        "Images use {bytes:bytes} on {mount} of {node}, {share:percent} of the disk; {build:bytes} are build cache."
    ),
    "image-cache-large.growth.advice": (
        "Move the runtime's root on {node} to a larger disk, or spread the jobs; ask the owners of the largest "
        "images to shrink them."
    ),
    "image-cache-large.unused-images.advice": (
        "gpuwarden cleanup plan shows which images of {node} can be removed safely; a policy of the kind "
        "images removes them, at night or now with gpuwarden cleanup run POLICY"
    ),
    "image-cache-large.build-cache.advice": (
        "gpuwarden cleanup plan shows how much build cache of {node} can be removed safely; a policy of the "
        "kind images removes it."
    ),
    # image-oversize
    "rule.image-oversize": "Image too large",
    "doc.image-oversize": "An image is so large that it fills disks and starts slowly; lists its users.",
    "doc.image-oversize.severity": "warning",
    "doc.image-oversize.incident": "Two saved images of 59 GB each took the platform down.",
    "doc.image-oversize.limit.size": "How large an image may be.",
    "image-oversize": "Image {image} is {bytes:bytes}, on {count:node|nodes} ({nodes}).",
    "image-oversize.used": "Used by {users}.",
    "image-oversize.unused": "No container uses it at the moment.",
    "image-oversize.advice": (
        "Ask the owner to keep data, caches and checkpoints out of it (docker history {image} shows the large steps) "
        "and to mount them instead."
    ),
    # mass-deletion
    "rule.mass-deletion": "Mass deletion of data",
    "doc.mass-deletion": (
        "A large part of the data on a mount disappeared within minutes. Cleanup by gpuwarden does not count; "
        "silence the rule before a large manual cleanup."
    ),
    "doc.mass-deletion.severity": "critical",
    "doc.mass-deletion.incident": "An intruder deleted data.",
    "doc.mass-deletion.limit.share": "Share of the data that must disappear.",
    "doc.mass-deletion.limit.size": "Amount of data that must disappear.",
    "doc.mass-deletion.limit.within": "Time within which it must disappear.",
    "doc.mass-deletion.limit.keep_for": "How long the alert keeps firing.",
    "mass-deletion": (
        "{bytes:bytes} ({share:percent}) of the data on {mount} of {place} disappeared within {window:duration}."
    ),
    "mass-deletion.now": "It held {before:bytes} and now holds {now:bytes}.",
    "mass-deletion.advice": (
        "Check immediately whether this was intended. If not: stop the deletion, make the mount read-only (mount -o "
        "remount,ro {mount}), and restore from a snapshot. Logins on {node}: last -n 20"
    ),
    # mount-lost
    "rule.mount-lost": "Mount lost",
    "doc.mount-lost": "A mount that `agent.mounts` expects is missing, hangs, is read-only or no longer works.",
    "doc.mount-lost.severity": "critical",
    "doc.mount-lost.incident": "The NAS was not mounted, or hung.",
    "doc.mount-lost.limit.everywhere": "Number of nodes from which the server is considered the cause.",
    "mount-lost.missing": "{mount} is not mounted on {node}: jobs there cannot find their data.",
    "mount-lost.hung": "{mount} on {node} has not responded for {seconds:duration}: every access to it hangs.",
    "mount-lost.read-only": "{mount} on {node} is read-only: saving checkpoints fails.",
    "mount-lost.stale": "{mount} on {node} no longer works: {error}.",
    "mount-lost.everywhere": "{mount} is lost on {count} of {total} nodes ({state:code}): check its server first.",
    "mount-lost.missing.advice": (
        "On {node}: mount {mount}; check that it is in /etc/fstab and that its server responds."
    ),
    "mount-lost.hung.advice": (
        "On {node}, check that its server is reachable (grep {mount} /proc/mounts, ping it); if it does not recover: "
        "umount -f -l {mount}"
    ),
    "mount-lost.read-only.advice": (
        "On {node}: dmesg -T | grep -iE 'nfs|remount|error'; check the export, then: mount -o remount,rw {mount}"
    ),
    "mount-lost.stale.advice": "On {node}: umount -l {mount} && mount {mount}; then restart the pods that use it.",
    "mount-lost.everywhere.advice": (
        "Check that the server of {mount} is running and reachable. On {node}: grep {mount} /proc/mounts"
    ),
    "mount-lost.since": "This has been the case for {seconds:duration}.",
    "mount-lost.pods": "{count:pod|pods} on {node} may use it.",
}
