"""By when an alert has to be told, and by when it has to be over: the rules' own limits, and what comes on top, once.

Whatever happens, the next look is up to LOOK away, an agent is asked every POLL, a message leaves with the clock's next
tick. To that each row adds the rule's own limit, and an allowance where the rule cannot know at once, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from monitor.alert.lifecycle import AlertTiming
from monitor.cluster.agents.poller import SLOWEST
from monitor.cluster.gpu_state import StateLimits
from monitor.detect.lib import growth
from monitor.detect.rules import RULES, disk_io_saturated
from monitor.sim.cluster import GRACE
from tests.scorecard.product import LOOK, POLICY, POLL, PROBE, READ

TICK = 1.0  # group_wait, and the clock of the alert desk
ALWAYS = LOOK + POLL + TICK
KEEP = AlertTiming().keep  # an alert is over when it was not found for so long
TOLD_WITHIN = POLICY.routes[0].group_interval + LOOK  # after it fires: a group that has just been told of waits
_LIMITS = {rule.rule: rule.limits() for rule in RULES}
_STATE = StateLimits()


@dataclass(frozen=True)
class Time:
    """A row: the limit of the rule that has to pass first, what is allowed on top, and how long it may outlast.

    `reads` is the part of a snapshot that it is seen in: that is read at its own interval.
    """

    limit: str | None = None
    more: float = 0.0
    why: str = ""
    over: float | str = 0.0
    over_why: str = ""
    reads: str | None = None

    @property
    def read_within(self) -> float:
        """Return how old what is seen may be."""
        return READ[self.reads] if self.reads is not None else 0.0


_STILL = "a node's word counts when it is heard again 20 s after the pod is gone"
_GRACE = "the grace time of the deletion"
_SPOKEN = "by its limits it is spoken of for so long"
_PROBE = "a service is probed every 15 s"
_ASKED = "an agent that was silent is asked every 80 s"
_SEEN = "it counts from the look that saw it first"
TABLE: dict[tuple[str, str], Time] = {
    ("gpu-zombie", "pod-finished"): Time("finished_after", LOOK, _SEEN),
    ("gpu-zombie", "pod-deleted"): Time("finished_after", _STATE.settle + POLL + LOOK, _STILL),
    ("gpu-zombie", "pod-terminating"): Time("terminating_after", GRACE, _GRACE, reads="pod_devices"),
    ("gpu-idle", "*"): Time("warning_after", LOOK, _SEEN),
    ("gpu-orphan", "*"): Time("after", LOOK, _SEEN),
    ("gpu-ghost", "*"): Time("after", LOOK, _SEEN),
    ("gpu-wedged", "*"): Time("after"),
    ("gpu-phantom", "stale-allocation"): Time("after", _STATE.settle + POLL + LOOK, _STILL, reads="pod_devices"),
    ("gpu-phantom", "*"): Time("after", LOOK, _SEEN, reads="pod_devices"),
    ("gpu-fault", "driver-hung"): Time("hung_after"),
    ("gpu-fault", "cards-missing"): Time("missing_after", LOOK, _SEEN),
    ("gpu-fault", "xid-application"): Time(over="xid_application_hold", over_why=_SPOKEN),
    **{
        ("gpu-fault", f"xid-{kind}"): Time(over="xid_hold", over_why=_SPOKEN)
        for kind in ("off-bus", "memory", "driver", "nvlink", "memory-contained", "unknown")
    },
    ("gpu-fault", "*"): Time(),
    ("gpu-hot", "*"): Time("after", LOOK, _SEEN),
    ("gpu-underused", "*"): Time("window", LOOK, _SEEN, reads="pod_devices"),
    ("gpu-fragmented", "*"): Time("after"),
    ("capacity-mismatch", "*"): Time("after", LOOK, _SEEN),
    ("image-pull", "*"): Time(),
    ("image-pull-slow", "*"): Time("pulling"),
    ("registry-unreachable", "*"): Time(reads="probes"),
    ("pod-pending", "*"): Time("waiting"),
    ("pod-stuck-creating", "*"): Time("creating"),
    ("pod-start-failed", "*"): Time(),
    ("pod-stuck-terminating", "*"): Time("overdue", GRACE, _GRACE),
    ("pod-silent", "stopped-logging"): Time("stopped", reads="logs"),
    ("pod-silent", "*"): Time("empty", reads="logs"),
    ("quota-exhausted", "*"): Time(),
    ("shm-pressure", "*"): Time(reads="shm"),
    ("disk-full", "*"): Time(reads="disk"),
    ("disk-io-saturated", "*"): Time(
        "after", LOOK, _SEEN, disk_io_saturated._RESPITE, "a pause of a minute is none", reads="disk_io"
    ),
    ("image-cache-large", "build-cache"): Time(reads="runtime_usage"),
    ("image-cache-large", "*"): Time(reads="images"),
    ("image-oversize", "*"): Time(reads="images"),
    ("mass-deletion", "*"): Time(reads="disk"),
    ("mount-lost", "*"): Time("after", reads="mounts"),
    ("node-down", "flapping"): Time(over="window", over_why="changes count for half an hour"),
    ("node-down", "*"): Time(),
    ("agent-silent", "agent-down"): Time("silent_after", over=SLOWEST * POLL, over_why=_ASKED),
    ("agent-silent", "collector-failing"): Time("collector_after", 60.0, "from the first run that failed"),
    ("agent-silent", "*"): Time("collector_after"),
    ("actions-refused", "*"): Time(over="quiet", over_why="for so long nothing may be refused"),
    ("service-down", "*"): Time("after", PROBE, _PROBE, over=PROBE, over_why=_PROBE),
    ("monitor-blind", "*"): Time(None, 60.0 + LOOK, "out of sight for a minute", SLOWEST * POLL, _ASKED),
}  # fmt: skip
_HOUR = Time(
    None, growth.FINE_SPAN + growth.FINE_STEP, "steady growth is seen over an hour, in steps of five minutes",
    growth.FINE_STEP, "a fall is seen at the next step",
)  # fmt: skip
_HOURS = Time(
    None, growth._FEWEST_LONG_STEPS * growth.COARSE_STEP + growth.COARSE_STEP,
    "what is not urgent is judged by twelve half hours", growth.FINE_STEP, "a fall is seen at the next step",
)  # fmt: skip
# Which of its two trends tells of a disk depends on how fast it fills, not on its cause: within four hours or a day.
FILLING = {True: _HOUR, False: _HOURS}


def time_of(rule: str, cause: str, *, urgent: bool = True) -> Time:
    """Return the row of an alert."""
    if rule == "disk-filling":
        return FILLING[urgent]
    return TABLE.get((rule, cause)) or TABLE[rule, "*"]


def limit_of(rule: str, name: str | float | None) -> float:
    """Return what a rule's limit is by default, in seconds."""
    if name is None:
        return 0.0
    return float(getattr(_LIMITS[rule], name)) if isinstance(name, str) else name


def allowed(rule: str, cause: str, *, urgent: bool = True) -> float:
    """Return how long after it began an alert may fire."""
    row = time_of(rule, cause, urgent=urgent)
    return limit_of(rule, row.limit) + row.more + row.read_within + ALWAYS


def over_within(rule: str, cause: str, *, urgent: bool = True) -> float:
    """Return how long after its outage an alert may last."""
    row = time_of(rule, cause, urgent=urgent)
    return limit_of(rule, row.over) + row.read_within + KEEP + ALWAYS + LOOK
