"""Settings of the central daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from monitor.base.peer_http import PeerTls
from monitor.base.text import unknown
from monitor.base.units import quoted
from monitor.cluster.agents.poller import PollSettings
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.platforms import USER_LABELS, PlatformRule, all_rules, check_rule
from monitor.config.access import AccessConfig
from monitor.config.agent import default_state_dir
from monitor.config.alerts import AlertsConfig
from monitor.config.cleanup import CleanupConfig
from monitor.config.cost import CostConfig
from monitor.config.derive import DerivedSection, build
from monitor.config.history import HistoryConfig
from monitor.config.lease import KubernetesName, LeaseConfig, check_lease, pod_namespace
from monitor.config.receivers import check_receivers
from monitor.config.report import ReportConfig, check_report
from monitor.config.routes import Zone
from monitor.config.rules import RulesConfig
from monitor.config.services import UNIQUE_NAMES, ServiceConfig
from monitor.config.types import (
    AbsolutePath,
    Address,
    Duration,
    Listen,
    Names,
    NonEmpty,
    SecretSection,
    Section,
    Size,
    Span,
    short_for,
)
from monitor.facts.prices import GpuPrices


class AgentsTlsConfig(Section):
    """TLS towards agents with agent.actions.tls: their CA and, if they require one, a client certificate.

    `server_name` is a name in the certificates of all agents; without it each certificate is for its own address.
    """

    ca_file: AbsolutePath
    cert_file: AbsolutePath | None = None
    key_file: AbsolutePath | None = None
    server_name: NonEmpty | None = None

    def check(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("give both cert_file and key_file, or neither")


class AgentsConfig(SecretSection):
    """How agents are discovered and polled: the addresses in `static`, otherwise the pods with the label.

    Only one namespace is searched: agents receive the token and are trusted, and any pod can carry the label.
    """

    static: tuple[Address, ...] = ()
    label: str = "app.kubernetes.io/name=gpuwarden-agent"
    namespace: KubernetesName | None = Field(default_factory=pod_namespace)
    port: Annotated[int, Field(ge=1, le=65535)] = 9835
    interval: Span = 10.0
    limit: Span = 5.0
    crew: Annotated[int, Field(ge=1, le=256)] = 32
    tls: AgentsTlsConfig | None = None

    def settings(self) -> PollSettings:
        """Settings of the poller. Raise ValueError if the token file is unreadable."""
        tls = build(PeerTls, self.tls) if self.tls else None
        return build(PollSettings, self, token=self.read_token(), tls=tls)


def _parse_bool(value: object) -> object:
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value


class KubernetesConfig(Section):
    """The cluster to watch. `auto` watches one if credentials exist: a kubeconfig, or the pod's service account."""

    enabled: Annotated[Literal["auto", "yes", "no"], BeforeValidator(_parse_bool)] = "auto"
    kubeconfig: str | None = None
    context: str | None = None


class PlatformConfig(DerivedSection, settings=PlatformRule, types={tuple[str, ...]: Names}, omit=("trusted",)):
    """Labels and annotations in which a platform records the owner of a pod; see `monitor.cluster.selectors`."""

    name: NonEmpty

    def check(self) -> None:
        check_rule(self.rule())

    def rule(self) -> PlatformRule:
        return build(PlatformRule, self)


class GpuLimitsConfig(DerivedSection, settings=StateLimits, types={float: Duration, int: Size}):
    """Thresholds of the GPU states."""

    def limits(self) -> StateLimits:
        return build(StateLimits, self)


class DaemonConfig(SecretSection):
    """The central daemon and its page. Reading needs no authentication on the loopback address; changes always do."""

    removed_settings: ClassVar[Mapping[str, str]] = {
        "prometheus": "was removed: the daemon polls the agents itself, also in large clusters; delete this section"
    }

    listen: Address = Listen(host="127.0.0.1", port=9836)
    state: AbsolutePath = Field(default_factory=default_state_dir)
    cycle: Span = 15.0
    timezone: Zone | None = None
    agents: AgentsConfig = AgentsConfig()
    kubernetes: KubernetesConfig = KubernetesConfig()
    gpu_resource: NonEmpty = "nvidia.com/gpu"
    gpu: GpuLimitsConfig = GpuLimitsConfig()
    platforms: tuple[PlatformConfig, ...] = ()
    user_labels: tuple[str, ...] = USER_LABELS
    trusted_selectors: Names = ()
    inference: bool = True
    services: Annotated[tuple[Annotated[ServiceConfig, short_for("url")], ...], UNIQUE_NAMES] = ()
    rules: RulesConfig = RulesConfig()
    alerts: AlertsConfig = AlertsConfig()
    cleanup: CleanupConfig = CleanupConfig()
    report: ReportConfig | None = None
    cost: CostConfig | None = None
    history: HistoryConfig = HistoryConfig()
    access: AccessConfig = AccessConfig()
    lease: LeaseConfig | None = None

    @field_validator("trusted_selectors")
    @classmethod
    def _check_trusted_selectors(cls, selectors: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "platforms" not in info.data or "user_labels" not in info.data:
            return selectors  # they are invalid themselves
        rules = all_rules((platform.rule() for platform in info.data["platforms"]), info.data["user_labels"])
        known = {text for rule in rules for text in rule.user}
        for text in selectors:
            if text not in known:
                raise ValueError(f"{quoted(text)} names no user of a pod; {unknown('selector', text, known)}")
        return selectors

    @field_validator("alerts")
    @classmethod
    def _in_one_zone(cls, alerts: AlertsConfig, info: ValidationInfo) -> AlertsConfig:
        """`alerts.timezone` is the older name of `timezone`."""
        timezone = info.data.get("timezone")
        if timezone is None or timezone == alerts.timezone:
            return alerts
        if "timezone" in alerts.model_fields_set:
            raise ValueError(
                f"timezone is {quoted(alerts.timezone)}, but daemon.timezone is {quoted(timezone)}; "
                "write daemon.timezone only"
            )
        return alerts.model_copy(update={"timezone": timezone})

    @property
    def zone(self) -> str:
        """Time zone of schedules without their own, and of times in text: the configured one, or the machine's."""
        return self.alerts.timezone

    @property
    def prices(self) -> GpuPrices | None:
        """Prices of GPUs, if there are any."""
        return self.cost.settings() if self.cost is not None else None

    def platform_rules(self) -> tuple[PlatformRule, ...]:
        """Rules that identify pods, in order of precedence."""
        extra = (platform.rule() for platform in self.platforms)
        return all_rules(extra, self.user_labels, self.trusted_selectors, inference=self.inference)

    @field_validator("cleanup")
    @classmethod
    def _check_notices(cls, cleanup: CleanupConfig, info: ValidationInfo) -> CleanupConfig:
        if "alerts" in info.data:  # otherwise they are invalid themselves
            for policy in cleanup.policies:
                absent = "daemon.alerts has no receivers"
                check_receivers(policy.receivers, info.data["alerts"].receivers, f"{policy.name}: ", absent)
        return cleanup

    _check_lease = field_validator("lease")(check_lease)
    _check_report = field_validator("report")(check_report)
