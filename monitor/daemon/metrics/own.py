"""Metrics of the daemon itself: version, age of its cluster view, and evaluation time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.core import Metric

from monitor.base.metrics import MetricTable
from monitor.daemon.metrics.label_values import short


@dataclass(frozen=True)
class DaemonStatus:
    """State of the daemon. Unknown is None: before the first evaluation, and `lease_held` without a lease."""

    version: str
    now: float
    view_at: float
    evaluated_at: float | None = None
    evaluation_seconds: float | None = None
    lease_held: bool | None = None


INFO: MetricTable[DaemonStatus] = MetricTable(("version",), (("gpuwarden_daemon_info", "The daemon.", lambda _: 1),))
OWN: MetricTable[DaemonStatus] = MetricTable(
    (),
    (
        ("gpuwarden_view_age_seconds", "How old the view of the cluster is.", lambda o: max(0.0, o.now - o.view_at)),
        ("gpuwarden_last_look_seconds", "When it was last looked for findings (Unix time).", lambda o: o.evaluated_at),
        ("gpuwarden_look_duration_seconds", "How long that took.", lambda o: o.evaluation_seconds),
        ("gpuwarden_lease_held", "Whether this replica is the one that acts.", lambda o: o.lease_held),
    ),
)
TABLES = (INFO, OWN)


def families(status: DaemonStatus) -> Iterable[Metric]:
    """Metrics of the daemon's state."""
    yield from INFO.families([((short(status.version),), status)])
    yield from OWN.families([((), status)])
