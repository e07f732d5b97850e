"""Alerts and the monitor itself: delivery of notifications, blind spots, cost."""

from __future__ import annotations

from dashboards.generate import styles
from dashboards.generate.board import Board, Row
from dashboards.generate.findings import findings
from dashboards.generate.panels import bars, figure, series, timeline
from dashboards.generate.promql import NODE, by_node, count, grown, one, rate, top, total
from dashboards.generate.tables import Column, table

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
# A collector without anything to read is absent, not broken.
_BROKEN = by_node("gpuwarden_collector_up == 0 unless gpuwarden_collector_absent == 1", "collector")
_COLLECTORS = by_node("gpuwarden_collector_up", "collector")
_COLLECTING = f"{rate('gpuwarden_collector_runs_total')} * gpuwarden_collector_duration_seconds"
_FIRING = one('gpuwarden_alerts{state="firing"}', "severity", "state")

NOW = Row(
    "monitor.now",
    (
        figure("monitor.firing", total(_FIRING, _ALERTS), styles.WARN_ABOVE_ZERO),
        figure("monitor.parked", total(_PARKED, _OUTBOX), styles.CRITICAL_ABOVE_ZERO),
        figure("monitor.failing", count(_FAILING, _OUTBOX), styles.CRITICAL_ABOVE_ZERO),
        figure("monitor.silent", count(f"{_SILENT} == 1", _SILENT), styles.CRITICAL_ABOVE_ZERO),
        figure("monitor.hung", count(f"{_HUNG} == 1", _HUNG), styles.CRITICAL_ABOVE_ZERO),
        figure(
            "monitor.blind",
            count(f"{one('gpuwarden_source_up', 'source')} == 0", "gpuwarden_source_up"),
            style=styles.CRITICAL_ABOVE_ZERO,
        ),
        figure("monitor.look-age", "time() - max(gpuwarden_last_look_seconds)", styles.AGE_SECONDS),
        figure("monitor.view-age", "min(gpuwarden_view_age_seconds)", styles.AGE_SECONDS),
    ),
)

ALERTS = Row(
    "monitor.alerts",
    (
        series("monitor.alerts", (f"sum by (state) ({_ALERTS})", "{{state}}"), stacked=True, palette="alert"),
        series(
            "monitor.firing-line", (f"sum by (severity) ({_FIRING})", "{{severity}}"), stacked=True, palette="severity"
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
            palette="outcome",
        ),
        series(
            "monitor.not-sent",
            (f"sum by (receiver, outcome) ({grown(_NOT_SENT)})", "{{receiver}} {{outcome}}"),
            bars=True,
            stacked=True,
        ),
        series("monitor.outbox", (_OUTBOX, "{{receiver}} {{state}}"), stacked=True, width=8),
        series(
            "monitor.delay",
            (one(f"gpuwarden_delivery_seconds{{{_RECEIVER}}}", "receiver"), "{{receiver}}"),
            style=styles.AGE_SECONDS,
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
                Column("B", "failed", styles.WARN_ABOVE_ZERO),
                Column("C", "failing-since", styles.SINCE),
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
        timeline("monitor.sources", (one("gpuwarden_source_up", "source"), "{{source}}"), styles.UP, width=8),
        timeline("monitor.lease", ("max by (instance) (gpuwarden_lease_held)", "{{instance}}"), styles.LEASE, width=8),
        table(
            "monitor.versions",
            ["count by (version) (gpuwarden_daemon_info)", "count by (version) (gpuwarden_agent_info)"],
            [Column("version", "version"), Column("A", "daemons"), Column("B", "agents")],
            width=8,
            height=8,
        ),
        series(
            "monitor.look",
            ("max by (instance) (gpuwarden_look_duration_seconds)", "{{instance}} <look>"),
            ("max by (instance) (gpuwarden_view_age_seconds)", "{{instance}} <view-age>"),
            style=styles.SECONDS,
            width=8,
        ),
        series(
            "monitor.daemon-cpu",
            (rate(f"process_cpu_seconds_total{{{_DAEMON}}}"), "{{instance}}"),
            style=styles.CORES,
            width=8,
        ),
        series(
            "monitor.daemon-memory",
            (f"process_resident_memory_bytes{{{_DAEMON}}}", "{{instance}}"),
            style=styles.BYTES,
            width=8,
        ),
        series(
            "monitor.daemon-files",
            (f"process_open_fds{{{_DAEMON}}} / process_max_fds{{{_DAEMON}}}", "{{instance}}"),
            style=styles.DISK_RATIO,
            width=8,
        ),
        figure(
            "monitor.not-explained",
            one("gpuwarden_pods_not_explained"),
            style=styles.WARN_ABOVE_ZERO,
            width=4,
            height=8,
        ),
        figure(
            "monitor.uptime",
            f"min(time() - process_start_time_seconds{{{_DAEMON}}})",
            style=styles.SECONDS,
            width=4,
            height=8,
        ),
        figure(
            "monitor.not-rendered",
            "sum(gpuwarden_exposition_failures_total)",
            style=styles.CRITICAL_ABOVE_ZERO,
            width=8,
            height=8,
        ),
    ),
)

AGENTS = Row(
    "monitor.agents",
    (
        table(
            "monitor.silent-nodes",
            [f"{_SILENT} == 1"],
            [Column("node", "node", link="node-gpus"), Column("A", "agent", styles.SILENT)],
            width=6,
            height=8,
        ),
        table(
            "monitor.broken",
            [_BROKEN, _HUNG + " == 1", f"1000 * {by_node('gpuwarden_collector_hung_since_seconds', 'collector')}"],
            [
                Column("node", "node", link="node-gpus"),
                Column("collector", "collector"),
                Column("A", "works", styles.UP),
                Column("B", "hung", styles.PROBLEM),
                Column("C", "since", styles.SINCE),
            ],
            width=10,
            height=8,
        ),
        bars(
            "monitor.collectors-up",
            (f"avg by (collector) ({_COLLECTORS})", "{{collector}}"),
            style=styles.RATIO,
            width=8,
        ),
        series(
            "monitor.agents-up",
            (f"count(up{{{_AGENT}}} == 1) or 0 * count(up{{{_AGENT}}})", "<answering>"),
            (f"count(up{{{_AGENT}}})", "<expected>"),
            dashed="B",
            width=8,
        ),
        series(
            "monitor.collector-duration",
            (f"max by (collector) ({by_node('gpuwarden_collector_duration_seconds', 'collector')})", "{{collector}}"),
            style=styles.SECONDS,
            width=8,
        ),
        series(
            "monitor.collector-failures",
            (top(by_node(rate("gpuwarden_collector_failures_total"), "collector")), "{{node}} {{collector}}"),
            style=styles.PER_SECOND,
            width=8,
        ),
        series(
            "monitor.scrape",
            (f"max(scrape_duration_seconds{{{_AGENT}}})", "<agent-slowest>"),
            (f"avg(scrape_duration_seconds{{{_AGENT}}})", "<agent-mean>"),
            (f"max(scrape_duration_seconds{{{_DAEMON}}})", "<daemon>"),
            style=styles.SECONDS,
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
            (f"sum by (node) ({by_node(_COLLECTING, 'collector')})", "{{node}}"),
            style=styles.RATIO,
            width=8,
            link="node-gpus",
        ),
        series(
            "monitor.agent-cpu",
            (top(by_node(f"gpuwarden_container_cpu_cores{{{_AGENT_POD}}}")), "{{node}}"),
            style=styles.CORES,
            link="node-gpus",
        ),
        series(
            "monitor.agent-memory",
            (top(by_node(f"gpuwarden_container_memory_bytes{{{_AGENT_POD}}}")), "{{node}}"),
            style=styles.BYTES,
            link="node-gpus",
        ),
    ),
)

DASHBOARD = Board("monitor", ("node", "receiver"), (NOW, ALERTS, DELIVERY, DAEMON, AGENTS))
