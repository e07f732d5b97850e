"""Links for owners in notifications of alerts about GPUs that are held without being used.

A link is left out if it would permit nothing that has an effect: without an enforced policy about such GPUs there is
nothing to keep one from, and only a message to the owner alone permits to release it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace as changed

from monitor.alert.model import AnswerLink, Notification, NotificationSubject, Phase
from monitor.cleanup.announcer import LinkMaker
from monitor.cleanup.inputs import Planner
from monitor.cleanup.keep_store import KeepStore
from monitor.cleanup.model import Item, Mode
from monitor.cleanup.notices import NoticeRouting
from monitor.cleanup.on_demand import RELEASE, release_policy
from monitor.cleanup.plan.keeps import Keep, Keeps
from monitor.cleanup.policy import CleanupPolicy, GpuPolicy
from monitor.facts.text import Text, Value

log = logging.getLogger(__name__)
RULES = {"gpu-idle": "cleanup.why.gpu-idle", "gpu-zombie": "cleanup.why.gpu-zombie"}  # with the reason of their items
MAX_LINKS = 3


@dataclass(frozen=True)
class HeldGpus:
    """What may be released now, what owners keep, and by reason the enforced policy about it."""

    items: tuple[Item, ...]
    keeps: Keeps
    policies: Mapping[str, str]
    private: Mapping[str, frozenset[str]]  # users that a receiver reaches alone, by receiver
    now: float

    def of(self, subject: NotificationSubject) -> tuple[Item, ...]:
        """Items that an alert is about."""
        labels, why = subject.finding.labels, RULES.get(subject.finding.rule)
        if subject.phase is not Phase.FIRING or why is None or "user" not in labels:
            return ()
        name = f"{labels.get('namespace')}/{labels.get('pod')}"
        return tuple(
            item
            for item in self.items
            if (item.why.key, item.name, item.node, item.owner) == (why, name, labels.get("node"), labels["user"])
        )

    def keep_of(self, item: Item) -> Keep | None:
        keep = self.keeps.get(item.id)
        return keep if keep is not None and self.now < keep.until else None


def with_owner_links(notification: Notification, held: HeldGpus, link: LinkMaker) -> Notification:
    """The notification with who keeps what it is about, and links for the owners of the first few objects."""
    items = {item.id: item for subject in notification.subjects for item in held.of(subject)}
    if not items:
        return notification
    answers = tuple(islice(_links(notification, items.values(), held, link), MAX_LINKS))
    subjects = tuple(_with_keeper(subject, held) for subject in notification.subjects)
    return changed(notification, subjects=subjects, answers=answers)


def _links(notification: Notification, items: Iterable[Item], held: HeldGpus, link: LinkMaker) -> Iterable[AnswerLink]:
    alone = held.private.get(notification.receiver, frozenset())
    for item in items:
        private = item.owner in alone and notification.users == (item.owner,)
        policy = held.policies.get(item.why.key)
        if item.owner is None or (policy is None and not private):
            continue
        try:
            path = link(policy or RELEASE, item.id, item.owner, private)
        except ValueError:  # a name that is too long for a link
            continue
        yield AnswerLink(name=item.name, path=path, may_release=private)


def _with_keeper(subject: NotificationSubject, held: HeldGpus) -> NotificationSubject:
    """The alert with who keeps its object, as the first evidence."""
    keep = next((keep for item in held.of(subject) if (keep := held.keep_of(item)) is not None), None)
    if keep is None:
        return subject
    key = "cleanup.kept-by-because" if keep.reason else "cleanup.kept-by"
    values: dict[str, Value] = {"name": keep.owner, "seconds": keep.until - held.now, "reason": keep.reason}
    evidence = (Text(key=key, values=values), *subject.finding.evidence)
    return changed(subject, finding=changed(subject.finding, evidence=evidence))


class AlertLinks:
    """Adds the links. Thread-safe."""

    def __init__(
        self,
        planner: Planner,
        policies: Sequence[CleanupPolicy],
        keeps: KeepStore,
        link: LinkMaker,
        routing: Callable[[], NoticeRouting],
        now: Callable[[], float],
    ) -> None:
        self._planner = planner
        self._release = release_policy(tuple(policies))
        self._policies = _policies_by_reason(policies)
        self._keeps = keeps
        self._link = link
        self._routing = routing
        self._now = now

    def annotate(self, notifications: tuple[Notification, ...]) -> tuple[Notification, ...]:
        """The notifications with links; unchanged if none can be made: they must be sent in any case."""
        subjects = (subject for notification in notifications for subject in notification.subjects)
        if not any(subject.finding.rule in RULES for subject in subjects):
            return notifications
        try:
            items = self._planner.polled_gpu_plan(self._release).items
            held = HeldGpus(items, self._keeps.all(), self._policies, self._routing().private, self._now())
            return tuple(with_owner_links(notification, held, self._link) for notification in notifications)
        except Exception:  # whatever is wrong with cleanup must not stop an alert
            log.exception("alerts are sent without links for owners")
            return notifications


def _policies_by_reason(policies: Iterable[CleanupPolicy]) -> dict[str, str]:
    names: dict[str, str] = {}
    for policy in policies:
        if isinstance(policy, GpuPolicy) and policy.mode is Mode.ENFORCE:
            names |= {RULES["gpu-idle"]: policy.name} if policy.idle_after is not None else {}
            names |= {RULES["gpu-zombie"]: policy.name} if policy.zombie_after is not None else {}
    return names
