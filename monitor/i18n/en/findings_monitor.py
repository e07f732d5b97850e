"""English: text of self-monitoring rules, and text shared by all rules."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # shared
    "rule-broken": "The rule {rule} could not be checked: {error}. What it found last is kept.",
    "doc.limit.after": "How long it has to last.",
    "doc.limit.io_wait_cores": "Cores waiting for I/O from which storage is blamed.",
    "doc.limit.critical": "From when on it is critical.",
    # monitor-blind
    "rule.monitor-blind": "The monitor cannot see",
    "doc.monitor-blind": (
        "The monitor itself cannot see: the Kubernetes API, its agents, or a part of them; or it cannot look, or not "
        "remember. Its `agents` cause explains `agent-silent`."
    ),
    "doc.monitor-blind.severity": "critical; warning for a single source",
    "doc.monitor-blind.incident": "Nobody knew that nothing was watched any more.",
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
    # receiver-failing
    "rule.receiver-failing": "Alerts do not get through",
    "doc.receiver-failing": (
        "Messages do not reach a receiver. It is told through the others, and what waits is sent again."
    ),
    "doc.receiver-failing.severity": "warning",
    "doc.receiver-failing.incident": "The alert channel was broken for weeks.",
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
}
