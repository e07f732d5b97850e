"""Whose a pod is: user, job and queue, by the table of platforms. Pure.

The first rule that is about a pod and gives a job names job, role, index and platform, all from that one rule. User
and queue may be another platform's: a PyTorchJob runs in a Kueue queue, with the user in a plain label. So each of the
two comes from the first rule about the pod that gives it, be it before or after the one that names the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from monitor.cluster.owners import OwnerLookup, workload_of
from monitor.cluster.platforms import PlatformRule, Selector, parse_condition, parse_selector
from monitor.facts.cluster import Identity
from monitor.facts.kube import OwnerRef, PodFact

_SERVICE_ACCOUNT = "system:serviceaccount:"
_LONGEST = 253  # as long as a name in Kubernetes can be: an annotation may hold a novel
_Object = msgspec.json.Decoder(dict[str, object])


class Subject(msgspec.Struct, frozen=True):
    """A pod and what has to be looked up about it."""

    pod: PodFact
    workload: OwnerRef
    namespace_owner: str | None


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with its selectors taken apart. Without one of `keys` a pod is none of its business; None: who knows."""

    name: str
    keys: frozenset[str] | None
    when: tuple[tuple[Selector, ...], ...]
    user: tuple[Selector, ...]
    job: tuple[Selector, ...]
    role: tuple[Selector, ...]
    index: tuple[Selector, ...]
    queue: tuple[Selector, ...]
    kind: str | None


def identify(
    pod: PodFact, owners: OwnerLookup, rules: tuple[PlatformRule, ...], namespace_owners: Mapping[str, str]
) -> Identity:
    """Given a pod, a look-up of owners by uid, rules in order and the persons of namespaces, return whose it is."""
    subject = Subject(pod, workload_of(pod, owners), namespace_owners.get(pod.namespace))
    about = [rule for rule in map(_taken_apart, rules) if _is_about(rule, subject)]
    naming = next((rule for rule in about if _first(rule.job, subject)), None)
    user = next((user for rule in about if (user := _first(rule.user, subject))), None)
    queue = next((queue for rule in about if (queue := _first(rule.queue, subject))), None)
    if naming is None:
        return Identity(user=_person(user), queue=queue, workload_kind=subject.workload.kind)
    return Identity(
        user=_person(user),
        job=_first(naming.job, subject),
        role=_first(naming.role, subject),
        index=_first(naming.index, subject),
        queue=queue,
        platform=naming.name,
        workload_kind=naming.kind or subject.workload.kind,
    )


@lru_cache(maxsize=256)
def _taken_apart(rule: PlatformRule) -> _Rule:
    when = tuple(parse_condition(entry) for entry in rule.when)
    keyed = when and all(any(selector.key for selector in entry) for entry in when)
    return _Rule(
        name=rule.name,
        keys=frozenset(selector.key for entry in when for selector in entry) if keyed else None,
        when=when,
        user=_parsed(rule.user),
        job=_parsed(rule.job),
        role=_parsed(rule.role),
        index=_parsed(rule.index),
        queue=_parsed(rule.queue),
        kind=rule.kind,
    )


def _parsed(texts: Iterable[str]) -> tuple[Selector, ...]:
    return tuple(parse_selector(text) for text in texts)


def _is_about(rule: _Rule, subject: Subject) -> bool:
    keys, pod = rule.keys, subject.pod
    if keys and keys.isdisjoint(pod.labels) and keys.isdisjoint(pod.annotations) and keys.isdisjoint(pod.env):
        return False  # most rules are about none of a cluster's pods: that has to cost next to nothing
    return not rule.when or any(_holds(entry, subject) for entry in rule.when)


def _holds(entry: tuple[Selector, ...], subject: Subject) -> bool:
    for selector in entry:
        found = _read(selector, subject)
        if not found or (selector.value and found != selector.value):
            return False
    return True


def _first(selectors: tuple[Selector, ...], subject: Subject) -> str | None:
    for selector in selectors:
        if found := _read(selector, subject):
            return found
    return None


def _read(selector: Selector, subject: Subject) -> str | None:
    """Given a selector, return what it gives. Empty is nothing."""
    pod = subject.pod
    match selector.source:
        case "label":
            found = pod.labels.get(selector.key)
        case "annotation":
            found = _annotation(pod.annotations.get(selector.key), selector.field)
        case "env":
            found = pod.env.get(selector.key)
        case "namespace":
            found = pod.namespace
        case "namespace-owner":
            found = subject.namespace_owner
        case "owner":
            found = subject.workload.name
        case _:
            found = pod.name
    return found.strip()[:_LONGEST] or None if found else None


def _annotation(value: str | None, field: str) -> str | None:
    if value is None or not field:
        return value
    try:
        found = _Object.decode(value).get(field)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):  # anybody may write anything there
        return None
    return found if isinstance(found, str) else None


def _person(user: str | None) -> str | None:
    """Given a user, return it; a service account (Arena's way to name people) by its own name only."""
    return user.rpartition(":")[2] or None if user and user.startswith(_SERVICE_ACCOUNT) else user
