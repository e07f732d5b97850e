"""The settings of alerts: who is told what, when, how often and in which language.

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

import os
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from monitor.alert.lifecycle import GROUP_BY
from monitor.alert.matchers import known_label
from monitor.alert.receivers.base import ReceiverSettings
from monitor.alert.routes import Route
from monitor.alert.windows import MaintenanceWindow
from monitor.base.cron import cron_trigger, zone
from monitor.base.text import unknown
from monitor.base.units import quoted
from monitor.config.receivers import (
    Language,
    OwnerConfig,
    ReceiverConfig,
    Secret,
    TextFile,
    given_secret,
    http_address,
    named,
    parse_receiver,
    parse_words,
    unlike_names,
)
from monitor.config.routes import AlertRulesConfig, MaintenanceConfig, Names, RouteConfig, Zone
from monitor.config.types import SecretSection, Section, Span


def local_timezone(link: str = "/etc/localtime") -> str:
    """Return the name of this machine's time zone; UTC if it has none that is known by name."""
    for name in (os.environ.get("TZ", "").removeprefix(":"), os.path.realpath(link).rpartition("/zoneinfo/")[2]):
        try:
            if name:
                return str(zone(name))
        except ValueError:
            continue
    return "UTC"


class HeartbeatConfig(Section):
    """An address that is asked every `interval` for as long as somebody really looks at the cluster."""

    url: Secret | None = None
    url_file: TextFile | None = None
    interval: Span = 60.0

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        _ = self.address
        return self

    @property
    def address(self) -> str:
        """Return the address, read from its file if that is where it is. Raise ValueError."""
        return http_address(given_secret(self, "url"))


class DigestConfig(Section):
    """A summary by a crontab line: to these receivers, or to all."""

    cron: str
    timezone: Zone | None = None
    receivers: Names | None = None

    @field_validator("cron")
    @classmethod
    def _can_be_understood(cls, cron: str) -> str:
        cron_trigger(cron, "UTC")
        return cron


class AlertmanagerConfig(SecretSection):
    """An Alertmanager whose silences are respected here."""

    url: Secret
    ca_file: TextFile | None = None
    verify_tls: bool = True

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        http_address(self.url.get_secret_value())
        return self


class CallbackConfig(SecretSection):
    """Who is told what an Alertmanager tells us at /v1/alertmanager, and the token that it has to know."""

    receivers: Names | None = None


Receiver = Annotated[ReceiverConfig, BeforeValidator(parse_receiver)]


class AlertsConfig(Section):
    """Who is told what, when and how."""

    receivers: Annotated[tuple[Receiver, ...], BeforeValidator(parse_words), AfterValidator(unlike_names)] = ()
    language: Language = "en"
    cluster: Annotated[str, Field(min_length=1)] | None = None
    page: str | None = None
    timezone: Zone = Field(default_factory=local_timezone)
    routes: tuple[RouteConfig, ...] = ()
    rules: AlertRulesConfig = AlertRulesConfig()
    group_by: Names = GROUP_BY
    maintenance: tuple[MaintenanceConfig, ...] = ()
    owners: dict[str, OwnerConfig] = Field(default_factory=dict)
    heartbeat: HeartbeatConfig | None = None
    digest: DigestConfig | None = None
    alertmanager: AlertmanagerConfig | None = None
    callback: CallbackConfig = CallbackConfig()

    @field_validator("page")
    @classmethod
    def _an_address(cls, page: str | None) -> str | None:
        if page is not None and not page.startswith(("https://", "http://")):
            raise ValueError(f"{quoted(page)} is not a page's address; write for example https://gpuwarden.lab")
        return page.rstrip("/") if page is not None else None

    @field_validator("group_by")
    @classmethod
    def _known_labels(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(known_label(name) for name in names)

    @field_validator("routes")
    @classmethod
    def _routes_lead_somewhere(cls, routes: tuple[RouteConfig, ...], info: ValidationInfo) -> tuple[RouteConfig, ...]:
        for number, route in enumerate(routes, 1):
            _check_names(info, route.receivers, f"route {number} leads to ")
        return routes

    @field_validator("digest", "callback")
    @classmethod
    def _somebody_is_there(cls, section: Any, info: ValidationInfo) -> Any:
        _check_names(info, (section and section.receivers) or (), "")
        return section

    @field_validator("callback")
    @classmethod
    def _not_back_again(cls, callback: CallbackConfig, info: ValidationInfo) -> CallbackConfig:
        known = named(info.data.get("receivers", ()))
        for name in callback.receivers or ():
            if name in known and known[name].real_kind == "alertmanager":
                raise ValueError(f"{name!r} is an Alertmanager: it would be told what it tells us, for ever")
        return callback

    def real_routes(self, *, shared: bool = False) -> tuple[Route, ...]:
        """Return the routes. What meets none of them goes to everybody: no alert is lost for want of a route.

        If it is `shared` by replicas that all find the same, everybody is Alertmanager, which tells the others once.
        """
        routes = tuple(route.route(self.timezone) for route in self.routes)
        known = named(self.receivers).items()
        everybody = (name for name, each in known if not shared or each.real_kind == "alertmanager")
        return (*routes, Route(receivers=tuple(everybody)))

    def windows(self) -> tuple[MaintenanceWindow, ...]:
        return tuple(window.window(self.timezone) for window in self.maintenance)

    def called_back(self) -> tuple[str, ...]:
        """Return who is told what an Alertmanager tells us."""
        if self.callback.receivers is not None:
            return self.callback.receivers
        return tuple(name for name, each in named(self.receivers).items() if each.real_kind != "alertmanager")

    def receiver_settings(self, page: str) -> tuple[ReceiverSettings, ...]:
        """Given the address of our page, return what each receiver is told. Raise ValueError if a file is gone."""
        common = {
            "language": self.language,
            "page": self.page or page,
            "cluster": self.cluster,
            "timezone": self.timezone,
            "owners": {user: owner.owner() for user, owner in self.owners.items()},
        }
        return tuple(each.settings(name, **common) for name, each in named(self.receivers).items())


def _check_names(info: ValidationInfo, names: tuple[str, ...], before: str) -> None:
    """Raise ValueError if there is no receiver of one of these names. If the receivers are wrong, that is enough."""
    if "receivers" not in info.data:
        return
    known = named(info.data["receivers"])
    for name in names:
        if name not in known:
            hint = unknown("receiver", name, known) if known else "there are no receivers"
            raise ValueError(f"{before}{name!r}: {hint}")
