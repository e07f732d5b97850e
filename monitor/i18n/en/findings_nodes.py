"""English: text of the rules about nodes, agents and services."""

from __future__ import annotations

WORDS: dict[str, str] = {
    # node-down
    "rule.node-down": "Node down",
    "doc.node-down": "A node is not ready, is short of disk or memory, or goes up and down.",
    "doc.node-down.severity": "warning; critical when down with pods on it",
    "doc.node-down.incident": "Two nodes were down because of their kubelets.",
    "doc.node-down.limit.joining": "How long a new node may take to get ready.",
    "doc.node-down.limit.flaps": "How many changes within `window` are flapping.",
    "doc.node-down.limit.window": "Within which time.",
    "node-down.kubelet-silent": "Node {node} is down: its kubelet has not reported for {seconds:duration}.",
    "node-down.disk-pressure": "Node {node} is short of disk space for {seconds:duration}: it evicts pods.",
    "node-down.memory-pressure": "Node {node} is short of memory for {seconds:duration}: it evicts pods.",
    "node-down.network": "The pod network of node {node} does not work: {message}",
    "node-down.flapping": "Node {node} goes up and down: {changes} changes in {seconds:duration}.",
    "node-down.unknown": "Node {node} is not well: {message}",
    "node-down.agent-answers": "Its agent answers, so the machine and its network are up.",
    "node-down.agent-silent": "Its agent does not answer either ({error}): the machine is off, hung or cut off.",
    "node-down.pods": "Bound to it: {count:pod|pods} with {gpus:GPU|GPUs}.",
    "node-down.says": "Kubernetes says: {message}",
    "node-down.kubelet-silent.advice": (
        "If the machine answers: ssh {node} systemctl restart kubelet; journalctl -u kubelet -n 100. "
        "If not: look at its console (BMC)."
    ),
    "node-down.disk-pressure.advice": "Find what fills it and free it: ssh {node} df -h; gpuwarden status",
    "node-down.memory-pressure.advice": (
        "Find who takes it: kubectl top pod -A --field-selector spec.nodeName={node}; set memory limits."
    ),
    "node-down.network.advice": (
        "Look at the network plugin's pod there: kubectl get pod -n kube-system -o wide "
        "--field-selector spec.nodeName={node}"
    ),
    "node-down.flapping.advice": (
        "Take no new work there until it is understood: kubectl cordon {node}; then journalctl -u kubelet, dmesg -T."
    ),
    "node-down.unknown.advice": "See its conditions: kubectl describe node {node}",
    # agent-silent
    "rule.agent-silent": "Node not monitored",
    "doc.agent-silent": "A node of which nothing is known, or not all that should be.",
    "doc.agent-silent.severity": "warning",
    "doc.agent-silent.incident": "Nobody noticed that a node was not watched.",
    "doc.agent-silent.limit.silent_after": "How long an agent may be silent.",
    "doc.agent-silent.limit.collector_after": "How long one of its collectors may fail or hang.",
    "agent-silent.node-down": "Nothing is heard from node {node} for {seconds:duration}: the node itself is down.",
    "agent-silent.agent-down": "The agent on {node} has not answered for {seconds:duration}, though the node is up.",
    "agent-silent.none": "Node {node} has GPUs and no agent for {seconds:duration}: nobody watches them.",
    "agent-silent.nowhere": "No agent was found for {seconds:duration}; {count:node has|nodes have} GPUs.",
    "agent-silent.error": "Asking {target} gives: {error}",
    "agent-silent.collector-hung": "On {node} the reader of {collector} hangs for {seconds:duration}.",
    "agent-silent.collector-failing": "On {node} the reader of {collector} fails for {seconds:duration}.",
    "agent-silent.collector-says": "It says: {error}",
    "agent-silent.node-down.advice": "Bring the node back first: kubectl describe node {node}",
    "agent-silent.agent-down.advice": (
        "Look at its pod: kubectl get pod -A -o wide --field-selector spec.nodeName={node} | grep gpuwarden-agent; "
        "without Kubernetes: ssh {node} systemctl status gpuwarden-agent"
    ),
    "agent-silent.nowhere.advice": (
        "Start an agent on each node (gpuwarden agent, as a DaemonSet), or name them in daemon.agents.static."
    ),
    "agent-silent.collector-hung.advice": (
        "Something on {node} does not answer: a mount, the driver or the container runtime. "
        "Processes in state D show it: ssh {node} ps -eo pid,stat,wchan:32,cmd | grep ' D'"
    ),
    "agent-silent.collector-failing.advice": (
        "See what it says on {node}: gpuwarden snapshot; to do without: agent.collectors.{collector}.enabled: false"
    ),
    # actions-refused
    "rule.actions-refused": "Action refused",
    "doc.actions-refused": (
        "Somebody asked an agent to act and was refused: by a wrong token, a used or expired request, or too many."
    ),
    "doc.actions-refused.severity": "warning",
    "doc.actions-refused.incident": "Somebody tries to delete what is not theirs.",
    "doc.actions-refused.limit.quiet": "How long nothing may be refused until it is over.",
    "actions-refused.token": (
        "Somebody wants the agent on {node} to act and does not have its token: {count:time|times}, "
        "last {seconds:duration} ago."
    ),
    "actions-refused.replayed": (
        "The agent on {node} was sent a request again that it had carried out: {count:time|times}, "
        "last {seconds:duration} ago."
    ),
    "actions-refused.too-many": (
        "The agent on {node} is asked to act too often: {count:request|requests} refused, last {seconds:duration} ago."
    ),
    "actions-refused.expired": (
        "The agent on {node} was sent requests that are not good any more, or not yet: {count:time|times}, "
        "last {seconds:duration} ago."
    ),
    "actions-refused.replayed.too": "Requests that were sent again: {count}",
    "actions-refused.too-many.too": "Requests beyond what is allowed in a minute: {count}",
    "actions-refused.expired.too": "Requests that were not good any more, or not yet: {count}",
    "actions-refused.token.advice": (
        "Nothing was done. Compare the daemon's action token with agent.actions.token_file on {node}; if they are the "
        "same, somebody else tries: see in the agent's log from which address, and renew the token."
    ),
    "actions-refused.replayed.advice": (
        "Nothing was done. The daemon never sends a request twice under one id: somebody may have recorded it. Set "
        "agent.actions.tls on {node} so that nobody can listen, and renew the token."
    ),
    "actions-refused.too-many.advice": (
        "See whether more than one daemon is at work; if the plans really are so large, raise agent.actions.per_minute "
        "on {node}."
    ),
    "actions-refused.expired.advice": (
        "Most likely the clocks differ: compare date on {node} and on the daemon's machine, and see to NTP "
        "(chronyc tracking)."
    ),
    # service-down
    "rule.service-down": "Service down",
    "doc.service-down": "Something the platform needs does not answer, or not as it should; also the Kubernetes API.",
    "doc.service-down.severity": "critical; warning for parts of Harbor that pulling does not need",
    "doc.service-down.incident": "502, PostgreSQL down, Harbor down.",
    "doc.service-down.limit.stale_after": "How old a probe may be to say anything.",
    "service-down.status": "{service} answers with status {status} for {seconds:duration} ({target}).",
    "service-down.refused": "{service} refuses connections for {seconds:duration} ({target}).",
    "service-down.timeout": "{service} has not answered in time for {seconds:duration} ({target}).",
    "service-down.dns": "The name of {service} cannot be resolved for {seconds:duration} ({target}).",
    "service-down.tls": "The certificate of {service} is not accepted for {seconds:duration} ({target}).",
    "service-down.read-only": "{service} can be read but not written for {seconds:duration} ({target}).",
    "service-down.component": "Part of {service} is ill for {seconds:duration}: {component} ({target}).",
    "service-down.unknown": "{service} fails for {seconds:duration} ({target}): {message}",
    "service-down.says": "It says: {message}",
    "service-down.status.advice": "A 502 or 503 comes from the proxy before it: look at what runs behind {target}.",
    "service-down.refused.advice": "Start it; see its log first. It should listen on {target}.",
    "service-down.timeout.advice": (
        "Try it from here: curl -m 5 -v {target}. A firewall, or a process that is overloaded or hung."
    ),
    "service-down.dns.advice": "Check the name in daemon.services and this machine's resolver: getent hosts NAME",
    "service-down.tls.advice": "Renew the certificate, or name its authority as ca_file in daemon.services.",
    "service-down.read-only.advice": (
        "See whether it is a standby (SELECT pg_is_in_recovery()), default_transaction_read_only is on, "
        "or its disk is full."
    ),
    "service-down.component.advice": "Look at the log of {component}, then start it anew.",
    "service-down.unknown.advice": "Try it by hand: {target}",
    "service-down.kubernetes.advice": (
        "Until it answers, pods and nodes are shown as last seen. On a control plane: crictl ps -a | grep apiserver; "
        "curl -k https://127.0.0.1:6443/livez"
    ),
}
