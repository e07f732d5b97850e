"""Metrics of the daemon itself: version, age of its cluster view, and evaluation time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.core import Metric

from monitor.base.metrics import MetricTable
from monitor.daemon.metrics.label_values import short


@dataclass(frozen=True)
class DaemonStatus:
    """State of the daemon. Unknown is None: before the first evaluation, and `lease_held` without a lease.

    `reload_ok` and `loaded_at` are about the configuration: whether its last reload succeeded, and when it was loaded.
    """

    version: str
    now: float
    view_at: float
    evaluated_at: float | None = None
    evaluation_seconds: float | None = None
    lease_held: bool | None = None
    reload_ok: bool | None = None
    loaded_at: float | None = None


INFO: MetricTable[DaemonStatus] = MetricTable(
    ("version",), (("gpuwarden_daemon_info", "Version of the daemon.", lambda _: 1),)
)
OWN: MetricTable[DaemonStatus] = MetricTable(
    (),
    (
        ("gpuwarden_view_age_seconds", "Age of the cluster view.", lambda o: max(0.0, o.now - o.view_at)),
        ("gpuwarden_last_look_seconds", "Time of the last evaluation (Unix time).", lambda o: o.evaluated_at),
        ("gpuwarden_look_duration_seconds", "Duration of the last evaluation.", lambda o: o.evaluation_seconds),
        ("gpuwarden_lease_held", "Whether this replica is the leader.", lambda o: o.lease_held),
        ("gpuwarden_config_last_reload_successful", "Whether the last reload of the configuration succeeded.",
         lambda o: o.reload_ok),
        ("gpuwarden_config_last_reload_success_timestamp_seconds",
         "Time at which the configuration in use was loaded (Unix time).", lambda o: o.loaded_at),
    ),
)  # fmt: skip
TABLES = (INFO, OWN)


def families(status: DaemonStatus) -> Iterable[Metric]:
    """Metrics of the daemon's state."""
    yield from INFO.families([((short(status.version),), status)])
    yield from OWN.families([((), status)])
