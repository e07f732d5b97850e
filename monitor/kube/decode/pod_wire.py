"""Wire types of pods, limited to the fields that are read."""

from __future__ import annotations

import msgspec

from monitor.facts.base import BoundedText, Identifier
from monitor.kube.decode.values import RawAmounts, Wire, WireCondition, WireMeta

ABSENT = msgspec.Raw()


class WireContainer(Wire):
    """One of `spec.containers`."""

    name: BoundedText = ""
    image: BoundedText | None = None
    restart_policy: BoundedText | None = None
    env: msgspec.Raw = ABSENT
    resources: msgspec.Raw = ABSENT
    ports: msgspec.Raw = ABSENT
    readiness_probe: msgspec.Raw = ABSENT


class WireGate(Wire):
    """One of `spec.schedulingGates`."""

    name: BoundedText = ""


class WirePodClaim(Wire):
    """One of `spec.resourceClaims` or `status.resourceClaimStatuses`."""

    name: BoundedText = ""
    resource_claim_name: Identifier | None = None
    resource_claim_template_name: Identifier | None = None


class WireSpec(Wire):
    """`spec`."""

    node_name: Identifier | None = None
    priority: int | None = None
    priority_class_name: BoundedText | None = None
    scheduler_name: BoundedText | None = None
    scheduling_gates: list[WireGate] | None = None
    host_network: bool | None = None
    node_selector: msgspec.Raw = ABSENT
    affinity: msgspec.Raw = ABSENT
    tolerations: msgspec.Raw = ABSENT
    resources: msgspec.Raw = ABSENT
    overhead: msgspec.Raw = ABSENT
    containers: list[WireContainer] | None = None
    init_containers: list[WireContainer] | None = None
    volumes: list[msgspec.Raw] | None = None
    resource_claims: list[WirePodClaim] | None = None


class WireState(Wire):
    """Content of `state.waiting`, `.running` or `.terminated`."""

    reason: BoundedText | None = None
    message: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    started_at: BoundedText | None = None
    finished_at: BoundedText | None = None
    container_id: BoundedText | None = msgspec.field(name="containerID", default=None)


class WireStates(Wire):
    """`state` and `lastState`; at most one field is set."""

    waiting: WireState | None = None
    running: WireState | None = None
    terminated: WireState | None = None


class WireContainerStatus(Wire):
    """One of `status.containerStatuses`."""

    name: BoundedText = ""
    ready: bool | None = None
    started: bool | None = None
    restart_count: int | None = None
    image_id: BoundedText | None = msgspec.field(name="imageID", default=None)
    container_id: BoundedText | None = msgspec.field(name="containerID", default=None)
    state: WireStates | None = None
    last_state: WireStates | None = None
    resources: msgspec.Raw = ABSENT
    allocated_resources: msgspec.Raw = ABSENT


class WireStatus(Wire):
    """`status`."""

    phase: BoundedText | None = None
    reason: BoundedText | None = None
    message: str | None = None
    nominated_node_name: BoundedText | None = None
    pod_ip: BoundedText | None = msgspec.field(name="podIP", default=None)
    start_time: BoundedText | None = None
    qos_class: BoundedText | None = None
    conditions: list[WireCondition] | None = None
    container_statuses: list[WireContainerStatus] | None = None
    init_container_statuses: list[WireContainerStatus] | None = None
    resource_claim_statuses: list[WirePodClaim] | None = None


class WirePod(Wire):
    """A pod."""

    metadata: WireMeta
    spec: WireSpec | None = None
    status: WireStatus | None = None


class WireEnv(Wire):
    """One of `env`. Values from secrets are not included."""

    name: BoundedText = ""
    value: str | None = None  # only a few are kept, and cut then


class WireResources(Wire):
    """`resources`."""

    requests: RawAmounts = None
    limits: RawAmounts = None


class WireToleration(Wire):
    """One of `spec.tolerations`."""

    key: BoundedText | None = None
    operator: BoundedText | None = None
    value: BoundedText | None = None
    effect: BoundedText | None = None
    toleration_seconds: float | None = None


class WireExpression(Wire):
    """One of `matchExpressions` or `matchFields`."""

    key: BoundedText
    operator: BoundedText
    values: list[BoundedText] | None = None


class WireTerm(Wire):
    """One of `nodeSelectorTerms`."""

    match_expressions: list[WireExpression] | None = None
    match_fields: list[WireExpression] | None = None


class WireRequired(Wire):
    """`requiredDuringSchedulingIgnoredDuringExecution` of nodes."""

    node_selector_terms: list[WireTerm] | None = None


class WireNodeAffinity(Wire):
    """`affinity.nodeAffinity`."""

    required: WireRequired | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class WirePodAffinity(Wire):
    """`affinity.podAffinity` and `.podAntiAffinity`: whether anything is required."""

    required: list[msgspec.Raw] | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class WireAffinity(Wire):
    """`affinity`."""

    node_affinity: WireNodeAffinity | None = None
    pod_affinity: WirePodAffinity | None = None
    pod_anti_affinity: WirePodAffinity | None = None
