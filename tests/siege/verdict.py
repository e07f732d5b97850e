"""Evaluates a siege: observations in, figures with bounds out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.report import Goal
from tests.siege.health import HealthCheck, failures_in_a_row
from tests.siege.limits import DESCRIPTORS, MIB
from tests.siege.run import AGENT_BYTES, DAEMON_BYTES, SiegeCourse
from tests.soak.verdict import percentile

CANARY_SECONDS = 10.0
HEALTH_SECONDS = 2.0
KUBELET_FAILURES = 3  # failureThreshold of a probe
LIMIT_BYTES = {"agent": AGENT_BYTES, "daemon": DAEMON_BYTES}
LOG_MIB = 10.0  # for each process, in five minutes
MESSAGE_MIB = 4.0  # a stored notification has at most one, which some receivers escape
STATE_MIB = 512.0  # a third of what the state directory may have at all


def judge(course: SiegeCourse) -> tuple[Goal, ...]:
    """All figures of a siege, with bounds where defined."""
    return (*_processes(course), *_canaries(course), *_health(course), *_output(course), *_attacks(course))


def _processes(course: SiegeCourse) -> tuple[Goal, ...]:
    goals = [Goal("siege_ended_early", len(course.ended), 0, "processes that ended, or exceeded their memory")]
    for name, limit in LIMIT_BYTES.items():
        peak, code = course.peaks.get(name, math.inf), course.exit_codes.get(name)
        goals += [
            Goal(f"siege_{name}_rss_mib", peak / MIB, limit / MIB, f"memory (RSS) of the {name}, MiB, maximum"),
            Goal(f"siege_{name}_descriptors", course.descriptors.get(name, 0), DESCRIPTORS - 1,
                 f"descriptors of the {name}, maximum"),
            Goal(f"siege_{name}_exit_code", -1 if code is None else code, 0,
                 f"of the {name} after SIGTERM, during the attacks", 0),
        ]  # fmt: skip
    return tuple(goals)


def _canaries(course: SiegeCourse) -> tuple[Goal, ...]:
    goals = [
        Goal("siege_canaries", len(course.canaries), None, "services and pods that failed", 1),
        Goal("siege_canaries_unreported", sum(each.seconds is None for each in course.canaries), 0,
             "of them not reported within 12 s"),
    ]  # fmt: skip
    for kind in ("service", "pod"):
        seconds = [each.seconds for each in course.canaries if each.kind == kind and each.seconds is not None]
        goals += [
            Goal(f"siege_{kind}_p95_s", percentile(seconds, 0.95), None,
                 f"seconds from the failure of a {kind} to the message, 95th percentile"),
            Goal(f"siege_{kind}_worst_s", max(seconds, default=math.nan), CANARY_SECONDS, "the longest"),
        ]  # fmt: skip
    return tuple(goals)


def _health(course: SiegeCourse) -> tuple[Goal, ...]:
    goals: list[Goal] = []
    for name, checks in course.checks.items():
        seconds, shared = [check.seconds for check in checks], course.shared_checks.get(name, [])
        goals += [
            Goal(f"siege_{name}_health_checks", len(checks), None, f"health checks of the {name}, one each second", 1),
            Goal(f"siege_{name}_health_failed", _failed(checks), 0, "of them without status 200"),
            Goal(f"siege_{name}_health_p95_s", percentile(seconds, 0.95), None, "seconds, 95th percentile"),
            Goal(f"siege_{name}_health_worst_s", max(seconds, default=math.nan), HEALTH_SECONDS, "the longest"),
            Goal(f"siege_{name}_shared_health_failed", _failed(shared), None,
                 f"of {len(shared)} more health checks, from the address of half of the attackers"),
            Goal(f"siege_{name}_shared_health_row", failures_in_a_row(shared, HEALTH_SECONDS), KUBELET_FAILURES - 1,
                 f"of these, failures in a row; a kubelet restarts a container after {KUBELET_FAILURES}"),
        ]  # fmt: skip
    return tuple(goals)


def _failed(checks: Sequence[HealthCheck]) -> int:
    return sum(bool(check.problem) for check in checks)


def _output(course: SiegeCourse) -> tuple[Goal, ...]:
    logs = [
        Goal(f"siege_{name}_log_mib", size / MIB, LOG_MIB, f"log of the {name}, MiB")
        for name, size in course.log_bytes.items()
    ]
    return (
        *logs,
        Goal("siege_state_mib", course.state_bytes / MIB, STATE_MIB, "state directory, MiB"),
        Goal("siege_messages", course.messages, None, "messages to the webhook", 1),
        Goal("siege_message_mib", course.largest_message_bytes / MIB, MESSAGE_MIB, "the largest body, MiB"),
    )


def _attacks(course: SiegeCourse) -> tuple[Goal, ...]:
    return (
        Goal("siege_attacks", min(course.attacks.values(), default=0), None, "times of the rarest attack", 1),
        Goal("siege_silences", course.silences, None, "accepted silences with hostile or worst-case patterns", 1),
        Goal("siege_unexpected", len(course.unexpected), 0, "other silences that were not refused, or not accepted"),
        Goal("siege_cpu_wait", course.crowding, None, "slowdown of the daemon by other programs on the cores"),
    )


def missed(goals: Sequence[Goal]) -> list[str]:
    """Keys of the goals that were not met."""
    return [goal.key for goal in goals if not goal.met]
