"""Why a controller could not create pods, from the API server's rejection."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from monitor.explain.error_chain.causes import SchedulingCause
from monitor.explain.error_chain.scheduling import main_reason, parse_scheduling
from monitor.explain.keys import Key
from monitor.explain.quote import quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.gpu_resources import resource_kind
from monitor.facts.kube import EventFact
from monitor.facts.text import Text, Value

DENIAL_REASONS = ("FailedCreate", "FailedCreatePod", "CreatePodFailed", "FailedPodCreate", "ReplicaSetCreateError")
# Atomic groups: three parts that may each end in many places would take cubic time.
_QUOTA = re.compile(r"exceeded quota: ([^,]+), requested: (?>(.+?), used: )(?>(.+?), limited: )([^;\n]+)")
# Since Kubernetes 1.24 with the containers: `limits.cpu for: a,b; limits.memory for: a`.
_UNSPECIFIED = re.compile(r"failed quota: ([^:]+): must specify ([\w.,/ :;-]+)")
_NO_SCOPE = "insufficient quota to match these scopes"
_CONTAINERS = re.compile(r" for: [\w.,-]+;?")
_LIMIT_RANGE = re.compile(
    r"((?:(?:maximum|minimum) \S+ usage|\S+ max limit to request ratio) per \w+ is [^,]{1,100}?"
    r"(?:, but [\w ]+? is [^.,;]+|\.\s+No \w+ is specified))"
)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)'[^:]{0,200} denied request: ?(.*)", re.DOTALL)
_QUEUE_NAME = re.compile(r"queue[s:]*\s+[`'\"]([\w.-]+)[`'\"]", re.IGNORECASE)
_DENIED = re.compile(r"admission webhook \"([^\"]+)\" denied the request:? ?(.*)", re.DOTALL)
_WEBHOOK_DOWN = re.compile(r"failed calling (?:admission )?webhook \"([^\"]+)\": ?(.*)", re.DOTALL)
_ACCOUNT = re.compile(r"serviceaccount \"([^\"]+)\" not found")
_POD_SECURITY = (
    "violates PodSecurity",
    "unable to validate against any security context constraint",
    "unable to validate against any pod security policy",
    "PodSecurityPolicy: ",
    "no providers available to validate pod request",
)
_PRIORITY_CLASS = re.compile(r"no PriorityClass with name (\S+) was found")


@dataclass(frozen=True)
class AdmissionDenial:
    """Why pods are not created. `cause` is a code."""

    cause: str
    headline: Text
    advice: Text
    values: dict[str, Value] = field(default_factory=dict)


def parse_denial(message: str) -> AdmissionDenial:
    """Reason for the API server's rejection; an unrecognised message is quoted."""
    for read in (
        _queue,
        _quota,
        _unspecified,
        _scope,
        _limit_range,
        _webhook,
        _pod_security,
        _missing_object,
        _namespace,
    ):
        if denial := read(message):
            return denial
    values: dict[str, Value] = {"message": quote(message)}
    return AdmissionDenial("other", Text(Key.DENIED_OTHER, values), Text(Key.DENIED_OTHER_ADVICE))


def denial_evidence(name: str, namespace: str | None, facts: ClusterFacts) -> Iterable[Text]:
    """The newest reason why pods of the named object could not be created, if any."""
    if event := newest_denial(name, namespace, facts):
        yield parse_denial(event.message or "").headline


def newest_denial(name: str, namespace: str | None, facts: ClusterFacts) -> EventFact | None:
    """The newest event in which the controller of the named object reports failed pod creation."""
    denials = [
        event
        for (_, where, what), events in facts.events_by_name.items()
        if where == namespace and _belongs(what, name)
        for event in events
        if event.reason in DENIAL_REASONS and event.message
    ]
    return max(denials, key=lambda event: event.last_at or 0.0, default=None)


def _belongs(what: str, name: str) -> bool:
    """ReplicaSets have the name of their Deployment plus a hash, Jobs that of their CronJob plus a number."""
    if what == name:
        return True
    head, dash, tail = what.rpartition("-")
    return bool(dash) and head == name and tail.isalnum()


def _queue(message: str) -> AdmissionDenial | None:
    """A queue that accepts no jobs or does not exist, which Volcano's webhook reports."""
    match = _DENIED.search(message)
    reason = main_reason(parse_scheduling(match[2])) if match is not None and "queue" in match[2].lower() else None
    if reason is None or reason.cause not in (SchedulingCause.QUEUE_CLOSED, SchedulingCause.QUEUE_MISSING):
        return None
    found = _QUEUE_NAME.search(reason.text)
    values: dict[str, Value] = {"name": found[1] if found else "?", "message": quote(reason.text)}
    key = Key[f"SCHED_{reason.cause.name}"]
    return _denial(reason.cause.value, key, Key[f"{key.name}_ADVICE"], values)


def _quota(message: str) -> AdmissionDenial | None:
    match = _QUOTA.search(message)
    if match is None:
        return None
    requested, used, limits = (_amounts(match[group]) for group in (2, 3, 4))
    gpus = (name for name in requested if resource_kind(limited_resource(name)) is not None)
    resource = next(gpus, next(iter(requested), "?"))
    values: dict[str, Value] = {
        "quota": match[1].strip(),
        "resource": resource,
        "needs": requested.get(resource, "?"),
        "used": used.get(resource, "?"),
        "limit": limits.get(resource, "?"),
    }
    return _denial("quota", Key.QUOTA_EXCEEDED, Key.QUOTA_EXCEEDED_ADVICE, values)


def limited_resource(name: str) -> str:
    """The resource that an entry of a quota limits: `nvidia.com/gpu` of `requests.nvidia.com/gpu`."""
    return name.removeprefix("requests.").removeprefix("limits.")


def _denial(cause: str, headline: Key, advice: Key, values: dict[str, Value]) -> AdmissionDenial:
    return AdmissionDenial(cause, Text(headline, values), Text(advice, values), values)


def _amounts(text: str) -> dict[str, str]:
    """`requests.nvidia.com/gpu=8,pods=1` as a mapping."""
    pairs = (part.partition("=") for part in text.split(","))
    return {name.strip(): amount.strip() for name, _, amount in pairs}


def _unspecified(message: str) -> AdmissionDenial | None:
    match = _UNSPECIFIED.search(message)
    if match is None:
        return None
    values: dict[str, Value] = {"quota": match[1].strip(), "fields": _fields(match[2])}
    return _denial("quota", Key.QUOTA_UNSPECIFIED, Key.QUOTA_UNSPECIFIED_ADVICE, values)


def _scope(message: str) -> AdmissionDenial | None:
    """A priority class or another scope that only a quota of its own admits."""
    if _NO_SCOPE not in message:
        return None
    values: dict[str, Value] = {"message": quote(message)}
    return AdmissionDenial("quota", Text(Key.QUOTA_SCOPE, values), Text(Key.QUOTA_SCOPE_ADVICE), values)


def _fields(text: str) -> str:
    """The fields to set, without the containers that lack them."""
    fields = [field.strip(" ;") for part in _CONTAINERS.sub(",", text).split(",") for field in part.split(";")]
    return ", ".join(dict.fromkeys(field for field in fields if field))


def _limit_range(message: str) -> AdmissionDenial | None:
    match = _LIMIT_RANGE.search(message)
    if match is None:
        return None
    values: dict[str, Value] = {"rule": quote(match[1])}
    return AdmissionDenial("limit-range", Text(Key.LIMIT_RANGE, values), Text(Key.LIMIT_RANGE_ADVICE), values)


def _webhook(message: str) -> AdmissionDenial | None:
    if match := _DENIED.search(message) or _POLICY.search(message):
        values: dict[str, Value] = {"webhook": match[1], "message": quote(match[2])}
        return _denial("webhook", Key.WEBHOOK_DENIED, Key.WEBHOOK_DENIED_ADVICE, values)
    if match := _WEBHOOK_DOWN.search(message):
        values = {"webhook": match[1], "message": quote(match[2])}
        return _denial("webhook", Key.WEBHOOK_DOWN, Key.WEBHOOK_DOWN_ADVICE, values)
    return None


def _pod_security(message: str) -> AdmissionDenial | None:
    if not any(sign in message for sign in _POD_SECURITY):
        return None
    values: dict[str, Value] = {"message": quote(message)}
    return AdmissionDenial("pod-security", Text(Key.POD_SECURITY, values), Text(Key.POD_SECURITY_ADVICE), values)


def _missing_object(message: str) -> AdmissionDenial | None:
    if match := _ACCOUNT.search(message):
        values: dict[str, Value] = {"kind": "ServiceAccount", "name": match[1]}
    elif match := _PRIORITY_CLASS.search(message):
        values = {"kind": "PriorityClass", "name": match[1]}
    else:
        return None
    return _denial("missing-object", Key.OBJECT_MISSING, Key.OBJECT_MISSING_ADVICE, values)


def _namespace(message: str) -> AdmissionDenial | None:
    if "because it is being terminated" not in message:
        return None
    return AdmissionDenial("namespace", Text(Key.NAMESPACE_ENDING), Text(Key.NAMESPACE_ENDING_ADVICE))
