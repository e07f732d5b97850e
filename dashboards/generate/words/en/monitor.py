"""English: the dashboard of alerts and the monitor itself."""

from __future__ import annotations

DASHBOARD = (
    "gpuwarden / Alerts & the monitor itself",
    "Whether alerts arrive, whether gpuwarden sees everything that it should, and what it costs.",
)
ROWS = {
    "monitor.now": "Now",
    "monitor.alerts": "Alerts",
    "monitor.delivery": "Delivery",
    "monitor.daemon": "The daemon",
    "monitor.agents": "The agents",
}
PANELS = {
    "monitor.firing": ("Alerts firing", "Not silenced, not in maintenance, not explained by another."),
    "monitor.parked": (
        "Messages parked",
        "Permanently refused by their receiver and never delivered. Check its settings.",
    ),
    "monitor.failing": (
        "Receivers failing",
        "Receivers that take no messages now. They are tried again; see since when below.",
    ),
    "monitor.silent": ("Agents silent", "Nodes whose agent does not answer. Nothing new is known of these nodes."),
    "monitor.hung": ("Collectors hung", "A read that does not return: a wedged driver, a dead NAS. The others go on."),
    "monitor.blind": ("Sources lost", "Parts of the world that the daemon cannot see, such as the API server."),
    "monitor.look-age": ("Last look", "How long ago findings were last looked for. Minutes: the daemon is stuck."),
    "monitor.view-age": ("Age of the view", "How old the daemon's picture of the cluster is."),
    "monitor.alerts": ("Alerts by state", "Many silenced or inhibited ones hide what is new: review the silences."),
    "monitor.firing-line": ("Alerts firing by severity", "Alerts that send notifications."),
    "monitor.held": (
        "Held without fresh facts",
        "Findings kept open without evidence that they are over. Bring back the agent or source first.",
    ),
    "monitor.deliveries": (
        "Deliveries",
        "Attempts by how they ended. Failed ones are tried again, parked ones are not.",
    ),
    "monitor.not-sent": ("Not delivered", "By receiver. `gpuwarden alerts test` sends a sample and prints the answer."),
    "monitor.outbox": (
        "Outbox",
        "Messages that wait, or were parked. A pile that grows: the receiver is down or limits us.",
    ),
    "monitor.delay": ("Delay of delivery", "How old the last message was when it was delivered."),
    "monitor.receivers": ("Receivers", "Since the daemon's start. An empty last column is good."),
    "monitor.sources": ("Sources", "Whether each part of the world can be seen. While one is down, findings are held."),
    "monitor.lease": ("Lease", "Which replica acts and sends. Exactly one should; empty without replicas."),
    "monitor.versions": ("Versions", "More than one line outside of an update: some were forgotten."),
    "monitor.look": ("Time to look", "A look that takes longer than its interval makes alerts late."),
    "monitor.daemon-cpu": (
        "CPU of the daemon",
        "Cores. Above 1 for long: give it fewer nodes, or use Prometheus as its source.",
    ),
    "monitor.daemon-memory": (
        "Memory of the daemon",
        "It should be flat once all pods are known. Growth for days: report it.",
    ),
    "monitor.daemon-files": ("Open files of the daemon", "Share of its limit."),
    "monitor.not-explained": (
        "Pods not explained",
        "Pods beyond the number or time there is. `gpuwarden why` still explains each.",
    ),
    "monitor.uptime": ("Running for", "The youngest replica. A small figure again and again: look for crashes."),
    "monitor.not-rendered": (
        "Metrics that failed",
        "Scrapes from which an area was missing, since the start. The daemon's log says why.",
    ),
    "monitor.silent-nodes": (
        "Silent agents",
        "Check the agent's pod on these nodes, port 9835, and the token. Empty is good.",
    ),
    "monitor.broken": (
        "Collectors in trouble",
        "Not working, or hung and since when. The agent's log on the node says why.",
    ),
    "monitor.collectors-up": (
        "Working collectors",
        "Share of the chosen nodes. What a node has nothing to read for counts as not working.",
    ),
    "monitor.agents-up": ("Agents scraped", "A gap between the two: see which targets are down in Prometheus."),
    "monitor.collector-duration": (
        "Slowest run of each collector",
        "Over the chosen nodes. A jump: something there answers slowly.",
    ),
    "monitor.collector-failures": ("Failed runs per second", "The 20 worst. The agent's log has the messages."),
    "monitor.scrape": ("Scrape duration", "Close to the scrape timeout: raise it, or look what hangs on the node."),
    "monitor.samples": (
        "Samples per scrape",
        "What gpuwarden costs Prometheus. Many images and containers make many series.",
    ),
    "monitor.agent-cpu": (
        "CPU of agents",
        "Cores; the 20 highest, where agents run as pods. Above 0.1: see which collector is slow.",
    ),
    "monitor.agent-memory": ("Memory of agents", "The 20 highest, where agents run as pods. It should stay flat."),
    "monitor.agent-cost": (
        "Time agents spend collecting",
        "Seconds per second over all collectors, waiting included: an upper bound of the agent's cost.",
    ),
}
