"""Alerts and the monitor itself: do messages arrive, does it see everything, what does it cost."""

from __future__ import annotations

from dashboards.generate import variables
from dashboards.generate.findings import findings
from dashboards.generate.model import Column, Dashboard, Row
from dashboards.generate.panels import bars, series, stat, table, timeline
from dashboards.generate.promql import NODE, by_node, count, grown, one, rate, top, total

_RECEIVER = 'receiver=~"$receiver"'
_DAEMON, _AGENT = 'job="gpuwarden-daemon"', 'job="gpuwarden-agent"'
_AGENT_POD = 'container="agent",pod=~".*gpuwarden.*-agent-.+"'  # as the Helm chart names them
_ALERTS = one("gpuwarden_alerts", "severity", "state")
_OUTBOX = one(f"gpuwarden_outbox_messages{{{_RECEIVER}}}", "receiver", "state")
_PARKED = one(f'gpuwarden_outbox_messages{{state="parked",{_RECEIVER}}}', "receiver")
_FAILING = one(f"gpuwarden_receiver_failing_since_seconds{{{_RECEIVER}}}", "receiver")
_NOT_SENT = f'gpuwarden_deliveries_total{{outcome!="sent",{_RECEIVER}}}'
_SILENT = one(f"gpuwarden_node_agent_silent{{{NODE}}}", "node")
_HUNG = by_node("gpuwarden_collector_hung", "collector")
# What there is nothing to read for is absent and not broken.
_BROKEN = by_node("gpuwarden_collector_up == 0 unless gpuwarden_collector_absent == 1", "collector")
_COLLECTORS = by_node("gpuwarden_collector_up", "collector")
_COLLECTING = f"{rate('gpuwarden_collector_runs_total')} * gpuwarden_collector_duration_seconds"
_FIRING = one('gpuwarden_alerts{state="firing"}', "severity", "state")

NOW = Row(
    "monitor.now",
    (
        stat("monitor.firing", total(_FIRING, _ALERTS), look="tolerated"),
        stat(
            "monitor.parked",
            total(_PARKED, _OUTBOX),
            look="never",
        ),
        stat("monitor.failing", count(_FAILING, _OUTBOX), look="never"),
        stat("monitor.silent", count(f"{_SILENT} == 1", _SILENT), look="never"),
        stat("monitor.hung", count(f"{_HUNG} == 1", _HUNG), look="never"),
        stat(
            "monitor.blind", count(f"{one('gpuwarden_source_up', 'source')} == 0", "gpuwarden_source_up"), look="never"
        ),
        stat("monitor.look-age", "time() - max(gpuwarden_last_look_seconds)", look="age"),
        stat("monitor.view-age", "min(gpuwarden_view_age_seconds)", look="age"),
    ),
)

ALERTS = Row(
    "monitor.alerts",
    (
        series(
            "monitor.alerts",
            (f"sum by (state) ({_ALERTS})", "{{state}}"),
            stacked=True,
            series_colours="alert",
        ),
        series(
            "monitor.firing-line",
            (f"sum by (severity) ({_FIRING})", "{{severity}}"),
            stacked=True,
            series_colours="severity",
        ),
        findings("monitor.held", 'held="true"'),
    ),
)

DELIVERY = Row(
    "monitor.delivery",
    (
        series(
            "monitor.deliveries",
            (f"sum by (outcome) ({grown(f'gpuwarden_deliveries_total{{{_RECEIVER}}}')})", "{{outcome}}"),
            bars=True,
            stacked=True,
            series_colours="outcome",
        ),
        series(
            "monitor.not-sent",
            (
                f"sum by (receiver, outcome) ({grown(_NOT_SENT)})",
                "{{receiver}} {{outcome}}",
            ),
            bars=True,
            stacked=True,
        ),
        series("monitor.outbox", (_OUTBOX, "{{receiver}} {{state}}"), stacked=True, width=8),
        series(
            "monitor.delay",
            (one(f"gpuwarden_delivery_seconds{{{_RECEIVER}}}", "receiver"), "{{receiver}}"),
            look="age",
            width=8,
        ),
        table(
            "monitor.receivers",
            [
                f"sum by (receiver) (gpuwarden_deliveries_total{{{_RECEIVER}}})",
                f'sum by (receiver) (gpuwarden_deliveries_total{{outcome="failed",{_RECEIVER}}})',
                f"1000 * {_FAILING}",
            ],
            [
                Column("receiver", "receiver"),
                Column("A", "tries"),
                Column("B", "failed", "tolerated"),
                Column("C", "failing-since", "since"),
            ],
            width=8,
            height=8,
            sort_by=("failing-since", True),
        ),
    ),
)

DAEMON = Row(
    "monitor.daemon",
    (
        timeline("monitor.sources", one("gpuwarden_source_up", "source"), "{{source}}", "up", width=8),
        timeline("monitor.lease", "max by (instance) (gpuwarden_lease_held)", "{{instance}}", "held", width=8),
        table(
            "monitor.versions",
            [
                "count by (version) (gpuwarden_daemon_info)",
                "count by (version) (gpuwarden_agent_info)",
            ],
            [Column("version", "version"), Column("A", "daemons"), Column("B", "agents")],
            width=8,
            height=8,
        ),
        series(
            "monitor.look",
            ("max by (instance) (gpuwarden_look_duration_seconds)", "{{instance}} <look>"),
            ("max by (instance) (gpuwarden_view_age_seconds)", "{{instance}} <view-age>"),
            look="seconds",
            width=8,
        ),
        series(
            "monitor.daemon-cpu",
            (rate(f"process_cpu_seconds_total{{{_DAEMON}}}"), "{{instance}}"),
            look="cores",
            width=8,
        ),
        series(
            "monitor.daemon-memory",
            (f"process_resident_memory_bytes{{{_DAEMON}}}", "{{instance}}"),
            look="bytes",
            width=8,
        ),
        series(
            "monitor.daemon-files",
            (f"process_open_fds{{{_DAEMON}}} / process_max_fds{{{_DAEMON}}}", "{{instance}}"),
            look="share-disk",
            width=8,
        ),
        stat("monitor.not-explained", one("gpuwarden_pods_not_explained"), look="tolerated", width=4, height=8),
        stat(
            "monitor.uptime",
            f"min(time() - process_start_time_seconds{{{_DAEMON}}})",
            look="seconds",
            width=4,
            height=8,
        ),
        stat("monitor.not-rendered", "sum(gpuwarden_exposition_failures_total)", look="never", width=8, height=8),
    ),
)

AGENTS = Row(
    "monitor.agents",
    (
        table(
            "monitor.silent-nodes",
            [f"{_SILENT} == 1"],
            [Column("node", "node", link="node-gpus"), Column("A", "agent", "silent")],
            width=6,
            height=8,
        ),
        table(
            "monitor.broken",
            [_BROKEN, _HUNG + " == 1", f"1000 * {by_node('gpuwarden_collector_hung_since_seconds', 'collector')}"],
            [
                Column("node", "node", link="node-gpus"),
                Column("collector", "collector"),
                Column("A", "works", "up"),
                Column("B", "hung", "trouble"),
                Column("C", "since", "since"),
            ],
            width=10,
            height=8,
        ),
        bars("monitor.collectors-up", (f"avg by (collector) ({_COLLECTORS})", "{{collector}}"), look="share", width=8),
        series(
            "monitor.agents-up",
            (f"count(up{{{_AGENT}}} == 1) or 0 * count(up{{{_AGENT}}})", "<answering>"),
            (f"count(up{{{_AGENT}}})", "<expected>"),
            dashed=("B",),
            width=8,
        ),
        series(
            "monitor.collector-duration",
            (f"max by (collector) ({by_node('gpuwarden_collector_duration_seconds', 'collector')})", "{{collector}}"),
            look="seconds",
            width=8,
        ),
        series(
            "monitor.collector-failures",
            (top(by_node(rate("gpuwarden_collector_failures_total"), "collector")), "{{node}} {{collector}}"),
            look="rate",
            width=8,
        ),
        series(
            "monitor.scrape",
            (f"max(scrape_duration_seconds{{{_AGENT}}})", "<agent-slowest>"),
            (f"avg(scrape_duration_seconds{{{_AGENT}}})", "<agent-mean>"),
            (f"max(scrape_duration_seconds{{{_DAEMON}}})", "<daemon>"),
            look="seconds",
            width=8,
        ),
        series(
            "monitor.samples",
            (f"max(scrape_samples_scraped{{{_AGENT}}})", "<agent-most>"),
            (f"sum(scrape_samples_scraped{{{_AGENT}}})", "<agents-together>"),
            (f"sum(scrape_samples_scraped{{{_DAEMON}}})", "<daemon>"),
            width=8,
        ),
        series(
            "monitor.agent-cost",
            (
                f"sum by (node) ({by_node(_COLLECTING, 'collector')})",
                "{{node}}",
            ),
            look="share",
            width=8,
            link="node-gpus",
        ),
        series(
            "monitor.agent-cpu",
            (top(by_node(f"gpuwarden_container_cpu_cores{{{_AGENT_POD}}}")), "{{node}}"),
            look="cores",
            link="node-gpus",
        ),
        series(
            "monitor.agent-memory",
            (top(by_node(f"gpuwarden_container_memory_bytes{{{_AGENT_POD}}}")), "{{node}}"),
            look="bytes",
            link="node-gpus",
        ),
    ),
)

DASHBOARD = Dashboard("monitor", (variables.NODE, variables.RECEIVER), (NOW, ALERTS, DELIVERY, DAEMON, AGENTS))
