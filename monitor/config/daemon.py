"""The settings of the central daemon, and their defaults."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import msgspec
from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from monitor.base.peer_http import PeerTls
from monitor.cluster.agents.poller import PollSettings
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.platforms import USER_LABELS, PlatformRule, check_rule
from monitor.config.access import AccessConfig
from monitor.config.agent import default_state_dir
from monitor.config.alerts import AlertsConfig
from monitor.config.cleanup import CleanupConfig
from monitor.config.lease import LeaseConfig, Name, fits_the_rest, pod_namespace
from monitor.config.prometheus import PrometheusConfig
from monitor.config.report import ReportConfig, goes_somewhere
from monitor.config.rules import RulesConfig
from monitor.config.services import ServiceConfig, parse_service, unlike_names
from monitor.config.types import AbsolutePath, Address, Duration, Listen, SecretSection, Section, Size, Span

LIMITS = StateLimits()


class AgentsTlsConfig(Section):
    """For agents that speak TLS (agent.actions.tls): their CA and, if they want one of us, our certificate.

    `server_name` is a name that the certificates of all agents have; without it each needs one for its own address.
    """

    ca_file: AbsolutePath
    cert_file: AbsolutePath | None = None
    key_file: AbsolutePath | None = None
    server_name: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _a_certificate_has_a_key(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("give both cert_file and key_file, or neither")
        return self


class AgentsConfig(SecretSection):
    """How agents are found and asked. `static` names them; otherwise pods with the label are them.

    They get our token and are believed, and a label can be given to any pod: so they are looked for in one namespace.
    """

    static: tuple[Address, ...] = ()
    label: str = "app.kubernetes.io/name=gpuwarden-agent"
    namespace: Name | None = Field(default_factory=pod_namespace)
    port: Annotated[int, Field(ge=1, le=65535)] = 9835
    interval: Span = 10.0
    limit: Span = 5.0
    crew: Annotated[int, Field(ge=1, le=256)] = 32
    tls: AgentsTlsConfig | None = None

    def settings(self) -> PollSettings:
        """Return how agents are asked. Raise ValueError if the token's file is gone."""
        tls = PeerTls(**self.tls.model_dump()) if self.tls else None
        return PollSettings(interval=self.interval, limit=self.limit, crew=self.crew, token=self.read_token(), tls=tls)


def parse_yes_no(value: object) -> object:
    """`true` and `false` mean yes and no."""
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


class KubernetesConfig(Section):
    """Which cluster is watched. `auto` watches one if credentials are found: a kubeconfig, or the pod's own."""

    enabled: Annotated[Literal["auto", "yes", "no"], BeforeValidator(parse_yes_no)] = "auto"
    kubeconfig: str | None = None
    context: str | None = None


def parse_words(value: object) -> object:
    """`label:team` is short for `[label:team]`."""
    return (value,) if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], BeforeValidator(parse_words)]


class PlatformConfig(Section):
    """Where a platform writes on its pods whose they are. The words are explained in `monitor.cluster.platforms`."""

    name: Annotated[str, Field(min_length=1)]
    when: Words = ()
    user: Words = ()
    job: Words = ()
    role: Words = ()
    index: Words = ()
    queue: Words = ()
    kind: str | None = None

    @model_validator(mode="after")
    def _selectors_are_understood(self) -> Self:
        check_rule(self.rule())
        return self

    def rule(self) -> PlatformRule:
        return msgspec.convert(self.model_dump(), PlatformRule)


class LimitsConfig(Section):
    """From when on something counts in the view of a card."""

    stale_after: Duration = LIMITS.stale_after
    wedged_after: Duration = LIMITS.wedged_after
    terminating_grace: Duration = LIMITS.terminating_grace
    settle: Duration = LIMITS.settle
    idle_after: Duration = LIMITS.idle_after
    xid_hold: Duration = LIMITS.xid_hold
    ghost_bytes: Size = LIMITS.ghost_bytes
    faulty_xids: frozenset[int] = LIMITS.faulty_xids

    def limits(self) -> StateLimits:
        return StateLimits(**self.model_dump())


Service = Annotated[ServiceConfig, BeforeValidator(parse_service)]


class DaemonConfig(SecretSection):
    """The central daemon and its page. Without a token and without users, only this machine may change anything."""

    listen: Address = Listen(host="127.0.0.1", port=9836)
    state: AbsolutePath = Field(default_factory=default_state_dir)
    cycle: Span = 15.0
    agents: AgentsConfig = AgentsConfig()
    prometheus: PrometheusConfig | None = None
    kubernetes: KubernetesConfig = KubernetesConfig()
    gpu_resource: Annotated[str, Field(min_length=1)] = "nvidia.com/gpu"
    gpu: LimitsConfig = LimitsConfig()
    platforms: tuple[PlatformConfig, ...] = ()
    user_labels: tuple[str, ...] = USER_LABELS
    services: Annotated[tuple[Service, ...], AfterValidator(unlike_names)] = ()
    rules: RulesConfig = RulesConfig()
    alerts: AlertsConfig = AlertsConfig()
    cleanup: CleanupConfig = CleanupConfig()
    report: ReportConfig | None = None
    access: AccessConfig = AccessConfig()
    lease: LeaseConfig | None = None

    _lease_fits_the_rest = field_validator("lease")(fits_the_rest)
    _report_goes_somewhere = field_validator("report")(goes_somewhere)
