"""Whose a pod is: user, job and queue, by the table of platforms. Pure.

The first rule that is about a pod and gives a job names job, role, index and platform, all from that one rule. User
and queue may be another platform's: a PyTorchJob runs in a Kueue queue, with the user in a plain label. So each of the
two comes from the first rule about the pod that gives it, be it before or after the one that names the job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import msgspec

from monitor.cluster.owners import OwnerLookup, workload_of
from monitor.cluster.platforms import PlatformRule, Selector, parse_condition, parse_selector
from monitor.facts.cluster import Identity
from monitor.facts.kube import OwnerRef, PodFact

_SERVICE_ACCOUNT = "system:serviceaccount:"
_MAX_VALUE_CHARS = 253  # as long as a name in Kubernetes can be: an annotation may hold a novel
_Object = msgspec.json.Decoder(dict[str, object])


class IdentityInput(msgspec.Struct, frozen=True):
    """A pod and what has to be looked up about it."""

    pod: PodFact
    workload: OwnerRef
    namespace_owner: str | None


Reader = Callable[[IdentityInput], str | None]
Condition = Callable[[IdentityInput], bool]


class _CompiledRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, ready to be asked about pods that bear certain marks: of its readers, those that may give something."""

    name: str
    when: tuple[Condition, ...]
    user: tuple[Reader, ...]
    job: tuple[Reader, ...]
    role: tuple[Reader, ...]
    index: tuple[Reader, ...]
    queue: tuple[Reader, ...]
    kind: str | None


def identify(
    pod: PodFact, owners: OwnerLookup, rules: tuple[PlatformRule, ...], namespace_owners: Mapping[str, str]
) -> Identity:
    """Given a pod, a look-up of owners by uid, rules in order and the persons of namespaces, return whose it is."""
    subject = IdentityInput(pod, workload_of(pod, owners), namespace_owners.get(pod.namespace))
    naming = user = job = queue = None
    for rule in _perhaps_about(rules, _marks(rules, pod)):
        if rule.when and not any(holds(subject) for holds in rule.when):
            continue
        user = user or _first(rule.user, subject)
        queue = queue or _first(rule.queue, subject)
        if naming is None and (job := _first(rule.job, subject)):
            naming = rule
        if naming and user and queue:
            break  # nobody further down has a say
    if naming is None:
        return Identity(user=_person(user), queue=queue, workload_kind=subject.workload.kind)
    return Identity(
        user=_person(user),
        job=job,
        role=_first(naming.role, subject),
        index=_first(naming.index, subject),
        queue=queue,
        platform=naming.name,
        workload_kind=naming.kind or subject.workload.kind,
    )


# Most rules are about none of a cluster's pods, and most of what a rule looks for is on none of those it is about: that
# has to cost next to nothing. So what a pod has of all that rules look for is found at once, and pods that have the
# same of it, which are most pods, share the choice of rules and of what is read.


def _marks(rules: tuple[PlatformRule, ...], pod: PodFact) -> frozenset[str]:
    """Return the keys on a pod that some rule looks for."""
    keys = _all_keys(rules)
    found = keys.intersection(pod.labels)
    if pod.annotations:
        found |= keys.intersection(pod.annotations)
    return found | keys.intersection(pod.env) if pod.env else found


@lru_cache(maxsize=16)
def _all_keys(rules: tuple[PlatformRule, ...]) -> frozenset[str]:
    selectors = (parse_selector(text) for rule in rules for text in rule.selectors())
    return frozenset(selector.key for selector in selectors if selector.key)


@lru_cache(maxsize=1024)
def _perhaps_about(rules: tuple[PlatformRule, ...], marks: frozenset[str]) -> tuple[_CompiledRule, ...]:
    """Return the rules that may be about pods with these marks."""
    ready = ((rule, _ready(rule, marks)) for rule in rules)
    return tuple(prepared for rule, prepared in ready if prepared.when or not rule.when)


def _ready(rule: PlatformRule, marks: frozenset[str]) -> _CompiledRule:
    when = (parse_condition(entry) for entry in rule.when)
    return _CompiledRule(
        name=rule.name,
        when=tuple(_condition(entry) for entry in when if all(_may_give(each, marks) for each in entry)),
        user=_readers(rule.user, marks),
        job=_readers(rule.job, marks),
        role=_readers(rule.role, marks),
        index=_readers(rule.index, marks),
        queue=_readers(rule.queue, marks),
        kind=rule.kind,
    )


def _may_give(selector: Selector, marks: frozenset[str]) -> bool:
    return not selector.key or selector.key in marks


def _condition(entry: tuple[Selector, ...]) -> Condition:
    """Given selectors that all have to hold, return what tells whether they do."""
    wanted = tuple(((_reader(selector),), selector.value) for selector in entry)

    def holds(subject: IdentityInput) -> bool:
        for readers, value in wanted:
            found = _first(readers, subject)
            if not found or (value and found != value):
                return False
        return True

    return holds


def _readers(texts: Iterable[str], marks: frozenset[str]) -> tuple[Reader, ...]:
    selectors = map(parse_selector, texts)
    return tuple(_reader(selector) for selector in selectors if _may_give(selector, marks))


def _reader(selector: Selector) -> Reader:
    """Given a selector, return what reads it off a pod, as it stands there."""
    key, field = selector.key, selector.field
    match selector.source:
        case "label":
            return lambda subject: subject.pod.labels.get(key)
        case "annotation":
            return lambda subject: _annotation(subject.pod.annotations.get(key), field)
        case "env":
            return lambda subject: subject.pod.env.get(key)
        case "namespace":
            return lambda subject: subject.pod.namespace
        case "namespace-owner":
            return lambda subject: subject.namespace_owner
        case "owner":
            return lambda subject: subject.workload.name
        case _:
            return lambda subject: subject.pod.name


def _first(readers: tuple[Reader, ...], subject: IdentityInput) -> str | None:
    """Return the first word that one of them gives. Empty is nothing."""
    for read in readers:
        found = read(subject)
        if found and (word := found.strip()[:_MAX_VALUE_CHARS]):
            return word
    return None


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
