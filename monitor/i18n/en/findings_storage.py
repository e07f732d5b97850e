"""English: text of the rules about disks, images on disk and mounts."""

from __future__ import annotations

_FULL = "Disk {mount} of {place} is {share:percent} full, {available:bytes} left: "
_FILLING = "Disk {mount} of {place} will be full in {seconds:duration} ({rate:bytes} an hour): "

WORDS: dict[str, str] = {
    # shared
    "disk-space": "{used:bytes} of {size:bytes} are used, {available:bytes} are available.",
    "disk-inodes": "{used} of {inodes} inodes are used.",
    "disk-nodes": "{count:node has|nodes have} it mounted, {node} among them.",
    "disk-part.images": "Images and build cache: {bytes:bytes} ({share:percent} of what is used).",
    "disk-part.container-layers": "Written by containers into themselves: {bytes:bytes} ({share:percent}).",
    "disk-part.logs": "Container logs: {bytes:bytes} ({share:percent}).",
    "disk-part.volumes": "Volumes of the container runtime: {bytes:bytes} ({share:percent}).",
    "disk-part.datasets": "Data: {bytes:bytes} ({share:percent}).",
    "disk-part.other": "Everything else: {bytes:bytes} ({share:percent}).",
    "disk-owner": "{pod} of {user}: {layer:bytes} written into the container, {log:bytes} of log.",
    "disk-image.used": "Image {image}: {bytes:bytes}, used by {users}.",
    "disk-image.unused": "Image {image}: {bytes:bytes}, used by no container.",
    "disk-image.local": (
        "Image {image}: {bytes:bytes}, used by no container; no registry is known to have it, so push or save it first."
    ),
    # shm-pressure
    "rule.shm-pressure": "Shared memory too small",
    "doc.shm-pressure": (
        "The shared memory of a pod is nearly full, or so small that its data loaders will run out of it."
    ),
    "doc.shm-pressure.severity": "warning; critical from `critical`",
    "doc.shm-pressure.incident": 'Jobs died of "bus error": out of shared memory.',
    "doc.shm-pressure.limit.nearly_full": "How full it may be.",
    "doc.shm-pressure.limit.default_size": "Which size counts as never set.",
    "shm-pressure.nearly-full": (
        "Shared memory of {pod} on {node} is {share:percent} full ({used:bytes} of {size:bytes}): "
        'the next write may end it with "bus error".'
    ),
    "shm-pressure.default-size": (
        "{pod} on {node} trains on GPUs with only {size:bytes} of shared memory, the default: data-loader workers "
        "will run out of it."
    ),
    "shm-pressure.used": "{used:bytes} of {size:bytes} in /dev/shm are used.",
    "shm-pressure.processes": "{count:process of it holds|processes of it hold} GPUs.",
    "shm-pressure.owner": "It belongs to {user}.",
    "shm-pressure.advice": (
        "Give the pod an emptyDir with medium: Memory and sizeLimit: {wanted}, mounted at /dev/shm "
        "(plain Docker: --shm-size); until then use fewer data-loader workers."
    ),
    # disk-full
    "rule.disk-full": "Disk nearly full",
    "doc.disk-full": (
        "A disk, or its inodes, are nearly used up, or the kernel has made it read-only; with what fills it."
    ),
    "doc.disk-full.severity": "warning; critical from `critical`, and when read-only",
    "doc.disk-full.incident": "The system disk was full, and the cause was found only after the platform was down.",
    "doc.disk-full.limit.warning": "How full a disk may be, as `df` counts; the same for inodes.",
    "disk-full.images": _FULL + "mostly container images ({bytes:bytes}).",
    "disk-full.container-layers": _FULL + "mostly files that containers wrote into themselves ({bytes:bytes}).",
    "disk-full.logs": _FULL + "mostly container logs ({bytes:bytes}).",
    "disk-full.volumes": _FULL + "mostly volumes of the container runtime ({bytes:bytes}).",
    "disk-full.datasets": _FULL + "mostly data ({bytes:bytes}).",
    "disk-full.other": _FULL + "mostly files that belong to no container ({bytes:bytes}).",
    "disk-full.inodes": (
        "Disk {mount} of {place} has used {share:percent} of its inodes: soon no new file can be made, though "
        "{available:bytes} are left."
    ),
    "disk-full.read-only": "Disk {mount} of {place} is read-only: whatever has to write there fails now.",
    "disk-full.images.advice": (
        "On {node}: remove images that no container uses, by name: docker rmi IMAGE (it refuses those in use), or "
        "crictl rmi IMAGE (it does not refuse)."
    ),
    "disk-full.container-layers.advice": (
        "Ask the owners named above to write to a data volume, or to restart the pod: what it wrote goes with it."
    ),
    "disk-full.logs.advice": (
        "On {node}: empty the largest log (truncate -s 0 FILE), and limit logs: Docker log-opts max-size=100m, "
        "kubelet containerLogMaxSize."
    ),
    "disk-full.volumes.advice": "On {node}: see which volumes nobody uses (docker system df -v): docker volume rm NAME",
    "disk-full.datasets.advice": "Find the largest folders: du -xh --max-depth=2 {mount} | sort -rh | head",
    "disk-full.other.advice": "On {node}: find what is large: du -xh --max-depth=2 {mount} | sort -rh | head",
    "disk-full.inodes.advice": (
        "On {node}: find the folders with the most files: du -x --inodes --max-depth=3 {mount} | sort -rn | head"
    ),
    "disk-full.read-only.advice": (
        "On {node}: see why ({device}: dmesg -T | grep -iE 'error|remount'), save the data, then fsck or replace it."
    ),
    # disk-filling
    "rule.disk-filling": "Disk will soon be full",
    "doc.disk-filling": "At the pace of the last hours a disk will be full soon; with what fills it.",
    "doc.disk-filling.severity": "warning; critical below `critical`",
    "doc.disk-filling.incident": "The same, told ahead.",
    "doc.disk-filling.limit.warning": "How long before it is full.",
    "disk-filling.images": _FILLING + "mostly container images.",
    "disk-filling.container-layers": _FILLING + "mostly files that containers wrote into themselves.",
    "disk-filling.logs": _FILLING + "mostly container logs.",
    "disk-filling.volumes": _FILLING + "mostly volumes of the container runtime.",
    "disk-filling.datasets": _FILLING + "mostly data.",
    "disk-filling.other": _FILLING + "mostly files that belong to no container.",
    "disk-filling.advice": (
        "Find out what grows: on {node}, du -xh --max-depth=2 {mount} | sort -rh | head, now and again in a while."
    ),
    "disk-filling.history": "Over the last {window:duration} it grew by {bytes:bytes}.",
    # disk-io-saturated
    "rule.disk-io-saturated": "Disk overloaded",
    "doc.disk-io-saturated": "A disk is busy all the time and requests pile up; with the pods of its node.",
    "doc.disk-io-saturated.severity": "warning",
    "doc.disk-io-saturated.incident": "Heavy I/O made jobs fail and connections drop now and then.",
    "doc.disk-io-saturated.limit.busy": "How busy it has to be.",
    "doc.disk-io-saturated.limit.queue": "How many requests have to wait.",
    "disk-io-saturated": (
        "Disk {device} of {node} has been busy for {seconds:duration} ({share:percent}), {queue} requests wait: "
        "everything on it is slow."
    ),
    "disk-io-saturated.mounts": "It carries {mounts}.",
    "disk-io-saturated.queue": "When this began, {before} requests waited; now it is {queue}.",
    "disk-io-saturated.waiting": "{pod} of {user} waits for it: {count:process|processes} in state D.",
    "disk-io-saturated.pod": "{pod} of {user} runs there.",
    "disk-io-saturated.advice": (
        "On {node}: iotop -oPa shows who reads and writes most. Move data sets to another disk or into memory, and "
        "write checkpoints less often."
    ),
    # image-cache-large
    "rule.image-cache-large": "Images take much disk space",
    "doc.image-cache-large": "Images take more of a disk than they should; with what of them could go.",
    "doc.image-cache-large.severity": "warning",
    "doc.image-cache-large.incident": "The Docker cache needed more room, urgently.",
    "doc.image-cache-large.limit.share": "Which share of its disk the cache may take.",
    "doc.image-cache-large.limit.size": "How much it may take at all; 0: as much as that share.",
    "image-cache-large.growth": (
        "Images take {bytes:bytes} on {mount} of {node}, {share:percent} of the disk, and most of them are in use."
    ),
    "image-cache-large.unused-images": (
        "Images take {bytes:bytes} on {mount} of {node}, {share:percent} of the disk; nobody uses {unused:bytes} of it."
    ),
    "image-cache-large.build-cache": (
        "Images take {bytes:bytes} on {mount} of {node}, {share:percent} of the disk; {build:bytes} are build cache."
    ),
    "image-cache-large.growth.advice": (
        "Move the runtime's root on {node} to a larger disk, or spread the jobs; ask the owners of the largest images "
        "to make them smaller."
    ),
    "image-cache-large.unused-images.advice": (
        "On {node}: remove the images that no container uses, by name: docker rmi IMAGE (it refuses those in use), or "
        "crictl rmi IMAGE (it does not refuse)."
    ),
    "image-cache-large.build-cache.advice": "On {node}: docker builder prune --filter until=24h",
    # image-oversize
    "rule.image-oversize": "Image too large",
    "doc.image-oversize": "An image is so large that it fills disks and takes long to start; with who uses it.",
    "doc.image-oversize.severity": "warning",
    "doc.image-oversize.incident": "Two saved images of 59 GB each took the platform down.",
    "doc.image-oversize.limit.size": "How large an image may be.",
    "image-oversize": "Image {image} is {bytes:bytes} large, on {count:node|nodes} ({nodes}).",
    "image-oversize.used": "It is used by {users}.",
    "image-oversize.unused": "No container uses it now.",
    "image-oversize.advice": (
        "Ask its owner to leave data, caches and checkpoints out of it (docker history {image} shows which step is "
        "large) and to mount them instead."
    ),
    # mass-deletion
    "rule.mass-deletion": "Much data deleted at once",
    "doc.mass-deletion": (
        "A large part of the data on a mount is gone within minutes. Our own cleanup does not count; silence it before "
        "a large cleanup by hand."
    ),
    "doc.mass-deletion.severity": "critical",
    "doc.mass-deletion.incident": "An intruder deleted data.",
    "doc.mass-deletion.limit.share": "Which share of the data has to be gone.",
    "doc.mass-deletion.limit.size": "How much has to be gone.",
    "doc.mass-deletion.limit.within": "Within which time.",
    "doc.mass-deletion.limit.keep_for": "How long it is said.",
    "mass-deletion": (
        "{bytes:bytes} ({share:percent}) of the data on {mount} of {place} disappeared within {seconds:duration}."
    ),
    "mass-deletion.now": "It held {before:bytes} and holds {now:bytes} now.",
    "mass-deletion.advice": (
        "Ask at once whether this was wanted. If not: stop whoever deletes, mount it read-only "
        "(mount -o remount,ro {mount}), and restore from a snapshot. Who is logged in on {node}: last -n 20"
    ),
    # mount-lost
    "rule.mount-lost": "Mount lost",
    "doc.mount-lost": "A mount that `agent.mounts` expects is missing, hangs, is read-only or no longer works.",
    "doc.mount-lost.severity": "critical",
    "doc.mount-lost.incident": "The NAS was not mounted, or hung.",
    "doc.mount-lost.limit.everywhere": "On how many nodes at once it is the server's fault.",
    "mount-lost.missing": "{mount} is not mounted on {node}: jobs there do not find their data.",
    "mount-lost.hung": "{mount} on {node} has not answered for {seconds:duration}: whatever touches it hangs.",
    "mount-lost.read-only": "{mount} on {node} cannot be written to: saving checkpoints there fails.",
    "mount-lost.stale": "{mount} on {node} no longer works: {error}.",
    "mount-lost.everywhere": "{mount} is lost on {count} of {total} nodes ({state}): look at its server first.",
    "mount-lost.missing.advice": "On {node}: mount {mount}; see that it is in /etc/fstab and that its server answers.",
    "mount-lost.hung.advice": (
        "On {node}: see whether its server can be reached (grep {mount} /proc/mounts, ping it); if it will not "
        "come back: umount -f -l {mount}"
    ),
    "mount-lost.read-only.advice": (
        "On {node}: dmesg -T | grep -iE 'nfs|remount|error'; check the export, then: mount -o remount,rw {mount}"
    ),
    "mount-lost.stale.advice": "On {node}: umount -l {mount} && mount {mount}; pods that use it have to be restarted.",
    "mount-lost.everywhere.advice": (
        "See that the server of {mount} runs, and the network to it. On {node}: grep {mount} /proc/mounts"
    ),
    "mount-lost.since": "It is like this for {seconds:duration}.",
    "mount-lost.pods": "{count:pod|pods} on {node} may use it.",
}
