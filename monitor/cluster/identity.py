"""User, job and queue of a pod, by the table of platforms.

Job, role, index and platform come from the first rule that applies to the pod and yields a job. User and queue may
come from another platform: a PyTorchJob runs in a Kueue queue, with the user in a plain label. So each of the two comes
from the first applicable rule that yields it, before or after the rule that names the job.

Tenants write the labels, annotations and variables of their pods. So in a namespace with an owner the user is that
owner, unless a selector that the configuration trusts yields another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from monitor.base.text import shorten_name
from monitor.cluster.owners import OwnerLookup, kueue_queue_of, workload_of
from monitor.cluster.platforms import PlatformRule
from monitor.cluster.selectors import READ_BY_KEY, Selector, parse_condition, parse_selector
from monitor.facts.cluster import Identity
from monitor.facts.kube import OwnerRef, PodFact

_SERVICE_ACCOUNT = "system:serviceaccount:"
_KIND = "kind"
_MAX_VALUE_CHARS = 253  # longest name in Kubernetes; annotations may be much longer
_Object = msgspec.json.Decoder(dict[str, object])


class IdentityInput(msgspec.Struct, frozen=True, gc=False):
    """A pod, its owners, the topmost of them, and the owner of its namespace."""

    pod: PodFact
    owners: OwnerLookup
    workload: OwnerRef
    namespace_owner: str | None


Reader = Callable[[IdentityInput], str | None]
Condition = Callable[[IdentityInput], bool]


class _CompiledRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule compiled for pods with certain keys: only the readers that can yield a value."""

    name: str
    when: tuple[Condition, ...]
    user: tuple[Reader, ...]
    trusted_user: tuple[Reader, ...]
    job: tuple[Reader, ...]
    role: tuple[Reader, ...]
    index: tuple[Reader, ...]
    queue: tuple[Reader, ...]
    kind: str | None
    inference: bool | None


def identify(
    pod: PodFact, owners: OwnerLookup, rules: tuple[PlatformRule, ...], namespace_owners: Mapping[str, str]
) -> Identity:
    """Identity of a pod by the rules, in order of precedence."""
    owner = namespace_owners.get(pod.namespace, "").strip()[:_MAX_VALUE_CHARS] or None
    known = IdentityInput(pod, owners, workload_of(pod, owners), owner)
    naming = user = job = queue = inference = None
    for rule in _candidates(rules, _shape_of(rules, known)):
        if rule.when and not _applies(rule.when, known):
            continue
        if not user and (readers := rule.user if owner is None else rule.trusted_user):
            user = _first(readers, known)
        if not queue and rule.queue:
            queue = _first(rule.queue, known)
        inference = rule.inference if inference is None else inference
        if naming is None and rule.job and (name := _first(rule.job, known)) and not _is_shared(name):
            naming, job = rule, name
    user = user or known.namespace_owner
    if naming is None:
        return Identity(
            user=_user_name(user), queue=queue, workload_kind=known.workload.kind, inference=inference is True
        )
    return Identity(
        user=_user_name(user),
        job=job,
        role=_first(naming.role, known),
        index=_first(naming.index, known),
        queue=queue,
        platform=naming.name,
        workload_kind=naming.kind or known.workload.kind,
        inference=inference is True,
    )


# Most rules apply to no pod of a cluster, and most selectors of a rule find nothing on the pods it applies to. Both
# must cost next to nothing. So what the rules can see of a pod without reading values is determined once, and pods that
# are alike in it, which are most pods, share the compiled rules.


class _Shape(NamedTuple):
    """What decides which selectors can yield a value: keys that some rule reads, the owner's kind, whether it serves.

    `kind` is None if no rule names it.
    """

    keys: frozenset[str]
    kind: str | None
    serves: bool


def _shape_of(rules: tuple[PlatformRule, ...], known: IdentityInput) -> _Shape:
    pod, kind = known.pod, known.workload.kind
    keys, kinds = _read_by(rules)
    present = keys.intersection(pod.labels)
    if pod.annotations:
        present |= keys.intersection(pod.annotations)
    if pod.env:
        present |= keys.intersection(pod.env)
    return _Shape(present, kind if kind in kinds else None, _serves(pod))


def _serves(pod: PodFact) -> bool:
    for container in pod.containers:  # noqa: SIM110  # a generator costs more, for every pod
        if container.serves:
            return True
    return False


@lru_cache(maxsize=16)
def _read_by(rules: tuple[PlatformRule, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Keys and kinds of owners that some rule reads."""
    selectors = [parse_selector(text) for rule in rules for text in rule.selectors()]
    return (
        frozenset(selector.key for selector in selectors if selector.source in READ_BY_KEY),
        frozenset(selector.key for selector in selectors if selector.source == _KIND),
    )


@lru_cache(maxsize=1024)
def _candidates(rules: tuple[PlatformRule, ...], shape: _Shape) -> tuple[_CompiledRule, ...]:
    """Rules that may apply to pods of this shape."""
    compiled_rules = ((rule, _compile(rule, shape)) for rule in rules)
    return tuple(compiled for rule, compiled in compiled_rules if compiled.when or not rule.when)


def _compile(rule: PlatformRule, shape: _Shape) -> _CompiledRule:
    conditions = (parse_condition(entry) for entry in rule.when)
    return _CompiledRule(
        name=rule.name,
        when=tuple(
            _condition(selectors)
            for selectors in conditions
            if all(_may_match(selector, shape) for selector in selectors)
        ),
        user=_readers(rule.user, shape),
        trusted_user=_readers(rule.trusted, shape),
        job=_readers(rule.job, shape),
        role=_readers(rule.role, shape),
        index=_readers(rule.index, shape),
        queue=_readers(rule.queue, shape),
        kind=rule.kind,
        inference=rule.inference,
    )


def _may_match(selector: Selector, shape: _Shape) -> bool:
    match selector.source:
        case "kind":
            return selector.key == shape.kind
        case "serves":
            return shape.serves
        case source:
            return source not in READ_BY_KEY or selector.key in shape.keys


def _condition(selectors: tuple[Selector, ...]) -> Condition:
    """Condition that all selectors match."""
    required = tuple((_reader(selector), selector.value) for selector in selectors)

    def matches(known: IdentityInput) -> bool:
        for read, required_value in required:
            text = read(known)
            value = text.strip() if text else ""
            if not value or (required_value and shorten_name(value, _MAX_VALUE_CHARS) != required_value):
                return False
        return True

    return matches


def _applies(conditions: tuple[Condition, ...], known: IdentityInput) -> bool:
    """Whether any condition matches."""
    for matches in conditions:  # noqa: SIM110  # a generator costs more than most conditions
        if matches(known):
            return True
    return False


def _readers(texts: Iterable[str], shape: _Shape) -> tuple[Reader, ...]:
    selectors = map(parse_selector, texts)
    return tuple(_reader(selector) for selector in selectors if _may_match(selector, shape))


def _reader(selector: Selector) -> Reader:
    """Function that reads the unmodified value of a selector."""
    key, field = selector.key, selector.field
    match selector.source:
        case "label":
            return lambda known: known.pod.labels.get(key)
        case "annotation":
            return lambda known: _annotation(known.pod.annotations.get(key), field)
        case "env":
            return lambda known: known.pod.env.get(key)
        case "kind":  # only pods whose owner is of that kind have this reader
            return lambda _known: key
        case "text":
            return lambda _known: selector.value
        case _:
            return _READERS[selector.source]


# Of the selectors without a key.
_READERS: dict[str, Reader] = {
    "namespace": lambda known: known.pod.namespace,
    "namespace-owner": lambda known: known.namespace_owner,
    "owner": lambda known: known.workload.name,
    "owner-queue": lambda known: kueue_queue_of(known.pod, known.owners),
    "name": lambda known: known.pod.name,
    "serves": lambda _known: "true",  # only pods that serve have this reader
}


def _first(readers: tuple[Reader, ...], known: IdentityInput) -> str | None:
    """First value that is not blank."""
    for read in readers:
        text = read(known)
        if text and (value := text.strip()):
            return shorten_name(value, _MAX_VALUE_CHARS)
    return None


def _annotation(text: str | None, field: str) -> str | None:
    if text is None or not field:
        return text
    try:
        value = _Object.decode(text).get(field)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):  # any user may write anything there
        return None
    return value if isinstance(value, str) else None


def _is_shared(job: str) -> bool:
    """Whether it is YuniKorn's application for all pods of a namespace that name none."""
    return job.startswith("yunikorn-") and job.endswith("-autogen")


def _user_name(user: str | None) -> str | None:
    """Name of a user; of a service account (as Arena records users), only its own name."""
    return user.rpartition(":")[2] or None if user and user.startswith(_SERVICE_ACCOUNT) else user
