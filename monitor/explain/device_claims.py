"""ResourceClaims (Dynamic Resource Allocation) that keep a pod pending or from starting."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from monitor.explain.error_chain.causes import SchedulingCause as C
from monitor.explain.fit import fit, gpu_resource
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, PodStatus, pending_diagnosis
from monitor.explain.quote import quote
from monitor.explain.scheduler_message import SchedulerVerdict
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.devices import DeviceClassFact, DeviceKey, DeviceRequestFact, ResourceClaimFact
from monitor.facts.kube import EventFact, PodClaimFact, PodFact
from monitor.facts.text import Text, Value

CREATION_EVENT_REASON = "FailedResourceClaimCreation"
PREPARATION_EVENT_REASON = "FailedPrepareDynamicResources"
PREPARE_CAUSE = "start-dra-prepare"
CREATION_GRACE_SECONDS = 30.0  # the controller may not have created the claim yet
MAX_CONSUMERS = 256  # for which Kubernetes reserves a claim at a time
MAX_NAMED_PODS = 3
# Reasons of the scheduler that claims explain; others, such as too little CPU, are explained by the nodes.
_CLAIM_CAUSES = (
    C.DEVICE_CLAIM, C.DEVICE_CLAIM_MISSING, C.DEVICE_CLAIM_DRIVER, C.DEVICE_CLASS_MISSING, C.GPUS, C.OTHER,
)  # fmt: skip
_TEMPLATE_MISSING = re.compile(r"resourceclaimtemplate\S* \\?\"[^\"]+\" not found", re.IGNORECASE)
_UNREGISTERED = re.compile(r"DRA driver (\S+) is not registered|driver name (\S+) not found in the list of registered")
_PREPARED_CLAIM = re.compile(r"for (?:ResourceClaim|claim) (?:[^\s/]+/)?([^\s/:]+)", re.IGNORECASE)


def not_allocated(
    pod: PodFact, facts: ClusterFacts, verdict: SchedulerVerdict | None, now: float
) -> PodDiagnosis | None:
    """Diagnosis by the first claim of a pending pod that is not ready for it, or None."""
    if verdict is not None and verdict.reason is not None and verdict.reason.cause not in _CLAIM_CAUSES:
        return None
    for ref in pod.device_claims:
        if diagnosis := _not_ready(pod, ref, facts, verdict, now):
            return diagnosis
    return None


def _not_ready(
    pod: PodFact, ref: PodClaimFact, facts: ClusterFacts, verdict: SchedulerVerdict | None, now: float
) -> PodDiagnosis | None:
    values: dict[str, Value] = {"namespace": pod.namespace, "pod": pod.name, "claim": ref.claim or ref.name}
    if ref.claim is None:
        return _not_created(pod, ref, facts, values, now)
    if not facts.devices.known:
        return None
    claim = facts.claim_by_name.get((pod.namespace, ref.claim))
    cause = verdict.reason.cause if verdict is not None and verdict.reason is not None else None
    if claim is None:  # or not seen yet: pods and claims are watched separately
        absent = cause is not C.DEVICE_CLAIM and (cause is C.DEVICE_CLAIM_MISSING or not _is_new(pod, now))
        return _pending(Key.DRA_CLAIM_MISSING, Key.DRA_CLAIM_MISSING_ADVICE, values) if absent else None
    if claim.deletion_at is not None:
        return _pending(Key.DRA_CLAIM_LEAVING, Key.DRA_CLAIM_LEAVING_ADVICE, values)
    if claim.allocated:
        return _allocated_elsewhere(pod, claim, facts, values)
    return next(_short(claim, facts, values, cause is C.DEVICE_CLAIM), None)


def _is_new(pod: PodFact, now: float) -> bool:
    return pod.created_at is None or now - pod.created_at <= CREATION_GRACE_SECONDS


def _pending(key: Key, advice: Key, values: dict[str, Value], evidence: Iterable[Text] = ()) -> PodDiagnosis:
    return pending_diagnosis(PendingCause.DEVICE_CLAIM, key, advice, values, evidence)


def _not_created(
    pod: PodFact, ref: PodClaimFact, facts: ClusterFacts, values: dict[str, Value], now: float
) -> PodDiagnosis | None:
    """The controller has not created the claim from its template. It says why in an event."""
    event = _newest(facts.events_of(pod), CREATION_EVENT_REASON)
    values = values | {"template": ref.template or "?"}
    if event is None:
        return None if _is_new(pod, now) else _pending(Key.DRA_NOT_CREATED, Key.DRA_NOT_CREATED_ADVICE, values)
    says = (Text(Key.DRA_CONTROLLER_SAYS, {"message": quote(event.message)}),)
    if _TEMPLATE_MISSING.search(event.message or ""):
        return _pending(Key.DRA_TEMPLATE_MISSING, Key.DRA_TEMPLATE_MISSING_ADVICE, values, says)
    return _pending(Key.DRA_NOT_CREATED, Key.DRA_NOT_CREATED_ADVICE, values, says)


def _newest(events: tuple[EventFact, ...], reason: str) -> EventFact | None:
    return next((event for event in reversed(events) if event.reason == reason), None)


def _allocated_elsewhere(
    pod: PodFact, claim: ResourceClaimFact, facts: ClusterFacts, values: dict[str, Value]
) -> PodDiagnosis | None:
    """A claim that other pods use binds this pod to their node, and has a limited number of users."""
    others = [consumer.name for consumer in claim.reserved_for if consumer.uid != pod.uid]
    names = ", ".join(others[:MAX_NAMED_PODS]) + (" …" if len(others) > MAX_NAMED_PODS else "")
    values = values | {"pods": names, "node": claim.node or "?", "count": len(others)}
    if len(others) >= MAX_CONSUMERS:
        return _pending(Key.DRA_CLAIM_FULL, Key.DRA_CLAIM_FULL_ADVICE, values)
    node = facts.node_by_name.get(claim.node or "")
    if node is None or fit(pod, node, facts, gpu_resource(pod, facts)).fits:
        return None
    key = Key.DRA_CLAIM_ELSEWHERE if others else Key.DRA_CLAIM_BOUND
    return _pending(key, Key.DRA_CLAIM_ELSEWHERE_ADVICE, values)


def _short(
    claim: ResourceClaimFact, facts: ClusterFacts, values: dict[str, Value], rejected: bool
) -> Iterator[PodDiagnosis]:
    """Why no devices are allocated to a claim, by its requests. `rejected`: the scheduler says that it cannot."""
    classes = {each.name: each for each in facts.devices.classes}
    for request in claim.requests:
        device_class = classes.get(request.device_class or "")
        named = values | {"device_class": request.device_class or "?", "count": request.count or 1}
        if device_class is None:
            yield _pending(Key.DRA_CLASS_MISSING, Key.DRA_CLASS_MISSING_ADVICE, named)
        else:
            yield from _short_of_devices(request, device_class, facts, named, rejected)


def _short_of_devices(
    request: DeviceRequestFact,
    device_class: DeviceClassFact,
    facts: ClusterFacts,
    values: dict[str, Value],
    rejected: bool,
) -> Iterator[PodDiagnosis]:
    if not device_class.drivers:
        return
    held = _held(facts)
    offered = dict(_offered(device_class, facts))
    total, free = Counter(offered.values()), Counter(node for key, node in offered.items() if key not in held)
    needs = request.count or 1
    values = values | {"driver": ", ".join(device_class.drivers), "total": sum(total.values())}
    values |= {"free": sum(free.values()), "largest": max(total.values(), default=0)}
    if not offered:
        yield _pending(Key.DRA_NO_DEVICES, Key.DRA_NO_DEVICES_ADVICE, values)
    elif needs > max(total.values()):
        yield _pending(Key.DRA_TOO_MANY, Key.DRA_TOO_MANY_ADVICE, values)
    elif needs > max(free.values(), default=0):
        holders = Counter(held[key] for key in offered if key in held)
        named = ", ".join(f"{name} ({count})" for name, count in holders.most_common(MAX_NAMED_PODS))
        yield _pending(
            Key.DRA_ALL_TAKEN, Key.DRA_ALL_TAKEN_ADVICE, values, (Text(Key.DRA_HOLDERS, {"holders": named}),)
        )
    elif rejected and request.selectors:
        values |= {"selectors": quote("; ".join(request.selectors))}
        yield _pending(Key.DRA_SELECTOR, Key.DRA_SELECTOR_ADVICE, values)


def _offered(device_class: DeviceClassFact, facts: ClusterFacts) -> Iterator[tuple[DeviceKey, str]]:
    """Devices that a class admits, as far as driver and type tell, with their nodes."""
    for each in facts.devices.slices:
        if each.driver not in device_class.drivers:
            continue
        for device in each.devices:
            if not device.tainted and (not device_class.types or device.type in device_class.types):
                yield (each.driver, each.pool, device.name), each.node or each.pool


def _held(facts: ClusterFacts) -> dict[DeviceKey, str]:
    """Allocated devices, each with a pod that holds it, else the claim."""
    return {
        device.key: f"{claim.namespace}/{claim.reserved_for[0].name if claim.reserved_for else claim.name}"
        for claim in facts.devices.claims
        for device in claim.devices
        if not device.admin
    }


def not_prepared(pod: PodFact, event: EventFact | None, facts: ClusterFacts) -> PodDiagnosis | None:
    """Diagnosis of devices that the DRA driver on the node does not prepare, by the kubelet's event or the claim."""
    message = event.message or "" if event is not None else None
    claims = [c for ref in pod.device_claims if (c := facts.claim_by_name.get((pod.namespace, ref.claim or "")))]
    if message is None:
        trouble = next(((claim, each) for claim in claims for each in claim.conditions), None)
        if trouble is None:
            return None
        claims, message = [trouble[0]], trouble[1].message or trouble[1].reason or trouble[1].type
    values: dict[str, Value] = {"node": pod.node or "?", "pod": pod.name, "namespace": pod.namespace}
    evidence = (Text(Key.RUNTIME_SAYS, {"message": quote(message)}),)
    headline, advice = Key.START_DRA_PREPARE, Key.START_DRA_PREPARE_ADVICE
    if match := _UNREGISTERED.search(message):
        values["driver"] = match[1] or match[2]
        headline, advice = Key.START_DRA_UNREGISTERED, Key.START_DRA_UNREGISTERED_ADVICE
    elif failed := _failed_claim(message, claims):
        values |= {"claim": failed.name, "driver": ", ".join(dict.fromkeys(each.driver for each in failed.devices))}
        values["devices"] = ", ".join(each.device for each in failed.devices[:MAX_NAMED_PODS])
        headline, advice = Key.START_DRA_CLAIM, Key.START_DRA_CLAIM_ADVICE
    return PodDiagnosis(PodStatus.CREATING, PREPARE_CAUSE, Text(headline, values), evidence, (Text(advice, values),))


def _failed_claim(message: str, claims: list[ResourceClaimFact]) -> ResourceClaimFact | None:
    """The allocated claim that the message names; the only one, if it names none."""
    allocated = [claim for claim in claims if claim.devices]
    match = _PREPARED_CLAIM.search(message)
    named = next((claim for claim in allocated if match and claim.name == match[1]), None)
    return named or (allocated[0] if len(allocated) == 1 else None)
