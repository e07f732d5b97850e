"""Pods waiting for an image: why the pull fails and what is at fault, or how long it has taken."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice

from monitor.explain.error_chain.causes import PullFailureCause
from monitor.explain.error_chain.hosts import registry_of
from monitor.explain.image_pull import PULL_REASONS, PullFailure, classify
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus, family_diagnosis
from monitor.explain.quote import quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import ContainerStatusFact, EventFact, PodFact
from monitor.facts.text import Text, Value

IMAGE_SPECIFIC_CAUSES = (
    PullFailureCause.WRONG_ARCHITECTURE,
    PullFailureCause.UNAUTHORIZED,
    PullFailureCause.POLICY,
    PullFailureCause.NOT_FOUND,
    PullFailureCause.BAD_IMAGE,
    PullFailureCause.OLD_FORMAT,
    PullFailureCause.BAD_NAME,
    PullFailureCause.NEVER_PULL,
)
_CREDENTIAL_CAUSES = (PullFailureCause.UNAUTHORIZED, PullFailureCause.TOKEN_EXPIRED)
_HOST_CAUSES = (PullFailureCause.PROXY, PullFailureCause.MIRROR)
MAX_COMPARED_PULLS = 200
SLOW_PULL_SECONDS = 300.0
_CONCLUSIVE_FRAGMENTS = (
    "failed to pull image",
    "failed to inspect image",
    "failed to apply default image tag",
    "is not present with",
)


def failing(pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts, *, brief: bool = False) -> PodDiagnosis:
    """Diagnosis of a container whose image pull fails, and what is at fault; `brief`: without evidence."""
    image = _image_of(pod, status)
    failure, event = _newest_failure(pod, status, image, facts)
    values: dict[str, Value] = {
        "image": failure.image or image or "?",
        "registry": failure.registry or "?",
        "host": failure.host or failure.registry or "?",
        "node": pod.node or "?",
        "container": status.name,
    }
    if brief:
        return family_diagnosis(PodStatus.PULLING, "PULL", failure.cause.name, values, ())
    evidence = [*_blame(pod, failure, facts), *_secrets(pod, failure, facts)]
    if failure.message:
        evidence.append(Text(Key.PULL_SAYS, {"message": quote(failure.message)}))
    if event is not None and event.count > 1:
        evidence.append(Text(Key.PULL_ATTEMPTS, {"count": event.count}))
    return family_diagnosis(PodStatus.PULLING, "PULL", failure.cause.name, values, evidence)


def _image_of(pod: PodFact, status: ContainerStatusFact) -> str | None:
    return next((container.image for container in pod.containers if container.name == status.name), None)


def _newest_failure(
    pod: PodFact, status: ContainerStatusFact, image: str | None, facts: ClusterFacts
) -> tuple[PullFailure, EventFact | None]:
    """The failure by the container's own message if conclusive, else by the newest conclusive event."""
    from_status = classify(status.reason, status.message, image)
    events = [
        event
        for event in facts.events_of(pod)
        if event.container in (None, status.name)
        and any(fragment in (event.message or "").lower() for fragment in _CONCLUSIVE_FRAGMENTS)
    ]
    if from_status.cause is not PullFailureCause.UNKNOWN or not events:
        return from_status, events[-1] if events else None
    return classify(status.reason, events[-1].message, image), events[-1]


def _blame(pod: PodFact, failure: PullFailure, facts: ClusterFacts) -> Iterable[Text]:
    """Evidence for the culprit (node, registry or image name): other failing pulls, and registry probes."""
    yield from _probes(pod, failure, facts)
    others = [(other, image) for other, image in _failing_pods(facts) if other.uid != pod.uid]
    here = {image for other, image in others if other.node == pod.node and image != failure.image}
    there = {other.node for other, image in others if other.node != pod.node and registry_of(image) == failure.registry}
    same = {other.node for other, image in others if other.node != pod.node and image == failure.image}
    shared = tuple(_shared(pod, failure, facts))
    if shared:
        yield from shared
        yield from _works_elsewhere(pod, failure, facts)
        return
    # A wrong image name fails on every node; a broken registry fails for every image.
    if same and (
        failure.cause in IMAGE_SPECIFIC_CAUSES or (failure.cause is PullFailureCause.UNKNOWN and same == there)
    ):
        yield Text(Key.PULL_IMAGE_SUSPECT, {"image": failure.image or "?", "count": len(same) + 1})
    elif there and failure.cause not in IMAGE_SPECIFIC_CAUSES:
        yield Text(Key.PULL_REGISTRY_SUSPECT, {"registry": failure.registry or "?", "count": len(there) + 1})
    elif here and failure.cause not in IMAGE_SPECIFIC_CAUSES:
        yield Text(Key.PULL_NODE_SUSPECT, {"node": pod.node or "?", "count": len(here) + 1})
    yield from _works_elsewhere(pod, failure, facts)


def _shared(pod: PodFact, failure: PullFailure, facts: ClusterFacts) -> Iterable[Text]:
    """What failing pulls have in common if it is neither node, registry nor image: a credential, a proxy, a mirror."""
    if failure.cause not in (*_CREDENTIAL_CAUSES, *_HOST_CAUSES):
        return
    images, nodes = {failure.image}, {pod.node}
    for other, image, status in islice(_failing_statuses(facts), MAX_COMPARED_PULLS):
        told = classify(status.reason, status.message, image)
        if told.cause in _CREDENTIAL_CAUSES and told.registry == failure.registry:
            images.add(image)
        if told.cause in _HOST_CAUSES and told.host == failure.host:
            nodes.add(other.node)
    if failure.cause in _CREDENTIAL_CAUSES and len(images) > 1:
        yield Text(Key.PULL_CREDENTIAL_SUSPECT, {"registry": failure.registry or "?", "count": len(images)})
    if failure.cause in _HOST_CAUSES and len(nodes) > 1:
        yield Text(Key.PULL_HOST_SUSPECT, {"host": failure.host or "?", "count": len(nodes)})


def _failing_pods(facts: ClusterFacts) -> Iterable[tuple[PodFact, str]]:
    for pod, image, _ in _failing_statuses(facts):
        yield pod, image


def _failing_statuses(facts: ClusterFacts) -> Iterable[tuple[PodFact, str, ContainerStatusFact]]:
    for pods in facts.bound.values():
        for pod in pods:
            for status in pod.statuses:
                failing = status.state == "waiting" and status.reason in PULL_REASONS
                if failing and (image := _image_of(pod, status)):
                    yield pod, image, status


def _probes(pod: PodFact, failure: PullFailure, facts: ClusterFacts) -> Iterable[Text]:
    """Whether this node's probe reaches the registry, and how many other nodes' probes do."""
    hosts = {failure.registry, failure.host} - {None}
    results = {
        node: probe
        for node, snapshot in facts.snapshots.items()
        for probe in snapshot.probes or ()
        if _host(probe.target) in hosts
    }
    mine = results.pop(pod.node or "", None)
    if mine is None:
        return
    values: dict[str, Value] = {"node": pod.node or "?", "registry": _host(mine.target)}
    others, reach = len(results), sum(probe.ok for probe in results.values())
    if not mine.ok and others and reach == others:
        yield Text(Key.PROBE_ONLY_HERE, values | {"cause": mine.cause or mine.error or "?", "others": others})
        return
    yield Text(Key.PROBE_OK, values) if mine.ok else Text(Key.PROBE_FAILS, values | {"cause": mine.cause or "?"})
    if others:
        yield Text(Key.PROBE_OTHERS, {"registry": _host(mine.target), "others": others, "reach": reach})


def _host(target: str) -> str:
    return target.partition("://")[2].partition("/")[0] if "://" in target else target.partition("/")[0]


def _works_elsewhere(pod: PodFact, failure: PullFailure, facts: ClusterFacts) -> Iterable[Text]:
    """Nodes that already have the image: the name is correct, and the pod could run there."""
    nodes = sorted(
        node
        for node, snapshot in facts.snapshots.items()
        if node != pod.node
        and any(failure.image in image.names for cache in snapshot.images or () for image in cache.images)
    )
    if nodes:
        yield Text(Key.IMAGE_ELSEWHERE, {"count": len(nodes), "nodes": ", ".join(nodes[:3])})


def _secrets(pod: PodFact, failure: PullFailure, facts: ClusterFacts) -> Iterable[Text]:
    """Pull secrets that the pod references but that do not exist."""
    for event in reversed(facts.events_of(pod)):
        if event.reason == "FailedToRetrieveImagePullSecret" and failure.cause is PullFailureCause.UNAUTHORIZED:
            yield Text(Key.PULL_SECRET_MISSING, {"message": quote(event.message), "namespace": pod.namespace})
            return


def in_progress(pod: PodFact, facts: ClusterFacts, now: float) -> PodDiagnosis | None:
    """Diagnosis of a pod whose image is being pulled, or None."""
    events = [event for event in facts.events_of(pod) if event.reason in ("Pulling", "Pulled", "Failed")]
    if not events or events[-1].reason != "Pulling" or events[-1].last_at is None:
        return None
    image = (events[-1].message or "").partition('"')[2].partition('"')[0]
    seconds = max(0.0, now - events[-1].last_at)
    size = image_size(image, pod.node, facts)
    values: dict[str, Value] = {"image": image or "?", "node": pod.node or "?", "seconds": seconds}
    evidence = (Text(Key.IMAGE_SIZE, {"image": image, "size": size}),) if size else ()
    advice = (Text(Key.PULL_SLOW_ADVICE, values),) if seconds >= SLOW_PULL_SECONDS else ()
    cause = "pull-slow" if seconds >= SLOW_PULL_SECONDS else "pulling"
    return PodDiagnosis(PodStatus.PULLING, cause, Text(Key.PULL_IN_PROGRESS, values), evidence, advice)


def image_size(image: str, node: str | None, facts: ClusterFacts) -> int | None:
    """Size of an image according to this node, else to any other that has it."""
    own = facts.snapshots.get(node or "")
    for snapshot in chain([own] if own is not None else [], facts.snapshots.values()):
        for cache in snapshot.images or ():
            for cached in cache.images:
                if image in cached.names and cached.size_bytes:
                    return cached.size_bytes
    return None
