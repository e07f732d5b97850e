"""English: the dashboard of the cluster."""

from __future__ import annotations

DASHBOARD = (
    "gpuwarden / Cluster",
    "What the GPUs do, who has room, which nodes and services are well, and what is wrong now.",
)
ROWS = {
    "cluster.now": "Now",
    "cluster.findings": "What is wrong",
    "cluster.gpus": "GPUs and queues",
    "cluster.nodes": "Nodes",
    "cluster.trend": "Findings over time",
    "cluster.services": "Services",
}
PANELS = {
    "cluster.gpus": (
        "GPUs",
        "Cards that gpuwarden knows of. Fewer than yesterday: look for lost cards and silent agents.",
    ),
    "cluster.free": ("Free", "Cards without a holder. None: see who holds idle ones before you buy more."),
    "cluster.wasted": (
        "Wasted",
        (
            "Cards that are idle, or taken by something that does no work (zombie, orphan, ghost, wedged, phantom). "
            "Open GPU & jobs and ask their holders, or end what is left behind."
        ),
    ),
    "cluster.faulty": (
        "Faulty or unknown",
        "Cards that report errors, are lost, or without fresh facts. Drain the node before you reset one.",
    ),
    "cluster.waiting": (
        "GPUs waited for",
        "What the pods in the queues wait for. `gpuwarden why POD` says what is missing.",
    ),
    "cluster.nodes-down": (
        "Nodes not ready",
        "Nodes that Kubernetes does not call ready. Check the kubelet and the network.",
    ),
    "cluster.critical": (
        "Critical findings",
        "Everything critical, symptoms included. The table below has the causes.",
    ),
    "cluster.services-down": ("Services down", "Configured services whose probe fails. See the row Services."),
    "cluster.findings": (
        "Findings now",
        "What is wrong, without what another finding explains. The page of gpuwarden and its alerts say what to do.",
    ),
    "cluster.states": (
        "GPUs by state",
        "Blue is work, green is free; every other colour is a card that is paid for and not used.",
    ),
    "cluster.states-now": ("States now", "How many cards are in each state at this moment."),
    "cluster.by-user": ("GPUs by user", "Who has the most cards. Choose a user to see what they do with them."),
    "cluster.by-model": (
        "Free by model",
        "The largest pod that fits is the last column: many free cards on many nodes do not help a job that needs 8.",
    ),
    "cluster.queues": (
        "Queues",
        "A queue that waits and has free cards is stopped by something else: see the causes in GPU & jobs.",
    ),
    "cluster.queue-used": ("GPUs in use by queue", "What the pods of each queue have."),
    "cluster.queue-waiting": (
        "GPUs waited for by queue",
        "A queue that only grows needs quota, or users who ask for less.",
    ),
    "cluster.nodes": (
        "Nodes",
        "Follow a node to its cards. A silent agent means that everything else on its line is old or missing.",
    ),
    "cluster.node-utilization": (
        "GPU utilisation by node",
        "Mean over a node's cards; the 60 lowest. Low on a full node: its jobs wait for data or for each other.",
    ),
    "cluster.node-load": (
        "Load per CPU",
        "The 60 highest. Above 100 % more threads run or wait for I/O than there are CPUs, and GPUs starve.",
    ),
    "cluster.node-network": (
        "Network of nodes",
        "The 20 highest. Traffic of the network interfaces; RDMA bypasses these counters.",
    ),
    "cluster.by-severity": ("Findings by severity", "A step up is the time to look for what was changed."),
    "cluster.by-rule": ("Findings by rule", "The rules that find something now, the most frequent first."),
    "cluster.services": ("Services", "Whether each configured service is well. A gap: it was not probed."),
    "cluster.probe-duration": ("Probe duration", "A service that becomes slow is often about to fail."),
}
