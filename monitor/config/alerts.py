"""Settings of alerts: receivers, routes, timing and language.

daemon:
  alerts:
    receivers: [https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=…]
    routes:
      - {match: {severity: critical}, receivers: [wecom], repeat: 1h}
      - {match: {user: '~zhang|li'}, receivers: [wecom], quiet_hours: 22:00-08:00}
    rules:
      image_pull: {for: 10s, resolve_after: 1m}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from monitor.alert.lifecycle import GROUP_BY
from monitor.alert.matchers import known_label
from monitor.alert.owner_preferences import PERSONAL_PREFIX, OwnerBook
from monitor.alert.receivers.base import OwnerContact, ReceiverSettings
from monitor.alert.routes import Route
from monitor.alert.windows import MaintenanceWindow
from monitor.base.localtime import local_timezone
from monitor.base.units import quoted
from monitor.config.derive import build
from monitor.config.job_results import JobResultsConfig
from monitor.config.owners import MAX_WEBHOOKS, OwnerConfig, OwnerDefaultsConfig, OwnerLabelsConfig, read_owners
from monitor.config.receivers import (
    Language,
    Receivers,
    Secret,
    TextFile,
    by_name,
    check_http_url,
    check_receivers,
)
from monitor.config.routes import AlertRulesConfig, MaintenanceConfig, RouteConfig, Zone
from monitor.config.types import AbsolutePath, Cron, Names, NonEmpty, SecretSection, Section, Span, check_with


class HeartbeatConfig(Section):
    """A URL that is requested every `interval` as long as the cluster is being evaluated."""

    url: Secret | None = None
    url_file: TextFile | None = None
    interval: Span = 60.0

    def check(self) -> None:
        _ = self.address

    @property
    def address(self) -> str:
        return check_http_url(self.read_secret("url"))


class DigestConfig(Section):
    """A summary on a cron schedule; without `receivers`, to all of them."""

    cron: Cron
    timezone: Zone | None = None
    receivers: Names | None = None


class AlertmanagerConfig(SecretSection):
    """An Alertmanager whose silences apply here as well."""

    url: Secret
    ca_file: TextFile | None = None
    verify_tls: bool = True

    def check(self) -> None:
        check_http_url(self.url.get_secret_value())


class CallbackConfig(SecretSection):
    """Receivers of the notifications that Alertmanager posts to /v1/alertmanager, and the token it has to send."""

    receivers: Names | None = None


class AlertsConfig(Section):
    """Receivers, routes, timing and language of alerts."""

    receivers: Receivers = ()
    language: Language = "en"
    cluster: NonEmpty | None = None
    page: str | None = None
    timezone: Zone = Field(default_factory=local_timezone)
    routes: tuple[RouteConfig, ...] = ()
    rules: AlertRulesConfig = AlertRulesConfig()
    group_by: Annotated[Names, check_with(lambda names: [known_label(name) for name in names])] = GROUP_BY
    maintenance: tuple[MaintenanceConfig, ...] = ()
    owner_defaults: OwnerDefaultsConfig = OwnerDefaultsConfig()
    owners_file: Annotated[AbsolutePath, check_with(read_owners)] | None = None
    owner_labels: OwnerLabelsConfig | None = None
    owners: dict[str, OwnerConfig] = Field(default_factory=dict)
    heartbeat: HeartbeatConfig | None = None
    digest: DigestConfig | None = None
    job_results: JobResultsConfig | None = None
    alertmanager: AlertmanagerConfig | None = None
    callback: CallbackConfig = CallbackConfig()

    @field_validator("page")
    @classmethod
    def _check_page(cls, page: str | None) -> str | None:
        if page is not None and not page.startswith(("https://", "http://")):
            raise ValueError(f"{quoted(page)} is not a page's address; write for example https://gpuwarden.lab")
        return page.rstrip("/") if page is not None else None

    @field_validator("routes")
    @classmethod
    def _check_routes(cls, routes: tuple[RouteConfig, ...], info: ValidationInfo) -> tuple[RouteConfig, ...]:
        for number, route in enumerate(routes, 1):
            _check_names(info, route.receivers, f"route {number} leads to ")
        return routes

    @field_validator("owners")
    @classmethod
    def _check_owners(cls, owners: dict[str, OwnerConfig], info: ValidationInfo) -> dict[str, OwnerConfig]:
        known = {**_owners_of(info.data.get("owners_file")), **owners}
        count = sum(owner.webhook is not None for owner in known.values())
        if count > MAX_WEBHOOKS:
            raise ValueError(
                f"{count} owners have a webhook; at most {MAX_WEBHOOKS} can, mention the others in a group"
            )
        return owners

    @field_validator("digest", "job_results", "callback")
    @classmethod
    def _check_section(cls, section: Any, info: ValidationInfo) -> Any:
        _check_names(info, (section and section.receivers) or ())
        return section

    @field_validator("callback")
    @classmethod
    def _check_loop(cls, callback: CallbackConfig, info: ValidationInfo) -> CallbackConfig:
        known = by_name(info.data.get("receivers", ()))
        for name in callback.receivers or ():
            if name in known and known[name].effective_kind == "alertmanager":
                raise ValueError(f"{name!r} is an Alertmanager: it would be told what it tells us, for ever")
        return callback

    def effective_routes(self, *, shared: bool = False) -> tuple[Route, ...]:
        """All routes. The last one takes alerts that match no other to every receiver, so that none is lost.

        If the alerts are `shared` by replicas, it takes them to Alertmanager only, which deduplicates them.
        """
        routes = tuple(route.route(self.timezone) for route in self.routes)
        named = by_name(self.receivers).items()
        rest = (name for name, receiver in named if not shared or receiver.effective_kind == "alertmanager")
        return (*routes, Route(receivers=tuple(rest)))

    def known_owners(self) -> dict[str, OwnerConfig]:
        """Owners of the file and of the configuration, which takes precedence."""
        return {**_owners_of(self.owners_file), **self.owners}

    def annotations(self) -> tuple[str, ...]:
        """Names of annotations that may say how to reach users."""
        keys = self.owner_labels.model_dump() if self.owner_labels is not None else {}
        return tuple(key for key in keys.values() if key)

    def owner_book(self) -> OwnerBook:
        """Which messages owners want."""
        owners, defaults = self.known_owners(), self.owner_defaults
        return OwnerBook(
            by_user={user: owner.preferences(defaults, self.timezone) for user, owner in owners.items()},
            others=OwnerConfig().preferences(defaults, self.timezone),
            personal=frozenset(user for user, owner in owners.items() if owner.webhook is not None),
        )

    def windows(self) -> tuple[MaintenanceWindow, ...]:
        return tuple(window.window(self.timezone) for window in self.maintenance)

    def callback_receivers(self) -> tuple[str, ...]:
        """Receivers of the notifications that Alertmanager posts here."""
        return self.direct_receivers() if self.callback.receivers is None else self.callback.receivers

    def direct_receivers(self) -> tuple[str, ...]:
        """Names of all receivers except Alertmanagers."""
        return tuple(
            name for name, config in by_name(self.receivers).items() if config.effective_kind != "alertmanager"
        )

    def receiver_settings(self, page: str) -> tuple[ReceiverSettings, ...]:
        """Settings of each receiver; `page` is the page's default URL. Raise ValueError if a file is unreadable."""
        common = self._common_settings(page)
        return tuple(config.settings(name, **common) for name, config in by_name(self.receivers).items())

    def personal_settings(self, page: str) -> tuple[ReceiverSettings, ...]:
        """Settings of the webhooks of single owners."""
        common, owners = self._common_settings(page), self.known_owners().items()
        personal = ((user, owner.receiver()) for user, owner in owners if owner.webhook is not None)
        return tuple(config.settings(f"{PERSONAL_PREFIX}{user}", **common) for user, config in personal)

    def _common_settings(self, page: str) -> dict[str, Any]:
        return {
            "language": self.language,
            "page": self.page or page,
            "cluster": self.cluster,
            "timezone": self.timezone,
            "owners": {user: build(OwnerContact, owner) for user, owner in self.known_owners().items()},
        }


def _owners_of(path: str | None) -> Mapping[str, OwnerConfig]:
    return {} if path is None else read_owners(path)


def _check_names(info: ValidationInfo, names: tuple[str, ...], prefix: str = "") -> None:
    if "receivers" in info.data:  # otherwise they are invalid themselves
        check_receivers(names, info.data["receivers"], prefix, "there are no receivers")
