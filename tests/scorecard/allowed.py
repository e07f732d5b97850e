"""How soon an alert has to be reported, and how long it may outlast its outage: derived from the latency of its rule.

An evaluation is up to LOOK away, agents are polled every POLL, and a message leaves with the next tick. To that the
latency of a rule adds a limit, the interval of a collector, and a delay.
"""

from __future__ import annotations

from monitor.alert.lifecycle import AlertTiming
from monitor.cluster.agents.poller import MAX_SKIPPED_INTERVALS
from monitor.cluster.gpu_state import StateLimits
from monitor.detect.base import Delay, Latency, RuleMetadata
from monitor.detect.lib import growth
from monitor.detect.meta import META_RULES
from monitor.detect.rules import RULES
from monitor.sim.cluster import GRACE_SECONDS
from tests.scorecard.product import LOOK, POLICY, POLL, PROBE, READ

TICK = 1.0  # group_wait, and the clock of the dispatcher
ALWAYS = LOOK + POLL + TICK
KEEP = AlertTiming().keep  # an alert resolves when it was not found for this long
TOLD_WITHIN = POLICY.routes[0].group_interval + LOOK  # after it fires: a group that was just notified waits
BY_NAME: dict[str, RuleMetadata] = {rule.rule: rule for rule in (*RULES, *META_RULES)}
DELAY_SECONDS: dict[Delay | None, float] = {
    None: 0.0,
    Delay.FIRST_SEEN: LOOK,
    Delay.POD_GONE: StateLimits().settle + POLL + LOOK,
    Delay.GRACE_PERIOD: GRACE_SECONDS,
    Delay.FAILED_RUN: 60.0,
    Delay.SERVICE_PROBE: PROBE,
    Delay.AGENT_BACKOFF: MAX_SKIPPED_INTERVALS * POLL,
}
# Which of its two trends reports a disk depends on how fast it fills, not on the cause: within four hours or a day.
# Steady growth takes an hour of fine steps or twelve coarse steps to see, a fall one fine step.
FILLING = {
    True: Latency(growth.FINE_SPAN_SECONDS + growth.FINE_STEP_SECONDS, resolve_limit=growth.FINE_STEP_SECONDS),
    False: Latency((growth._MIN_SLOW_STEPS + 1) * growth.COARSE_STEP_SECONDS, resolve_limit=growth.FINE_STEP_SECONDS),
}


def latency_of(rule: str, cause: str, *, urgent: bool = True) -> Latency:
    return FILLING[urgent] if rule == "disk-filling" else BY_NAME[rule].latency_of(cause)


def limit_seconds(rule: str, limit: str | float) -> float:
    """Default of a limit; seconds are returned as they are."""
    return float(getattr(BY_NAME[rule].limits(), limit)) if isinstance(limit, str) else limit


def collector_seconds(latency: Latency) -> float:
    """Age that the facts may have."""
    return READ[latency.collector] if latency.collector is not None else 0.0


def allowed(rule: str, cause: str, *, urgent: bool = True) -> float:
    """Seconds from the beginning of an outage to its alert."""
    latency = latency_of(rule, cause, urgent=urgent)
    return limit_seconds(rule, latency.limit) + DELAY_SECONDS[latency.delay] + collector_seconds(latency) + ALWAYS


def over_within(rule: str, cause: str, *, urgent: bool = True) -> float:
    """Seconds that an alert may outlast its outage."""
    latency = latency_of(rule, cause, urgent=urgent)
    seconds = limit_seconds(rule, latency.resolve_limit) + DELAY_SECONDS[latency.resolve_delay]
    return seconds + collector_seconds(latency) + KEEP + ALWAYS + LOOK
