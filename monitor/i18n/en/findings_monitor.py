"""English: text of self-monitoring rules, and text shared by all rules."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # shared
    "rule-too-many": "Rule {rule} reports more on {node} than a node can have; {count} findings are left out.",
    "rule-broken": "Rule {rule} could not be evaluated: {error}. Its last findings are kept.",
    "doc.limit.after": "How long the condition must last.",
    "doc.limit.io_wait_cores": "Number of cores waiting for I/O above which storage is the cause.",
    "doc.limit.critical": "Threshold for critical severity.",
    # monitor-blind
    "rule.monitor-blind": "Monitoring data missing",
    "doc.monitor-blind": (
        "The monitor itself has no data from the Kubernetes API, from its agents or from some of them, or it cannot "
        "evaluate rules or save its state, or its state was damaged, was written by a newer version or is too large. "
        "Its `agents` cause explains `agent-silent`."
    ),
    "doc.monitor-blind.severity": "critical; warning for a single source and for a large state directory",
    "doc.monitor-blind.incident": "Monitoring had stopped without notice.",
    "monitor-blind.api-server": (
        "The monitor has had no data from the Kubernetes API for {seconds:duration} ({source}): alerts about pods "
        "and nodes keep their last state, new ones may be missed: {why}"
    ),
    "monitor-blind.agents": (
        "The monitor has had no data from any agent for {seconds:duration} ({source}): problems on the nodes are not "
        "detected: {why}"
    ),
    "monitor-blind.detection": (
        "The monitor has not evaluated its rules for {seconds:duration} ({source}): no new alerts can fire: {why}"
    ),
    "monitor-blind.state": (
        "The monitor cannot save its state ({source}): if it stops now, alerts and queued messages are lost: {why}"
    ),
    "monitor-blind.state-damaged": (
        "Part of the monitor's state was damaged ({source}): readable records were kept, the damaged file was moved "
        "aside: {why}"
    ),
    "monitor-blind.state-newer": (
        "A newer version wrote the monitor's state ({source}): this version leaves the files unchanged and keeps its "
        "own state in memory only, so it is lost on restart: {why}"
    ),
    "monitor-blind.state-size": (
        "The state directory is too large ({source}) although the monitor has removed all old records: {why}"
    ),
    "monitor-blind.source": (
        "The monitor has had no data from {source} for {seconds:duration}: problems there are not detected: {why}"
    ),
    "monitor-blind.api-server.advice": (
        "Check that the API server responds and that the monitor's account may read ({source}): kubectl get --raw "
        "/readyz"
    ),
    "monitor-blind.agents.advice": (
        "Check that the agents are running ({source}): kubectl get pod -A -o wide | grep gpuwarden-agent"
    ),
    "monitor-blind.detection.advice": "Read the monitor's own log ({source}), then restart it.",
    "monitor-blind.state.advice": "Free space in the directory daemon.state, or make it writable ({source}): df -h",
    "monitor-blind.state-damaged.advice": (
        "Check the disk that holds daemon.state for errors: dmesg -T. Then check silences and recent alerts, and "
        "remove or archive {source} to end this alert."
    ),
    "monitor-blind.state-newer.advice": (
        "Install the newer version again. To continue with this version without that state, move {source} out of the "
        "directory daemon.state; no restart is needed."
    ),
    "monitor-blind.state-size.advice": (
        "Look for large files in the directory daemon.state ({source}), for example damaged databases that were moved "
        "aside: du -a | sort -n | tail"
    ),
    "monitor-blind.source.advice": "Check the status of {source}: gpuwarden status",
    # receiver-failing
    "rule.receiver-failing": "Alerts not delivered",
    "doc.receiver-failing": (
        "Messages do not reach a receiver. The other receivers are notified, and queued messages are retried."
    ),
    "doc.receiver-failing.severity": "warning",
    "doc.receiver-failing.incident": "The alert channel was broken for weeks.",
    "receiver-failing.parked": (
        "Alerts do not reach {receiver} ({kind}): it rejects them permanently, {count:message is|messages are} "
        "parked: {error}"
    ),
    "receiver-failing.retrying": (
        "Alerts have not reached {receiver} ({kind}) for {seconds:duration}; {count:message is|messages are} waiting "
        "to be retried: {error}"
    ),
    "receiver-failing.advice": (
        "Check its address, its secret and the network path, then run: gpuwarden alerts test --receiver {receiver}"
    ),
}
