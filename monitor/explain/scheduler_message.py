"""The scheduler's messages about a pending pod: its condition, and events of schedulers and queue controllers."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.explain.error_chain.causes import SchedulingCause
from monitor.explain.error_chain.scheduling import SchedulingPart, main_reason, parse_scheduling
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import ConditionFact, PodFact
from monitor.facts.queues import PodGroupFact

# kube-scheduler and Volcano, the autoscaler, HAMi, the resource claim controller, YuniKorn.
SCHEDULING_EVENT_REASONS = (
    "FailedScheduling",
    "Unschedulable",
    "NotTriggerScaleUp",
    "FilteringFailed",
    "FailedResourceClaimCreation",
    "Scheduling",
    "GangScheduling",
    "Informational",
    "PodUnschedulable",
)
MAX_EVENTS = 4
# What only repeats that the pod waits; another message may say why.
_UNSPECIFIC = (SchedulingCause.OTHER, SchedulingCause.QUEUED, SchedulingCause.GANG_WAITING, SchedulingCause.VGPU_UNFIT)


@dataclass(frozen=True)
class SchedulerVerdict:
    """The scheduler's latest message. `since` is when it first rejected the pod, `reason` what to act on."""

    message: str
    since: float | None
    parts: tuple[SchedulingPart, ...]
    reason: SchedulingPart | None = None

    def about(self, cause: SchedulingCause) -> SchedulingPart | None:
        """The first part with this cause, or None."""
        return next((part for part in self.parts if part.cause is cause), None)


def scheduler_verdict(pod: PodFact, facts: ClusterFacts) -> SchedulerVerdict | None:
    """The scheduler's verdict on the pod, or None if there is none yet."""
    condition = unschedulable_condition(pod)
    events = [event for event in facts.events_of(pod) if event.reason in SCHEDULING_EVENT_REASONS and event.message]
    messages = [condition.message] if condition is not None and condition.message else []
    messages += [event.message or "" for event in reversed(events[-MAX_EVENTS:])]
    if (group := facts.group_of(pod)) is not None:
        messages += [
            message
            for message in group_messages(group, facts)[: -MAX_EVENTS - 1 : -1]
            if not _says_incomplete(message) or not _is_complete(group, facts)
        ]
    if not messages:
        return None
    since = condition.since if condition else events[-1].first_at if events else None
    message, reason = _most_specific(messages)
    return SchedulerVerdict(message, since, parse_scheduling(message), reason)


def group_messages(group: PodGroupFact, facts: ClusterFacts) -> list[str]:
    """What Volcano says of a pod group, oldest first."""
    messages = [
        condition.message for condition in group.conditions if condition.type == "Unschedulable" and condition.status
    ]
    messages += [event.message for event in facts.events_named("PodGroup", group.namespace, group.name)]
    return [message for message in messages if message]


def _says_incomplete(message: str) -> bool:
    reason = main_reason(parse_scheduling(message))
    return reason is not None and reason.cause is SchedulingCause.GANG_INCOMPLETE


def _is_complete(group: PodGroupFact, facts: ClusterFacts) -> bool:
    """Whether all pods that the group needs exist: its first events are from before its controller created them."""
    present = sum(pod.phase != "Failed" for pod in facts.members(group))
    return group.min_member is not None and present >= group.min_member


def _most_specific(messages: list[str]) -> tuple[str, SchedulingPart | None]:
    """The newest message that says why, with its reason; else the newest one."""
    reasons = [(message, main_reason(parse_scheduling(message))) for message in messages]
    for message, reason in reasons:
        if reason is not None and reason.cause not in _UNSPECIFIC:
            return message, reason
    return next((each for each in reasons if each[1] is not None and each[1].cause in _UNSPECIFIC[1:]), reasons[0])


def unschedulable_condition(pod: PodFact) -> ConditionFact | None:
    """The condition in which a scheduler reports that it cannot place the pod, or None."""
    return next(
        (condition for condition in pod.conditions if condition.type == "PodScheduled" and condition.status is False),
        None,
    )
