"""English: the dashboard of storage and cleanup."""

from __future__ import annotations

DASHBOARD = (
    "gpuwarden / Storage & cleanup",
    "How full the disks are, of what and how soon, whether mounts and registries answer, what was cleaned up.",
)
ROWS = {
    "storage.now": "Now",
    "storage.disks": "Disks",
    "storage.io": "I/O",
    "storage.images": "Images",
    "storage.containers": "What containers write",
    "storage.reach": "Mounts and registries",
    "storage.cleanup": "Cleanup",
}
PANELS = {
    "storage.full": ("Disks over 80 %", "See below what fills them: images, layers, logs or data."),
    "storage.filling": ("Full within 24 h", "By how they filled over the last six hours. Act on these first."),
    "storage.inodes": ("Inodes over 80 %", "Millions of small files: no new file can be made although bytes are left."),
    "storage.broken": (
        "Hung, failed, turned read-only",
        "A disk that turned read-only is often dying. A hung one is most often a dead NAS.",
    ),
    "storage.mounts-lost": ("Mounts lost", "Expected mounts that are missing or do not answer, counted on each node."),
    "storage.registries-lost": (
        "Registries not reached",
        "Pairs of node and registry. From there no image can be pulled.",
    ),
    "storage.disks": (
        "Disks",
        "Used as df counts. Full in: by the trend of six hours; empty if the disk does not fill up.",
    ),
    "storage.share": ("Used", "The 20 fullest. gpuwarden warns at 80 %, and 90 % is critical."),
    "storage.marks": (
        "Disks of images and the kubelet's marks",
        (
            "Above the first mark the kubelet removes images that jobs will pull again, at the last it evicts pods. "
            "Clean up before. Of several nodes, the strictest marks are drawn."
        ),
    ),
    "storage.prediction": ("Used in 24 hours", "If it goes on as in the last six hours. At 100 %: make room today."),
    "storage.room": (
        "Room until the kubelet evicts pods",
        "What is left of the disk above the eviction mark; the 20 smallest. Below 0 pods are being evicted.",
    ),
    "storage.inodes-line": ("Inodes used", "The 20 fullest. Find where they are: du -x --inodes --max-depth=3 MOUNT."),
    "storage.busy": ("Busy time", "Above 90 % with a queue beside it: the disk is the bottleneck."),
    "storage.queue": (
        "Requests under way",
        "Above 4 for minutes on a busy disk: jobs wait. Move data sets or spread the jobs.",
    ),
    "storage.throughput": ("Read and written", "The ten largest of each. Compare with what the disk is made for."),
    "storage.iowait": (
        "CPUs waiting for I/O",
        "The 20 highest. More than one core all the time: training is limited by storage.",
    ),
    "storage.cache": ("Image caches", "All images of a runtime, shared layers counted once; the 20 largest."),
    "storage.unused": ("Unused images", "Images that no container uses: what cleanup can remove."),
    "storage.parts": ("What runtimes hold", "Over the chosen nodes. What grows is where to begin."),
    "storage.oversize": (
        "Largest images",
        "Above 30 GiB an image is slow to pull and fills disks: take data and build tools out of it.",
    ),
    "storage.layers": (
        "Largest writable layers",
        "Files that containers write into themselves. Ask for a volume instead.",
    ),
    "storage.logs": ("Largest logs", "Limit them: containerLogMaxSize of the kubelet, or max-size of Docker."),
    "storage.shm": (
        "Shared memory of its size",
        "The 20 fullest. It is memory of the node, and not given back before the pod ends.",
    ),
    "storage.log-growth": (
        "Growth of logs",
        "The 20 fastest, over 15 minutes. A job that floods its log fills the disk for all.",
    ),
    "storage.mounts": ("Expected mounts", "Down on one node: mount it again. Down on all: look at the storage server."),
    "storage.mount-latency": (
        "Answer of mounts",
        "Seconds for a small question. Rising on all nodes: the server is overloaded.",
    ),
    "storage.mount-states": ("Mounts in trouble", "Hung, missing, stale or read-only, and since when. Empty is good."),
    "storage.registries": (
        "Registries",
        "Whether each node reaches each registry. One node only: look at its network.",
    ),
    "storage.registry-duration": ("Probe of registries", "The slowest node for each registry."),
    "storage.registry-failures": (
        "Why registries are not reached",
        "The stage says where to look: DNS, TCP, TLS or HTTP.",
    ),
    "storage.policies": (
        "Policies",
        "Runs, items and bytes since the daemon's start. Never run: check its schedule or trigger.",
    ),
    "storage.freed": ("Freed", "Bytes that runs of each policy gave back."),
    "storage.runs": ("Runs", "How runs ended. Failed ones are explained in `gpuwarden cleanup history`."),
    "storage.items": ("Items", "What became of each item. Many that are refused: a guard protects them, and says why."),
    "storage.actions": (
        "Actions on the nodes",
        "What agents did and refused. Refused for the token: an attempt without permission, or an outdated token.",
    ),
}
