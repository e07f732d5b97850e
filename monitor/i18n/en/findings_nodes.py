"""English: text of the rules about nodes, agents and services."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # node-down
    "rule.node-down": "Node down",
    "doc.node-down": "A node is not ready, is short of disk or memory, or flaps.",
    "doc.node-down.severity": "warning; critical when down with pods bound to it",
    "doc.node-down.incident": "Two nodes were down because of kubelet failures.",
    "doc.node-down.limit.joining": "How long a new node may take to become ready.",
    "doc.node-down.limit.flaps": "Number of changes within `window` that count as flapping.",
    "doc.node-down.limit.window": "Time window for `flaps`.",
    "node-down.kubelet-silent": (
        "Node {node} is down: its kubelet stopped reporting, and it has not been ready for {seconds:duration}."
    ),
    "node-down.disk-pressure": "Node {node} has been short of disk space for {seconds:duration} and is evicting pods.",
    "node-down.memory-pressure": "Node {node} has been short of memory for {seconds:duration} and is evicting pods.",
    "node-down.network": "The pod network of node {node} does not work: {message}",
    "node-down.flapping": "Node {node} is flapping: {changes} changes in {seconds:duration}.",
    "node-down.unknown": "Node {node} is unhealthy: {message}",
    "node-down.agent-answers": "Its agent responds, so the machine and its network are up.",
    "node-down.agent-silent": "Its agent does not respond either ({error}): the machine is off, hung or disconnected.",
    "node-down.pods": "Bound to it: {count:pod|pods} with {gpus:gpus}.",
    "node-down.says": "Kubernetes says: {message}",
    "node-down.kubelet-silent.advice": (
        "If the machine responds: ssh {node} systemctl restart kubelet; journalctl -u kubelet -n 100. If not, check "
        "its console (BMC)."
    ),
    "node-down.disk-pressure.advice": "Find what fills the disk and free space: ssh {node} df -h; gpuwarden status",
    "node-down.memory-pressure.advice": (
        "Find which pods use the memory: kubectl top pod -A --field-selector spec.nodeName={node}; set memory limits."
    ),
    "node-down.network.advice": (
        "Check the network plugin's pod there: kubectl get pod -n kube-system -o wide --field-selector spec.nodeName="
        "{node}"
    ),
    "node-down.flapping.advice": (
        "Keep new pods off the node until the cause is known: kubectl cordon {node}; then check journalctl -u "
        "kubelet and dmesg -T."
    ),
    "node-down.unknown.advice": "Check its conditions: kubectl describe node {node}",
    # agent-silent
    "rule.agent-silent": "Node not monitored",
    "doc.agent-silent": "A node reports no data, or only part of its data.",
    "doc.agent-silent.severity": "warning",
    "doc.agent-silent.incident": "A node was not monitored, and it went unnoticed.",
    "doc.agent-silent.limit.silent_after": "How long an agent may be silent.",
    "doc.agent-silent.limit.collector_after": "How long one of its collectors may fail or hang.",
    "agent-silent.node-down": "Node {node} has not reported for {seconds:duration}: the node itself is down.",
    "agent-silent.agent-down": "The agent on {node} has not responded for {seconds:duration}, although the node is up.",
    "agent-silent.none": "Node {node} has GPUs but has had no agent for {seconds:duration}: they are not monitored.",
    "agent-silent.nowhere": "No agent has been found for {seconds:duration}; {count:node has|nodes have} GPUs.",
    "agent-silent.error": "Querying {target} failed: {error}",
    "agent-silent.collector-hung": "Collector {collector} on {node} has been hanging for {seconds:duration}.",
    "agent-silent.collector-failing": "Collector {collector} on {node} has been failing for {seconds:duration}.",
    "agent-silent.collector-says": "Its error: {error}",
    "agent-silent.node-down.advice": "Bring the node back first: kubectl describe node {node}",
    "agent-silent.agent-down.advice": (
        "Check its pod: kubectl get pod -A -o wide --field-selector spec.nodeName={node} | grep gpuwarden-agent; "
        "without Kubernetes: ssh {node} systemctl status gpuwarden-agent"
    ),
    "agent-silent.nowhere.advice": (
        "Run an agent on each node (gpuwarden agent, as a DaemonSet), or list them in daemon.agents.static."
    ),
    "agent-silent.collector-hung.advice": (
        "A mount, the driver or the container runtime on {node} does not respond. Processes in state D show which: "
        "ssh {node} ps -eo pid,stat,wchan:32,cmd | grep ' D'"
    ),
    "agent-silent.collector-failing.advice": (
        "Read its error on {node}: gpuwarden snapshot; to switch it off: agent.collectors.{collector}.enabled: false"
    ),
    # actions-refused
    "rule.actions-refused": "Action refused",
    "doc.actions-refused": (
        "An agent refused an action request: invalid signature, meant for another node, reused, expired, or too many."
    ),
    "doc.actions-refused.severity": "warning",
    "doc.actions-refused.incident": "An attempt to delete other users' data.",
    "doc.actions-refused.limit.quiet": "How long no request may be refused before the alert resolves.",
    "actions-refused.signature": (
        "The agent on {node} received action requests without a valid signature: {count:time|times}, last "
        "{ago:duration} ago."
    ),
    "actions-refused.token": (
        "The agent on {node} received action requests with a token, which agents no longer accept: "
        "{count:time|times}, last {ago:duration} ago."
    ),
    "actions-refused.node": (
        "The agent on {node} received action requests for another node: {count:time|times}, last {ago:duration} ago."
    ),
    "actions-refused.replayed": (
        "The agent on {node} received requests that it had already executed: {count:time|times}, last "
        "{ago:duration} ago."
    ),
    "actions-refused.too-many": (
        "The agent on {node} received too many action requests: {count:request|requests} refused, last "
        "{ago:duration} ago."
    ),
    "actions-refused.expired": (
        "The agent on {node} received requests that have expired or are not valid yet: {count:time|times}, last "
        "{ago:duration} ago."
    ),
    "actions-refused.token.too": "Requests with a token instead of a signature: {count}",
    "actions-refused.node.too": "Requests for another node: {count}",
    "actions-refused.replayed.too": "Replayed requests: {count}",
    "actions-refused.too-many.too": "Requests above the limit per minute: {count}",
    "actions-refused.expired.too": "Requests expired or not valid yet: {count}",
    "actions-refused.signature.advice": (
        "No action was taken. Check that agent.actions.public_key_file on {node} contains the public key that belongs "
        "to daemon.cleanup.agents.private_key_file. If it does, another client is trying: find its address in the "
        "agent's log."
    ),
    "actions-refused.token.advice": (
        "No action was taken. Update the daemon, create keys with gpuwarden keys, and set "
        "daemon.cleanup.agents.private_key_file and agent.actions.public_key_file. If the daemon is up to date, "
        "another client is trying: find its address in the agent's log."
    ),
    "actions-refused.node.advice": (
        "No action was taken. Compare agent.node_name on {node} with the name that Kubernetes or the daemon shows. If "
        "they are equal, a request was redirected: find its address in the agent's log, and set agent.actions.tls."
    ),
    "actions-refused.replayed.advice": (
        "No action was taken. The daemon never sends a request id twice, so a request may have been recorded. Set "
        "agent.actions.tls on {node} to prevent eavesdropping."
    ),
    "actions-refused.too-many.advice": (
        "Check whether more than one daemon is running. If the plans really are this large, raise "
        "agent.actions.per_minute on {node}."
    ),
    "actions-refused.expired.advice": (
        "The clocks probably differ: compare date on {node} and on the daemon's machine, and check NTP (chronyc "
        "tracking)."
    ),
    # service-down
    "rule.service-down": "Service down",
    "doc.service-down": (
        "A service that the platform needs does not respond, or responds with errors; includes the Kubernetes API."
    ),
    "doc.service-down.severity": "critical; warning for Harbor components that pulls do not need",
    "doc.service-down.incident": "502, PostgreSQL down, Harbor down.",
    "doc.service-down.limit.stale_after": "Age at which a probe result is ignored.",
    "service-down.status": "{service} has responded with status {status} for {seconds:duration} ({target}).",
    "service-down.refused": "{service} has refused connections for {seconds:duration} ({target}).",
    "service-down.timeout": "{service} has not responded in time for {seconds:duration} ({target}).",
    "service-down.dns": "The name of {service} has not resolved for {seconds:duration} ({target}).",
    "service-down.tls": "The certificate of {service} has not been accepted for {seconds:duration} ({target}).",
    "service-down.read-only": "{service} has been read-only for {seconds:duration} ({target}).",
    "service-down.component": (
        "Component {component} of {service} has been unhealthy for {seconds:duration} ({target})."
    ),
    "service-down.unknown": "{service} has been failing for {seconds:duration} ({target}): {message}",
    "service-down.says": "Its response: {message}",
    "service-down.status.advice": (
        "A 502 or 503 comes from the proxy in front of it: check the service behind {target}."
    ),
    "service-down.refused.advice": "Read its log, then start it. It should listen on {target}.",
    "service-down.timeout.advice": (
        "Test it from here: curl -m 5 -v {target}. Likely a firewall, or an overloaded or hung process."
    ),
    "service-down.dns.advice": "Check the name in daemon.services and this machine's resolver: getent hosts NAME",
    "service-down.tls.advice": "Renew the certificate, or set ca_file in daemon.services to its CA.",
    "service-down.read-only.advice": (
        "Check whether it is a standby (SELECT pg_is_in_recovery()), default_transaction_read_only is on, or its "
        "disk is full."
    ),
    "service-down.component.advice": "Read the log of {component}, then restart it.",
    "service-down.unknown.advice": "Test it by hand: {target}",
    "service-down.kubernetes.advice": (
        "Until it responds, pods and nodes are shown as last seen. On a control plane node: crictl ps -a | grep "
        "apiserver; curl -k https://127.0.0.1:6443/livez"
    ),
}
