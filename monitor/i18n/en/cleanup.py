"""English: what a cleanup would do and why, what it leaves alone, and why there is no plan."""

from __future__ import annotations

_WHY: dict[str, str] = {
    "cleanup.why.build-cache": (
        "What builds left behind: {bytes:bytes}, of which goes what nobody used for {seconds:duration}."
    ),
    "cleanup.why.dangling": "It has no name any more and nobody has used it for {seconds:duration} ({bytes:bytes}).",
    "cleanup.why.unused": "Last used {seconds:duration} ago ({bytes:bytes}).",
    "cleanup.why.never-used": "Here for {seconds:duration} and not seen in use ({bytes:bytes}).",
    "cleanup.why.dataset-unused": (
        "Last used {seconds:duration} ago; {bytes:bytes} in {files:file|files}; belongs to {owner}."
    ),
    "cleanup.why.dataset-over-quota": (
        "{owner} is {excess:bytes} over the quota of {quota:bytes}; this was last used {seconds:duration} ago: "
        "{bytes:bytes} in {files:file|files}."
    ),
    "cleanup.why.purge": (
        "In the trash for more than {seconds:duration}: {bytes:bytes} in {count:entry|entries}. This cannot be undone."
    ),
    "cleanup.why.pod-finished": "Ended {seconds:duration} ago ({phase}).",
    "cleanup.why.pod-stuck": (
        "Should have ended {seconds:duration} ago; the agent of {node} proves that nothing of it is left there."
    ),
    "cleanup.why.pod-confirmed": (
        "Should have ended {seconds:duration} ago; an administrator says that nothing of it is left on {node}."
    ),
    "cleanup.why.gpu-zombie": "Its pod is over, and it still holds GPU {gpu} of {node}, for {seconds:duration} now.",
    "cleanup.why.gpu-idle": "It has GPU {gpu} of {node} and has done nothing on any card for {seconds:duration}.",
    "cleanup.why.gpu-orphan": (
        "Process {pid} ({process}) belongs to no pod and has been on GPU {gpu} of {node} for {seconds:duration}."
    ),
}

_KEPT: dict[str, str] = {
    "cleanup.kept.pinned": "Pinned.",
    "cleanup.kept.owner-kept": "The policy leaves this owner alone.",
    "cleanup.kept.in-use": "In use.",
    "cleanup.kept.needed": "A pod, or a template that pods are made from, needs it.",
    "cleanup.kept.local-only": "No registry is known to have it: removed, it could not be pulled again.",
    "cleanup.kept.too-young": "Not old enough yet.",
    "cleanup.kept.unknown": "Not enough is known of it to touch it.",
    "cleanup.kept.refused-lately": "It was refused on its node a short while ago.",
    "cleanup.kept.exempt": "The policy exempts it, or it belongs to the system.",
    "cleanup.kept.newest": "One of the last few of its job.",
    "cleanup.kept.job-active": "Its job is not over.",
    "cleanup.kept.finalizer": "A finalizer keeps it; whoever set that has to remove it. It is never forced.",
    "cleanup.kept.process-left": "Something of it still runs on its node.",
    "cleanup.kept.agent-silent": "The agent of its node does not speak, so nothing proves that it has ended.",
    "cleanup.kept.busy": "Another of its cards works.",
    "cleanup.kept.job-busy": "Other pods of its job work or have yet to start.",
    "cleanup.kept.draws-power": "The card draws the power of one that works.",
    "cleanup.kept.terminating": "It is being ended already.",
    "cleanup.kept.container-left": "It is in a container that runs: that one has to be stopped.",
    "cleanup.kept.platform": "It belongs to the platform.",
}

_REFUSED: dict[str, str] = {
    "cleanup.refused.needs-unknown": (
        "There is no plan: the cluster could not be asked for {kinds}, so nobody knows what is needed."
    ),
    "cleanup.refused.stale": (
        "There is no plan: what the agent of {node} says is {seconds:duration} off. It is silent, or its clock wrong."
    ),
    "cleanup.refused.images-unknown": "There is no plan: images or containers of {node} are not known right now.",
    "cleanup.refused.disk-unknown": "There is no plan: how full the disk on {node} is, is not known right now.",
    "cleanup.refused.other-root": "There is no plan: {other} was scanned on {node}, and {root} was asked for.",
    "cleanup.refused.scan-old": "There is no plan: the scan of {root} on {node} is {seconds:duration} off.",
    "cleanup.refused.read-only": "There is no plan: {root} on {node} cannot be written to.",
    "cleanup.refused.no-atime": (
        "There is no plan: {root} on {node} does not record when files are read (noatime). Mount it with relatime, "
        "or set without_atime: true to go by changes alone."
    ),
    "cleanup.refused.atime-unknown": (
        "There is no plan: whether {root} on {node} records when files are read is up to its server. Set "
        "without_atime: true only if data that is read but never changed may go."
    ),
    "cleanup.refused.nodes-unseen": (
        "There is no plan: {nodes} mount {root} too and do not tell who has files open there."
    ),
    "cleanup.refused.kubernetes-unseen": "There is no plan: Kubernetes cannot be asked about pods right now.",
    "cleanup.refused.view-old": "There is no plan: the view of the cluster is {seconds:duration} old.",
}

_FRAME: dict[str, str] = {
    "cleanup.kubelet-first": (
        "The policy acts from {high:percent} on, the kubelet removes images itself from {kubelet:percent} on: "
        "it would be first. Set high below that."
    ),
    "cleanup.capped.items": "There is more to do: the cap on items ends the plan here.",
    "cleanup.capped.bytes": "There is more to do: the cap on bytes leaves some of it out.",
    "cleanup.risk.low": "can be had again",
    "cleanup.risk.medium": "can be restored for a while",
    "cleanup.risk.high": "cannot be undone",
}

WORDS: dict[str, str] = _WHY | _KEPT | _REFUSED | _FRAME
