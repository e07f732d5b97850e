"""Decoding of pods.

Parts that are identical on many pods (resources, node selectors, tolerations, affinity, volumes) stay raw bytes in the
first pass and are cached by those bytes: 10,000 pods have a few dozen distinct ones, each parsed and stored once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from sys import intern

import msgspec

from monitor.base.text import MAX_TEXT_CHARS, shorten_name
from monitor.facts.base import BoundedText
from monitor.facts.gpu_sharing import annotated_requests
from monitor.facts.kube import (
    Amounts,
    ConditionFact,
    ContainerStatusFact,
    NodeRequirementFact,
    PodClaimFact,
    PodContainerFact,
    PodFact,
    TerminationFact,
    TolerationFact,
)
from monitor.kube.decode.pod_requests import EMPTY, pod_requests, resources
from monitor.kube.decode.pod_wire import (
    ABSENT,
    WireAffinity,
    WireContainer,
    WireContainerStatus,
    WireEnv,
    WireExpression,
    WirePod,
    WireSpec,
    WireState,
    WireStates,
    WireStatus,
    WireToleration,
)
from monitor.kube.decode.values import (
    cached_if_small,
    conditions,
    interned,
    owner_of,
    parse_time,
    shared_strings,
    truncated,
)
from monitor.kube.decode.volume import volumes

NodeTerms = tuple[tuple[NodeRequirementFact, ...], ...]
MAX_CLAIMS = 64  # per pod; Kubernetes allows a pod 32 devices of its claims
_TRUE_WHILE_RUNNING = ("Initialized", "Ready", "ContainersReady", "PodScheduled", "PodReadyToStartContainers")
_NO_SPEC, _NO_STATUS, _NO_STATE = WireSpec(), WireStatus(), WireState()
_env = msgspec.json.Decoder(list[WireEnv] | None)
_tolerations = msgspec.json.Decoder(list[WireToleration])
_affinity = msgspec.json.Decoder(WireAffinity)
_labels = msgspec.json.Decoder(dict[BoundedText, BoundedText])


class PodFieldFilter(msgspec.Struct, frozen=True):
    """Annotations and environment variables to keep. All others are dropped while decoding."""

    annotations: frozenset[str] = frozenset()
    env: frozenset[str] = frozenset()


def pod_fact(raw: WirePod, keep: PodFieldFilter) -> PodFact:
    """Pod as a fact. Raise MsgspecError if a part is malformed."""
    meta, spec, status = raw.metadata, raw.spec or _NO_SPEC, raw.status or _NO_STATUS
    node_affinity, pod_affinity = affinity(bytes(spec.affinity))
    return PodFact(
        uid=meta.uid,
        name=meta.name,
        namespace=intern(meta.namespace or ""),
        resource_version=meta.resource_version,
        node=interned(spec.node_name),
        nominated_node=interned(status.nominated_node_name),
        phase=interned(status.phase),
        reason=interned(status.reason),
        message=truncated(status.message),
        created_at=parse_time(meta.creation_timestamp),
        started_at=parse_time(status.start_time),
        deletion_at=parse_time(meta.deletion_timestamp),
        deletion_grace_seconds=meta.deletion_grace_period_seconds,
        finalizers=tuple(meta.finalizers or ()),
        labels=shared_strings(meta.labels),
        annotations=_selected(meta.annotations, keep.annotations),
        env=_selected_env(spec, keep.env),
        owner=owner_of(meta.owner_references),
        priority=spec.priority,
        priority_class=interned(spec.priority_class_name),
        scheduler=interned(spec.scheduler_name),
        scheduling_gates=tuple([gate.name for gate in spec.scheduling_gates or ()]),
        qos=interned(status.qos_class),
        pod_ip=status.pod_ip or None,
        host_network=bool(spec.host_network),
        requests=_requests(raw, spec, status),
        node_selector=_node_selector(bytes(spec.node_selector)),
        node_affinity=node_affinity,
        pod_affinity=pod_affinity,
        tolerations=tolerations(bytes(spec.tolerations)),
        containers=_containers(spec),
        statuses=_statuses(spec, status),
        conditions=_conditions(status),
        volumes=volumes(spec.volumes) if spec.volumes else (),
        device_claims=_device_claims(spec, status) if spec.resource_claims else (),
    )


def _requests(raw: WirePod, spec: WireSpec, status: WireStatus) -> Amounts:
    """Requests of a pod, with what it asks for in annotations."""
    requests = pod_requests(spec, status)
    annotated = annotated_requests(raw.metadata.annotations, raw.metadata.labels, spec.scheduler_name)
    return requests | annotated if annotated else requests


def _device_claims(spec: WireSpec, status: WireStatus) -> tuple[PodClaimFact, ...]:
    """ResourceClaims of a pod, those from templates with the name of the claim that was created."""
    created = {claim.name: claim.resource_claim_name for claim in status.resource_claim_statuses or ()}
    return tuple(
        PodClaimFact(
            name=claim.name,
            claim=claim.resource_claim_name or created.get(claim.name),
            template=claim.resource_claim_template_name,
        )
        for claim in (spec.resource_claims or ())[:MAX_CLAIMS]
    )


def _selected(annotations: dict[str, str] | None, names: frozenset[str]) -> dict[str, str]:
    if not annotations or names.isdisjoint(annotations):
        return {}
    return {name: shorten_name(value, MAX_TEXT_CHARS) for name, value in annotations.items() if name in names}


def _selected_env(spec: WireSpec, names: frozenset[str]) -> dict[str, str]:
    """The environment variables with these names. An environment without any of them is not decoded."""
    variables: dict[str, str] = {}
    for container in spec.containers or ():
        encoded = bytes(container.env)
        for name in _quoted(names) if encoded else ():
            if name in encoded:
                variables |= {
                    env.name: shorten_name(env.value, MAX_TEXT_CHARS)
                    for env in _env.decode(encoded) or ()
                    if env.name in names and env.value
                }
                break
    return variables


@lru_cache(maxsize=16)
def _quoted(names: frozenset[str]) -> tuple[bytes, ...]:
    return tuple(f'"{name}"'.encode() for name in names)


def _containers(spec: WireSpec) -> tuple[PodContainerFact, ...]:
    """Init containers in execution order, then the others."""
    containers = [
        _container(bytes(c.resources), c.name, c.image, c.restart_policy, True, False)
        for c in spec.init_containers or ()
    ]
    containers += [
        _container(bytes(c.resources), c.name, c.image, None, False, _serves(c)) for c in spec.containers or ()
    ]
    return tuple(containers)


def _serves(container: WireContainer) -> bool:
    """Whether a container has a port, and a readiness probe over HTTP or gRPC."""
    if container.readiness_probe is ABSENT or container.ports is ABSENT:
        return False
    probe = bytes(container.readiness_probe)
    return bytes(container.ports)[:1] == b"[" and (b'"httpGet"' in probe or b'"grpc"' in probe)


@cached_if_small(16384)
def _container(
    raw_resources: bytes, name: str, image: str | None, restart_policy: str | None, init: bool, serves: bool
) -> PodContainerFact:
    requests, limits = resources(raw_resources)
    sidecar = init and restart_policy == "Always"
    return PodContainerFact(
        name=name, image=image, init=init, sidecar=sidecar, serves=serves, requests=requests, limits=limits
    )


def _conditions(status: WireStatus) -> tuple[ConditionFact, ...]:
    """Conditions; for a running pod, without those that are true of every one, which are never read."""
    raw = status.conditions
    if raw and status.phase == "Running":
        raw = [entry for entry in raw if entry.status != "True" or entry.type not in _TRUE_WHILE_RUNNING]
    return conditions(raw)


def _statuses(spec: WireSpec, status: WireStatus) -> tuple[ContainerStatusFact, ...]:
    sidecars = {container.name for container in spec.init_containers or () if container.restart_policy == "Always"}
    statuses = [
        _container_status(container, True, container.name in sidecars)
        for container in status.init_container_statuses or ()
    ]
    statuses += [_container_status(container, False, False) for container in status.container_statuses or ()]
    return tuple(statuses)


def _container_status(raw: WireContainerStatus, init: bool, sidecar: bool) -> ContainerStatusFact:
    name, state = _current(raw.state)
    ended = raw.last_state.terminated if raw.last_state is not None else None
    return ContainerStatusFact(
        name=intern(raw.name),
        init=init,
        sidecar=sidecar,
        started=bool(raw.started),
        state=name,
        reason=interned(state.reason),
        message=truncated(state.message),
        exit_code=state.exit_code,
        signal=state.signal,
        started_at=parse_time(state.started_at),
        finished_at=parse_time(state.finished_at),
        restart_count=raw.restart_count or 0,
        ready=bool(raw.ready),
        image_id=interned(raw.image_id),
        container_id=_container_id(raw.container_id),
        last=_termination(ended) if ended is not None else None,
    )


def _current(states: WireStates | None) -> tuple[str | None, WireState]:
    if states is None:
        return None, _NO_STATE
    if states.running is not None:
        return "running", states.running
    if states.terminated is not None:
        return "terminated", states.terminated
    return ("waiting", states.waiting) if states.waiting is not None else (None, _NO_STATE)


def _termination(raw: WireState) -> TerminationFact:
    return TerminationFact(
        reason=interned(raw.reason),
        message=truncated(raw.message),
        exit_code=raw.exit_code,
        signal=raw.signal,
        started_at=parse_time(raw.started_at),
        finished_at=parse_time(raw.finished_at),
        container_id=_container_id(raw.container_id),
    )


def _container_id(reference: str | None) -> str | None:
    """The id without the `docker://` or `containerd://` before it."""
    return reference.rpartition("://")[2] if reference else None


@cached_if_small(4096)
def tolerations(raw: bytes) -> tuple[TolerationFact, ...]:
    """`spec.tolerations` as facts."""
    if raw in EMPTY:
        return ()
    return tuple(
        TolerationFact(
            key=toleration.key or None,
            operator=toleration.operator or "Equal",
            value=toleration.value,
            effect=toleration.effect or None,
            seconds=toleration.toleration_seconds,
        )
        for toleration in _tolerations.decode(raw)
    )


@cached_if_small(4096)
def _node_selector(raw: bytes) -> dict[str, str]:
    return _labels.decode(raw) if raw not in EMPTY else {}


@cached_if_small(4096)
def affinity(raw: bytes) -> tuple[NodeTerms, bool]:
    """Required node terms of `spec.affinity`, and whether pod affinity is required too."""
    if raw in EMPTY:
        return (), False
    decoded = _affinity.decode(raw)
    required = decoded.node_affinity.required if decoded.node_affinity else None
    terms = required.node_selector_terms if required else None
    groups = (decoded.pod_affinity, decoded.pod_anti_affinity)
    return tuple(
        (*_requirements(term.match_expressions, False), *_requirements(term.match_fields, True)) for term in terms or ()
    ), any(group is not None and group.required for group in groups)


def _requirements(expressions: list[WireExpression] | None, field: bool) -> Iterable[NodeRequirementFact]:
    for expression in expressions or ():
        yield NodeRequirementFact(
            key=expression.key, operator=expression.operator, values=tuple(expression.values or ()), field=field
        )
