"""Wire types of pods, limited to the fields that are read."""

from __future__ import annotations

import msgspec

from monitor.kube.decode.values import RawAmounts, Wire, WireCondition, WireMeta

ABSENT = msgspec.Raw()


class WireContainer(Wire):
    """One of `spec.containers`."""

    name: str = ""
    image: str | None = None
    restart_policy: str | None = None
    env: msgspec.Raw = ABSENT
    resources: msgspec.Raw = ABSENT


class WireGate(Wire):
    """One of `spec.schedulingGates`."""

    name: str = ""


class WireSpec(Wire):
    """`spec`."""

    node_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[WireGate] | None = None
    host_network: bool | None = None
    node_selector: dict[str, str] | None = None
    affinity: msgspec.Raw = ABSENT
    tolerations: msgspec.Raw = ABSENT
    resources: msgspec.Raw = ABSENT
    overhead: msgspec.Raw = ABSENT
    containers: list[WireContainer] | None = None
    init_containers: list[WireContainer] | None = None
    volumes: list[msgspec.Raw] | None = None


class WireState(Wire):
    """Content of `state.waiting`, `.running` or `.terminated`."""

    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    started_at: str | None = None
    finished_at: str | None = None


class WireStates(Wire):
    """`state` and `lastState`; at most one field is set."""

    waiting: WireState | None = None
    running: WireState | None = None
    terminated: WireState | None = None


class WireContainerStatus(Wire):
    """One of `status.containerStatuses`."""

    name: str = ""
    ready: bool | None = None
    restart_count: int | None = None
    image_id: str | None = msgspec.field(name="imageID", default=None)
    container_id: str | None = msgspec.field(name="containerID", default=None)
    state: WireStates | None = None
    last_state: WireStates | None = None


class WireStatus(Wire):
    """`status`."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    nominated_node_name: str | None = None
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    start_time: str | None = None
    qos_class: str | None = None
    conditions: list[WireCondition] | None = None
    container_statuses: list[WireContainerStatus] | None = None
    init_container_statuses: list[WireContainerStatus] | None = None


class WirePod(Wire):
    """A pod."""

    metadata: WireMeta
    spec: WireSpec | None = None
    status: WireStatus | None = None


class WireEnv(Wire):
    """One of `env`. Values from secrets are not included."""

    name: str = ""
    value: str | None = None


class WireResources(Wire):
    """`resources`."""

    requests: RawAmounts = None
    limits: RawAmounts = None


class WireToleration(Wire):
    """One of `spec.tolerations`."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: float | None = None


class WireExpression(Wire):
    """One of `matchExpressions` or `matchFields`."""

    key: str
    operator: str
    values: list[str] | None = None


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
