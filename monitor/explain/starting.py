"""Scheduled pods that have not started: sandbox, configuration, init containers, or simply not yet."""

from __future__ import annotations

import re

from monitor.explain import crash, device_claims, pulling, volumes
from monitor.explain.error_chain.causes import StartFailureCause
from monitor.explain.error_chain.starts import classify_start
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus
from monitor.explain.quote import quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import ContainerStatusFact, EventFact, PodFact
from monitor.facts.text import Text, Value

LONG_START_SECONDS = 120.0
_MISSING = re.compile(r"\b(secret|configmap)s? \\?\"([^\"\\]+)\\?\" (?:is )?not found", re.IGNORECASE)
_KEY = re.compile(r"couldn't find key (\S+) in (Secret|ConfigMap) (\S+)")
_NON_EXISTENT_KEY = re.compile(r"(secret|configmap) references non-existent \w+ key:? (\S+)", re.IGNORECASE)
DRA_REASON = device_claims.PREPARATION_EVENT_REASON
_TROUBLE_REASONS = (*volumes.MOUNT_EVENT_REASONS, "FailedCreatePodSandBox", DRA_REASON)


def starting(pod: PodFact, facts: ClusterFacts, now: float) -> PodDiagnosis:
    """Diagnosis of a scheduled pod without running containers."""
    node = facts.node_by_name.get(pod.node or "")
    if node is not None and node.ready is not True:
        values: dict[str, Value] = {"node": node.name}
        return _creating("node-not-ready", Key.START_NODE_NOT_READY, values, Key.NODE_BACK_ADVICE, {"nodes": node.name})
    newest = _newest_trouble(pod, facts)
    if newest is not None and newest.reason == "FailedCreatePodSandBox":
        return crash.start_diagnosis(pod, pod.name, newest.message or "", PodStatus.CREATING)
    dra_event = newest if newest is not None and newest.reason == DRA_REASON else None
    if (newest is None or dra_event) and (diagnosis := device_claims.not_prepared(pod, dra_event, facts)):
        return diagnosis
    diagnosis = volumes.not_mounted(pod, facts) if newest is not None else None
    return diagnosis or pulling.in_progress(pod, facts, now) or _initializing(pod, now) or _nothing_known(pod, now)


def _newest_trouble(pod: PodFact, facts: ClusterFacts) -> EventFact | None:
    """The newest failed volume, device or sandbox event that no later event supersedes."""
    for event in reversed(facts.events_of(pod)):
        if event.reason in ("Pulling", "Pulled", "Created", "Started"):
            return None
        if event.reason in _TROUBLE_REASONS:
            return event
    return None


def _creating(cause: str, headline: Key, values: dict[str, Value], advice: Key, more: dict[str, Value]) -> PodDiagnosis:
    return PodDiagnosis(PodStatus.CREATING, cause, Text(headline, values), advice=(Text(advice, more),))


def bad_configuration(pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts) -> PodDiagnosis:
    """Diagnosis of a container that cannot be created because of its configuration."""
    message = status.message or crash.event_message(pod, status, facts, ("Failed",))
    values: dict[str, Value] = {"container": status.name, "namespace": pod.namespace, "pod": pod.name}
    evidence = (Text(Key.RUNTIME_SAYS, {"message": quote(message)}),) if message else ()
    if match := _MISSING.search(message):
        values |= {"kind": "Secret" if match[1].lower() == "secret" else "ConfigMap", "name": match[2]}
        keys = Key.CONFIG_OBJECT_MISSING, Key.CONFIG_OBJECT_MISSING_ADVICE
    elif match := _KEY.search(message):
        values |= {"key": match[1], "kind": match[2], "name": match[3].rpartition("/")[2].rstrip(".,")}
        keys = Key.CONFIG_KEY_MISSING, Key.CONFIG_KEY_MISSING_ADVICE
    elif match := _NON_EXISTENT_KEY.search(message):
        values |= {"key": match[2].rstrip(".,"), "kind": "Secret" if match[1].lower() == "secret" else "ConfigMap"}
        values |= {"name": "?"}
        keys = Key.CONFIG_KEY_MISSING, Key.CONFIG_KEY_MISSING_ADVICE
    elif "runAsNonRoot" in message or "breaks non-root policy" in message:
        keys = Key.CONFIG_ROOT, Key.CONFIG_ROOT_ADVICE
    elif classify_start(message).cause is not StartFailureCause.OTHER:
        return crash.start_diagnosis(pod, status.name, message, PodStatus.CREATING)
    else:
        keys = Key.CONFIG_OTHER, Key.CONFIG_OTHER_ADVICE
    return PodDiagnosis(
        PodStatus.CREATING, "bad-configuration", Text(keys[0], values), evidence, (Text(keys[1], values),)
    )


def _initializing(pod: PodFact, now: float) -> PodDiagnosis | None:
    """Diagnosis naming the init container that is still running, or None. A sidecar that has started runs on."""
    initializing = (status for status in pod.statuses if status.init and not (status.sidecar and status.started))
    running = next((status for status in initializing if status.state == "running"), None)
    if running is None:
        return None
    seconds = max(0.0, now - (running.started_at or now))
    values: dict[str, Value] = {
        "container": running.name,
        "seconds": seconds,
        "pod": pod.name,
        "namespace": pod.namespace,
    }
    if running.sidecar:
        keys = Key.SIDECAR_NOT_STARTED, Key.SIDECAR_NOT_STARTED_ADVICE
        return _creating("sidecar-not-started", keys[0], values, keys[1], values)
    return _creating("init-running", Key.INIT_RUNNING, values, Key.INIT_RUNNING_ADVICE, values)


def _nothing_known(pod: PodFact, now: float) -> PodDiagnosis:
    seconds = max(0.0, now - (pod.started_at or pod.created_at or now))
    values: dict[str, Value] = {"node": pod.node or "?", "seconds": seconds, "pod": pod.name}
    values |= {"namespace": pod.namespace}
    if seconds < LONG_START_SECONDS:
        return _creating("starting", Key.START_NORMAL, values, Key.START_NORMAL_ADVICE, values)
    return _creating("starting-long", Key.START_LONG, values, Key.START_LONG_ADVICE, values)
