"""The daemon itself: its version, how fresh what it shows is, and what looking costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.core import Metric

from monitor.base.metrics import MetricTable
from monitor.daemon.metrics.label_values import short


@dataclass(frozen=True)
class DaemonStatus:
    """What the daemon knows of itself. `looked_at` is when it last looked for findings; None: not yet.

    `lease_held` is whether this replica is the one that acts; None where there is no lease.
    """

    version: str
    now: float
    view_at: float
    looked_at: float | None = None
    evaluation_seconds: float | None = None
    lease_held: bool | None = None


INFO: MetricTable[DaemonStatus] = MetricTable(("version",), (("gpuwarden_daemon_info", "The daemon.", lambda _: 1),))
OWN: MetricTable[DaemonStatus] = MetricTable(
    (),
    (
        ("gpuwarden_view_age_seconds", "How old the view of the cluster is.", lambda o: max(0.0, o.now - o.view_at)),
        ("gpuwarden_last_look_seconds", "When it was last looked for findings (Unix time).", lambda o: o.looked_at),
        ("gpuwarden_look_duration_seconds", "How long that took.", lambda o: o.evaluation_seconds),
        ("gpuwarden_lease_held", "Whether this replica is the one that acts.", lambda o: o.lease_held),
    ),
)
TABLES = (INFO, OWN)


def families(own: DaemonStatus) -> Iterable[Metric]:
    """Yield what the daemon knows of itself."""
    yield from INFO.families([((short(own.version),), own)])
    yield from OWN.families([((), own)])
