"""English: what a cleanup would do and why, what it leaves alone, and why there is no plan."""

from __future__ import annotations

_WHY: dict[str, str] = {
    "cleanup.why.build-cache": "Build cache: {bytes:bytes}; entries unused for {seconds:duration} are removed.",
    "cleanup.why.dangling": "Untagged and unused for {seconds:duration} ({bytes:bytes}).",
    "cleanup.why.unused": "Last used {seconds:duration} ago ({bytes:bytes}).",
    "cleanup.why.never-used": "Present for {seconds:duration} and never seen in use ({bytes:bytes}).",
    "cleanup.why.dataset-unused": (
        "Last used {seconds:duration} ago; {bytes:bytes} in {files:file|files}; belongs to {owner}."
    ),
    "cleanup.why.dataset-over-quota": (
        "{owner} exceeds the quota of {quota:bytes} by {excess:bytes}; this was last used {seconds:duration} ago: "
        "{bytes:bytes} in {files:file|files}."
    ),
    "cleanup.why.purge": (
        "In the trash for more than {seconds:duration}: {bytes:bytes} in {count:entry|entries}. This cannot be undone."
    ),
    "cleanup.why.pod-finished": "Ended {seconds:duration} ago ({phase}).",
    "cleanup.why.pod-stuck": (
        "Should have terminated {seconds:duration} ago; the agent on {node} confirms that nothing of it is left there."
    ),
    "cleanup.why.pod-confirmed": (
        "Should have terminated {seconds:duration} ago; an administrator confirmed that nothing of it is left on "
        "{node}."
    ),
    "cleanup.why.gpu-zombie": "Its pod has ended, but it has held GPU {gpu} of {node} for {seconds:duration} since.",
    "cleanup.why.gpu-idle": "It holds GPU {gpu} of {node} and has used none of its GPUs for {seconds:duration}.",
    "cleanup.why.gpu-orphan": (
        "Process {pid} ({process}) belongs to no pod and has been on GPU {gpu} of {node} for {seconds:duration}."
    ),
}

_KEPT: dict[str, str] = {
    "cleanup.kept.kept": "Its owner keeps it.",
    "cleanup.kept.pinned": "Pinned.",
    "cleanup.kept.owner-kept": "The policy exempts this owner.",
    "cleanup.kept.in-use": "In use.",
    "cleanup.kept.needed": "A pod or pod template needs it.",
    "cleanup.kept.local-only": "No known registry has it: once removed, it could not be pulled again.",
    "cleanup.kept.too-young": "Not old enough yet.",
    "cleanup.kept.unknown": "Too little is known about it.",
    "cleanup.kept.refused-lately": "Its node recently refused to remove it.",
    "cleanup.kept.exempt": "The policy exempts it, or it belongs to the system.",
    "cleanup.kept.newest": "One of the most recent pods of its job.",
    "cleanup.kept.job-active": "Its job is still active.",
    "cleanup.kept.finalizer": "A finalizer keeps it; its owner must remove that. Deletion is never forced.",
    "cleanup.kept.process-left": "One of its processes still runs on its node.",
    "cleanup.kept.agent-silent": "The agent on its node does not respond, so nothing proves that it has ended.",
    "cleanup.kept.busy": "Another of its GPUs is busy.",
    "cleanup.kept.job-busy": "Other pods of its job are busy or have not started yet.",
    "cleanup.kept.inference": "It is an inference service, which may wait for requests.",
    "cleanup.kept.draws-power": "The GPU draws as much power as a busy one.",
    "cleanup.kept.terminating": "It is already terminating.",
    "cleanup.kept.container-left": "It runs in a container: stop the container instead.",
    "cleanup.kept.platform": "It belongs to the platform.",
}

_REFUSED: dict[str, str] = {
    "cleanup.refused.needs-unknown": (
        "No plan: the cluster could not be queried for {kinds}, so what is needed is unknown."
    ),
    "cleanup.refused.stale": (
        "No plan: the data of the agent on {node} is {seconds:duration} off. The agent is silent, or its clock is "
        "wrong."
    ),
    "cleanup.refused.images-unknown": "No plan: the images or containers of {node} are currently unknown.",
    "cleanup.refused.disk-unknown": "No plan: the disk usage of {node} is currently unknown.",
    "cleanup.refused.other-root": "No plan: {other} was scanned on {node} instead of {root}.",
    "cleanup.refused.scan-old": "No plan: the scan of {root} on {node} is {seconds:duration} off.",
    "cleanup.refused.read-only": "No plan: {root} on {node} is not writable.",
    "cleanup.refused.no-atime": (
        "No plan: {root} on {node} does not record access times (noatime). Mount it with relatime, or set "
        "without_atime: true to rely on modification times alone."
    ),
    "cleanup.refused.atime-unknown": (
        "No plan: whether {root} on {node} records access times depends on its server. Set without_atime: true only "
        "if data that is read but never modified may be removed."
    ),
    "cleanup.refused.nodes-unseen": "No plan: {nodes} also mount {root} and do not report open files there.",
    "cleanup.refused.kubernetes-unseen": "No plan: Kubernetes cannot be queried for pods at the moment.",
    "cleanup.refused.view-old": "No plan: the cluster data is {seconds:duration} old.",
}

_FRAME: dict[str, str] = {
    "cleanup.kubelet-first": (
        "The policy acts above {high:percent}, but the kubelet already removes images above {kubelet:percent}. Set "
        "high below that."
    ),
    "cleanup.capped.items": "The plan stops at the item limit; more remains.",
    "cleanup.capped.bytes": "The plan stops at the byte limit; more remains.",
    "cleanup.risk.low": "recoverable",
    "cleanup.risk.medium": "restorable for a while",
    "cleanup.risk.high": "irreversible",
}

WORDS: dict[str, str] = _WHY | _KEPT | _REFUSED | _FRAME
