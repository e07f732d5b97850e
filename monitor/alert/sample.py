"""Test messages: an invented alert shows what a message looks like and whether it arrives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import Formatter

from monitor.alert.model import (
    Batch,
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
    fingerprint_of,
    notification_id,
)
from monitor.alert.sample_values import AGE_SECONDS, BY_KEY, BY_RULE, COMMON, POD_NAME, sample_value
from monitor.detect.base import RuleMetadata
from monitor.detect.meta import META_RULES
from monitor.detect.rules import RULES
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value
from monitor.i18n import CATALOGS

BY_NAME: dict[str, RuleMetadata] = {rule.rule: rule for rule in (*RULES, *META_RULES)}
_OWNER = ("namespace", "pod", "user", "job")
_GPU, _POD, _MOUNT = ("node", "gpu", *_OWNER), ("node", *_OWNER), ("node", "mount")
# Labels of the samples of a rule; by default those of a node.
_LABELS: dict[str, tuple[str, ...]] = {
    "gpu-zombie": _GPU, "gpu-idle": _GPU, "gpu-phantom": _GPU, "gpu-wedged": _GPU, "gpu-ghost": ("node", "gpu"),
    "gpu-orphan": ("node", "gpu"), "gpu-fault": ("node", "gpu"), "gpu-hot": ("node", "gpu"), "gpu-underused": _POD,
    "gpu-fragmented": ("namespace", "job", "user", "queue"), "image-pull": (*_POD, "image"),
    "image-pull-slow": ("node", "image", "service"), "registry-unreachable": ("service",),
    "pod-pending": ("namespace", "job", "user", "queue"), "pod-stuck-creating": _POD,
    "pod-start-failed": (*_POD, "container"), "pod-stuck-terminating": _POD, "pod-silent": (*_POD, "container"),
    "quota-exhausted": ("namespace",), "shm-pressure": (*_POD, "container"), "disk-full": _MOUNT,
    "disk-filling": _MOUNT, "image-cache-large": _MOUNT, "image-oversize": ("image",), "mass-deletion": _MOUNT,
    "mount-lost": _MOUNT, "node-condition": ("node", "condition"), "service-down": ("service",), "monitor-blind": (),
    "receiver-failing": (), "gpu-fault.driver-hung": ("node",), "gpu-fault.cards-missing": ("node",),
    "gpu-idle.partially-idle": ("namespace", "user", "job"), "gpu-idle.idle-inference": ("namespace", "user", "job"),
    "gpu-idle.unused-inference": ("namespace", "user", "job"),     "quota-exhausted.queue": ("queue",),
}  # fmt: skip
# Headlines besides `<rule>.<cause>`, with the cause that has them.
_HEADLINES: dict[str, tuple[tuple[str, str], ...]] = {
    "disk-full": (("other", "inodes"), ("other", "read-only")),
    "node-down": (("network", "unknown"),),
    "mount-lost": (("hung", "everywhere"),),
    "kernel-fault": (("nfs-not-responding", "nfs-server"),),
    "agent-silent": (("agent-down", "none"), ("agent-down", "nowhere")),
    "service-down": (("component", "unknown"),),
    "pod-start-failed": (("gpu-driver", "node"),),
    "quota-exhausted": (("quota-exhausted", "namespace"), ("quota-exhausted", "queue")),
}
# Evidence of a rule or of one of its causes, as real findings have it.
_EVIDENCE: dict[str, tuple[str, ...]] = {
    "gpu-zombie": ("gpu-zombie.process", "card-memory"),
    "gpu-idle": ("card-memory",),
    "gpu-idle.idle-job": ("card-memory", "gpu-cost"),
    "gpu-idle.hung-job": ("gpu-idle.log-stopped", "card-memory"),
    "gpu-idle.waiting-for-data": ("gpu-idle.process-waits", "gpu-idle.node-waits"),
    "gpu-idle.partially-idle": ("gpu-idle.cards", "card-owner"),
    "gpu-idle.idle-inference": ("card-owner",),
    "gpu-idle.unused-inference": ("card-owner",),
    "gpu-orphan": ("gpu-orphan.uid", "card-memory", "gpu-orphan.others"),
    "gpu-wedged": ("card-memory",),
    "gpu-phantom": ("gpu-phantom.refused",),
    "gpu-fault": ("gpu-fault.hit",),
    "gpu-fault.ecc-uncorrectable": ("gpu-fault.ecc", "gpu-fault.hit"),
    "gpu-fault.remap-failed": ("gpu-fault.remap-failed-seen",),
    "gpu-fault.remap-pending": ("gpu-fault.remap-pending-seen",),
    "gpu-fault.recovery-due": ("gpu-fault.recovery",),
    "gpu-fault.xid-off-bus": ("gpu-fault.line", "gpu-fault.hit"),
    "gpu-hot": ("gpu-hot.temperature", "gpu-hot.power", "gpu-hot.clock"),
    "gpu-underused": ("gpu-underused.memory", "card-owner"),
    "gpu-underused.cpu-limit": ("gpu-underused.cpu", "card-owner"),
    "gpu-underused.shm-small": ("gpu-underused.shm", "card-owner"),
    "gpu-underused.data-loading": ("gpu-underused.bursts", "card-owner"),
    "gpu-fragmented": ("gpu-fragmented.moves",),
    "capacity-mismatch": ("capacity-mismatch.counts",),
    "image-pull": ("pull_attempts",),
    "image-pull-slow": ("image-pull-slow.done", "image-pull-slow.rate"),
    "registry-unreachable": (
        "registry-unreachable.probes",
        "registry-unreachable.others",
        "registry-unreachable.pulls",
    ),
    "registry-unreachable.registry-down": ("registry-unreachable.probes", "registry-unreachable.pulls"),
    "pod-pending": ("scheduler_says",),
    "pod-pending.queue-closed": (),
    "pod-start-failed.node": ("pod-start-failed.pods",),
    "quota-exhausted": ("quota-exhausted.waiting", "quota-exhausted.holders"),
    "shm-pressure": ("shm-pressure.used", "shm-pressure.processes"),
    "disk-full": ("disk-space", "disk-part.images", "disk-image.unused"),
    "disk-full.container-layers": ("disk-space", "disk-part.container-layers", "disk-owner"),
    "disk-full.logs": ("disk-space", "disk-part.logs"),
    "disk-full.volumes": ("disk-space", "disk-part.volumes"),
    "disk-full.datasets": ("disk-space", "disk-part.datasets"),
    "disk-full.other": ("disk-space", "disk-part.other"),
    "disk-full.inodes": ("disk-inodes",),
    "disk-full.read-only": (),
    "disk-filling": ("disk-filling.history", "disk-space"),
    "disk-io-saturated": ("disk-io-saturated.queue", "disk-io-saturated.mounts", "disk-io-saturated.waiting"),
    "image-cache-large": ("disk-image.unused", "disk-image.used"),
    "image-oversize": ("image-oversize.used",),
    "mass-deletion": ("mass-deletion.now",),
    "mount-lost": ("mount-lost.since", "mount-lost.pods"),
    "mount-lost.everywhere": ("mount-lost.since",),
    "node-down": ("node-down.agent-silent", "node-down.pods"),
    "node-down.disk-pressure": ("node-down.agent-answers", "node-down.pods"),
    "node-down.network": ("node-down.agent-answers", "node-down.pods"),
    "node-down.unknown": ("node-down.agent-answers", "node-down.pods"),
    "node-down.flapping": ("node-down.agent-answers", "node-down.pods"),
    "node-down.memory-pressure": ("node-down.agent-answers", "node-down.pods"),
    "node-condition": ("node-condition.says",),
    "node-condition.isolated": ("node-condition.taint",),
    "kernel-fault": ("kernel-fault.line",),
    "agent-silent": ("agent-silent.error",),
    "agent-silent.nowhere": (),
    "agent-silent.none": (),
    "agent-silent.collector-hung": (),
    "agent-silent.collector-failing": ("agent-silent.collector-says",),
    "service-down": ("service-down.says",),
}
# Advice that fits the figures of a sample, where a rule has several.
_ADVICE = {
    "pod-pending.not-enough-gpus": "release_idle", "pod-pending.overtaken": "wait_or_ask_less",
    "gpu-fragmented": "gpu-fragmented.moves.advice",
}  # fmt: skip
_CRITICAL = frozenset(
    {"node-down", "gpu-fault", "mass-deletion", "mount-lost", "service-down", "monitor-blind", "receiver-failing"}
)


@dataclass(frozen=True)
class Sample:
    """An invented finding: its rule, cause, and the keys of its texts."""

    rule: str
    cause: str
    headline: str
    evidence: tuple[str, ...]
    advice: tuple[str, ...]

    def finding(self, now: float, gpu: str | None = None) -> Finding:
        """The finding, on another GPU if one is given."""
        names = _LABELS.get(self.headline) or _LABELS.get(self.rule, ("node",))
        own = {"pod": POD_NAME} | BY_RULE.get(self.rule, {}) | BY_KEY.get(self.headline, {})
        labels = {name: str(own.get(name, COMMON.get(name))) for name in names}
        if gpu is not None and "gpu" in labels:
            labels["gpu"] = gpu
        headline = self._filled(self.headline, labels)
        return Finding(
            rule=self.rule,
            severity=Severity.CRITICAL if self.rule in _CRITICAL else Severity.WARNING,
            cause=self.cause,
            labels=labels,
            headline=headline,
            evidence=tuple(self._filled(key, labels) for key in self.evidence),
            advice=tuple(self._filled(key, labels) for key in self.advice),
            since=now - float(headline.values.get("seconds", AGE_SECONDS)),
        )

    def _filled(self, key: str, labels: dict[str, str]) -> Text:
        """Text with a value for each of its fields."""
        template, values = CATALOGS["en"][key], dict[str, Value]()
        for _, name, _, _ in Formatter().parse(template):
            if name is not None:
                values[name] = sample_value(self.rule, self.headline, key, template, name)
        if "gpu" in values and "gpu" in labels:
            values["gpu"] = labels["gpu"]
        return Text(key=key, values=values)


def samples(rule: str) -> tuple[Sample, ...]:
    """A sample for every headline of a rule. Raise ValueError for an unknown rule."""
    metadata = BY_NAME.get(rule)
    if metadata is None:
        raise ValueError(f"there is no rule {rule!r}; an example is disk-full")
    return tuple(_samples(metadata))


def _samples(rule: RuleMetadata) -> Iterator[Sample]:
    catalog = CATALOGS["en"]
    named = [(cause, f"{rule.rule}.{cause}") for cause in rule.causes]
    if not named and rule.rule in catalog:
        named = [(rule.rule, rule.rule)]
    named += [(cause, f"{rule.rule}.{part}") for cause, part in _HEADLINES.get(rule.rule, ())]
    for cause, headline in named:
        advice = _advice(rule, cause, headline)
        yield Sample(rule.rule, cause, headline, _evidence(rule, cause, headline, advice), advice)


def _advice(rule: RuleMetadata, cause: str, headline: str) -> tuple[str, ...]:
    """Advice that the rule declares for the cause, else that of the headline, the cause or the rule."""
    if headline in _ADVICE:
        return (_ADVICE[headline],)
    if declared := rule.advice.get(cause):
        return declared[:1]
    candidates = (f"{headline}.advice", f"{rule.rule}.{cause}.advice", f"{rule.rule}.advice")
    return next(((key,) for key in candidates if key in CATALOGS["en"]), ())


def _evidence(rule: RuleMetadata, cause: str, headline: str, advice: tuple[str, ...]) -> tuple[str, ...]:
    """Evidence in the table; else, where an explanation is the evidence, the answer to which the advice belongs."""
    for key in (headline, f"{rule.rule}.{cause}", rule.rule):
        if key in _EVIDENCE:
            return _EVIDENCE[key]
    answers = (key.removesuffix("_advice") for key in advice if key.endswith("_advice"))
    return tuple(key for key in answers if key in CATALOGS["en"])


def sample_batch(receiver: str, sample: Sample, now: float) -> Batch:
    """Message about a sample, marked as a test."""
    return batch_of((sample.finding(now),), receiver, now, marked=True)


def batch_of(
    findings: tuple[Finding, ...], receiver: str, now: float, *, marked: bool, resolved: bool = False
) -> Batch:
    """Message about new or resolved sample findings of one rule."""
    rule = findings[0].rule
    subjects = tuple(
        NotificationSubject(
            fingerprint=fingerprint_of(finding),
            finding=finding,
            phase=Phase.RESOLVED if resolved else Phase.FIRING,
            since=now - AGE_SECONDS if finding.since is None else finding.since,
            resolved_at=now if resolved else None,
        )
        for finding in findings
    )
    sample_id = notification_id(f"sample {receiver} {rule} {now}")
    users = sorted({finding.labels["user"] for finding in findings if "user" in finding.labels})
    notification = Notification(
        id=sample_id,
        receiver=receiver,
        group=f"sample|{rule}",
        reason=NotificationReason.RESOLVED if resolved else NotificationReason.NEW,
        severity=findings[0].severity,
        at=now,
        subjects=subjects,
        users=tuple(users),
        sample=marked,
    )
    return Batch(id=sample_id, receiver=receiver, notifications=(notification,), at=now)
