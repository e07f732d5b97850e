"""English: messages about alerts, the names of rules and labels, and what the monitor says about itself."""

from __future__ import annotations

_MESSAGES: dict[str, str] = {
    "alert.severity.critical": "CRITICAL",
    "alert.severity.warning": "WARNING",
    "alert.severity.info": "INFO",
    "alert.reason.new": "{severity}, new",
    "alert.reason.notice": "{severity}, notice",
    "alert.reason.worse": "{severity}, got worse",
    "alert.reason.more-subjects": "{severity}, {count} more",
    "alert.reason.repeat": "{severity}, still not solved",
    "alert.reason.resolved": "RESOLVED",
    "alert.reason.partly": "{severity}, {over} resolved, {count} left",
    "alert.short.new": "new",
    "alert.short.notice": "notice",
    "alert.short.worse": "worse",
    "alert.short.more-subjects": "{count} more",
    "alert.short.repeat": "still",
    "alert.short.resolved": "resolved",
    "alert.short.partly": "{over} resolved, {count} left",
    "alert.title": "{status} - {what}",
    "alert.title-sample": "TEST - {what}",
    "alert.title-many": "{what} ({count})",
    "alert.mixed": "Several problems",
    "alert.place": ": {place}",
    "alert.list": ", ",
    "alert.names": "{names} ... ({count} in all)",
    "alert.others": " ... ({count} in all)",
    "alert.where": "Where: ",
    "alert.since": "Since: ",
    "alert.since-for": "{moment}, {seconds:duration} ago",
    "alert.first-for": "the first {moment}, {seconds:duration} ago",
    "alert.lasted": "{start} to {end}, lasted {seconds:duration}",
    "alert.when": "When: ",
    "alert.flapping": "; it comes and goes",
    "alert.affected": "Affected: ",
    "alert.evidence": "Evidence: ",
    "alert.advice": "To do: ",
    "alert.was": "It was: ",
    "alert.symptoms": "Also because of it: ",
    "alert.symptom": "{count} x {what}",
    "alert.symptom-examples": " ({names})",
    "alert.of-these": "{count} in all, the first {shown} of them:",
    "alert.for": " ({seconds:duration})",
    "alert.over": " (resolved, lasted {seconds:duration})",
    "alert.held": "There are no fresh data now; this is how it was last seen.",
    "alert.late": "This message is {seconds:duration} late: it could not be delivered before.",
    "alert.sample": "This is a test message: nothing is wrong, nothing has to be done.",
    "alert.link": "Details and silencing",
    "alert.more-lines": "... {count:more line|more lines}",
    "alert.digest": "{count} alerts in one message: {parts}",
    "alert.digest-critical": "{count} critical",
    "alert.digest-warning": "{count:warning|warnings}",
    "alert.digest-info": "{count} info",
    "alert.digest-resolved": "{count} resolved",
    "alert.digest-late": "The oldest of these is {seconds:duration} late.",
    "alert.summary": "SUMMARY - {firing} still firing",
    "alert.summary-calm": "SUMMARY - nothing is firing",
    "alert.summary-period": "{start} to {end}: {fired} fired, {resolved} resolved.",
    "alert.summary-rule": "{what}: {fired} fired, {resolved} resolved",
    "alert.summary-others": "{count:other kind|other kinds} of problem: {fired} fired, {resolved} resolved",
    "alert.summary-firing": "Still firing: {count}; the worst:",
}

_LABELS: dict[str, str] = {
    "label.cluster": "cluster {value}",
    "label.node": "node {value}",
    "label.gpu": "GPU {value}",
    "label.pod": "pod {value}",
    "label.namespace": "namespace {value}",
    "label.container": "container {value}",
    "label.user": "user {value}",
    "label.job": "job {value}",
    "label.queue": "queue {value}",
    "label.mount": "mount {value}",
    "label.image": "image {value}",
    "label.service": "service {value}",
}

_RULES: dict[str, str] = {
    "rule.actions-refused": "Action refused",
    "rule.gpu-zombie": "GPU held by a finished pod",
    "rule.gpu-idle": "GPU held but idle",
    "rule.gpu-orphan": "GPU used outside Kubernetes",
    "rule.gpu-ghost": "GPU busy without a process",
    "rule.gpu-wedged": "GPU process stuck",
    "rule.gpu-phantom": "GPU booked for a pod that is gone",
    "rule.gpu-fault": "GPU fault",
    "rule.gpu-hot": "GPU slowed down by heat or power",
    "rule.gpu-underused": "GPU hardly used",
    "rule.gpu-fragmented": "Free GPUs scattered",
    "rule.capacity-mismatch": "GPUs missing in Kubernetes",
    "rule.image-pull": "Image pull failed",
    "rule.image-pull-slow": "Image pull slow",
    "rule.registry-unreachable": "Registry unreachable",
    "rule.pod-pending": "Pod waits for a node",
    "rule.pod-stuck-creating": "Pod stuck while being created",
    "rule.pod-start-failed": "Pod cannot start",
    "rule.pod-stuck-terminating": "Pod stuck while being deleted",
    "rule.pod-silent": "Job without any log",
    "rule.quota-exhausted": "Quota used up",
    "rule.shm-pressure": "Shared memory too small",
    "rule.disk-full": "Disk nearly full",
    "rule.disk-filling": "Disk will soon be full",
    "rule.disk-io-saturated": "Disk overloaded",
    "rule.image-cache-large": "Images take much disk space",
    "rule.image-oversize": "Image too large",
    "rule.mass-deletion": "Much data deleted at once",
    "rule.mount-lost": "Mount lost",
    "rule.node-down": "Node down",
    "rule.agent-silent": "Node not monitored",
    "rule.service-down": "Service down",
    "rule.receiver-failing": "Alerts do not get through",
    "rule.monitor-blind": "The monitor cannot see",
}

_OWN: dict[str, str] = {
    "receiver-failing.parked": (
        "Alerts do not reach {receiver} ({kind}): it refuses them for good, {count:message is|messages are} set aside: "
        "{error}"
    ),
    "receiver-failing.retrying": (
        "Alerts have not reached {receiver} ({kind}) for {seconds:duration}, {count:message waits|messages wait} and "
        "will be sent again: {error}"
    ),
    "receiver-failing.advice": (
        "Check its address, its secret and the network to it, then: gpuwarden alerts test --receiver {receiver}"
    ),
    "monitor-blind.api-server": (
        "The monitor has not seen the Kubernetes API for {seconds:duration} ({source}): alerts about pods and nodes "
        "stay as they were, new ones may be missed: {why}"
    ),
    "monitor-blind.agents": (
        "The monitor has not heard from any agent for {seconds:duration} ({source}): what happens on the nodes is "
        "not seen: {why}"
    ),
    "monitor-blind.prometheus": (
        "The monitor cannot ask Prometheus for {seconds:duration} ({source}): what happens on the nodes is not seen, "
        "alerts about them stay as they were: {why}"
    ),
    "monitor-blind.detection": (
        "The monitor has not looked for trouble for {seconds:duration} ({source}): no new alert can come: {why}"
    ),
    "monitor-blind.state": (
        "The monitor cannot write what it has to remember ({source}): if it ends now, alerts and waiting messages "
        "are lost: {why}"
    ),
    "monitor-blind.source": (
        "The monitor has not seen {source} for {seconds:duration}: trouble there is not noticed: {why}"
    ),
    "monitor-blind.api-server.advice": (
        "See whether the API server answers and the monitor's account may read ({source}): kubectl get --raw /readyz"
    ),
    "monitor-blind.agents.advice": (
        "See whether the agents run ({source}): kubectl get pod -A -o wide | grep gpuwarden-agent"
    ),
    "monitor-blind.prometheus.advice": (
        "See whether the metrics store answers ({source}), and whether daemon.prometheus is right: gpuwarden status"
    ),
    "monitor-blind.detection.advice": "Look at the monitor's own log ({source}), then restart it.",
    "monitor-blind.state.advice": "Make room where daemon.state is, or make it writable ({source}): df -h",
    "monitor-blind.source.advice": "See what it says about {source}: gpuwarden status",
    "external": "{text}",
}

WORDS: dict[str, str] = _MESSAGES | _LABELS | _RULES | _OWN
