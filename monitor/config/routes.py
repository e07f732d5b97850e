"""Settings of routes, maintenance windows and the timing of each rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, create_model

from monitor.alert.lifecycle import AlertTiming, AlertTimings
from monitor.alert.matchers import known_matchers, matchers_of
from monitor.alert.routes import Route
from monitor.alert.windows import MaintenanceWindow, QuietHours
from monitor.base.localtime import zone
from monitor.base.units import quoted
from monitor.config.derive import build
from monitor.config.types import Duration, Names, Section, Span
from monitor.detect.meta import META_RULE_NAMES
from monitor.detect.rules import RULES

SIGNS = (("!~", "!~"), ("~", "=~"), ("!", "!="), ("", "="))  # prefix of a value -> operator
DEFAULT, ROUTE = AlertTiming(), Route(receivers=())


def parse_match(value: object) -> object:
    """`{severity: critical, user: ~zhang|li}` is short for `[severity=critical, "user=~zhang|li"]`."""
    if isinstance(value, dict):
        return [_condition(str(name), item) for name, item in value.items()]
    return [value] if isinstance(value, str) else value


def _condition(name: str, value: object) -> str:
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    if text is None:
        raise ValueError(f"{name}: {quoted(value)} is not a label's value; write text, or '~pattern'")
    sign, op = next((sign, op) for sign, op in SIGNS if text.startswith(sign))
    return f"{name}{op}{text.removeprefix(sign)}"


def parse_hours(value: object) -> object:
    """`22:00-08:00` is short for `{start: 22:00, end: 08:00}`."""
    if not isinstance(value, str):
        return value
    start, dash, end = value.partition("-")
    if not dash:
        raise ValueError(f"{quoted(value)} are no hours; write 22:00-08:00")
    return {"start": start.strip(), "end": end.strip()}


def parse_zone(name: str) -> str:
    """Require the name of a time zone."""
    zone(name)
    return name


Match = Annotated[tuple[str, ...], BeforeValidator(parse_match), AfterValidator(known_matchers)]
Zone = Annotated[str, AfterValidator(parse_zone)]


class QuietConfig(Section):
    """Hours in which only critical alerts are sent. The default time zone is that of the alerts."""

    start: str
    end: str
    timezone: Zone | None = None

    def check(self) -> None:
        self.hours("UTC")

    def hours(self, timezone: str) -> QuietHours:
        return QuietHours(self.start, self.end, self.timezone or timezone)


class RouteSection(Section):
    """Alerts that match go to these receivers; with `continue`, later routes apply as well."""

    receivers: Names
    match: Match = ()
    repeat: Span = ROUTE.repeat
    group_wait: Duration = ROUTE.group_wait
    group_interval: Duration = ROUTE.group_interval
    quiet_hours: Annotated[QuietConfig, BeforeValidator(parse_hours)] | None = None

    def route(self, timezone: str) -> Route:
        """The route; `timezone` is the default of its quiet hours."""
        return build(
            Route,
            self,
            matchers=matchers_of(self.match),
            quiet=self.quiet_hours.hours(timezone) if self.quiet_hours is not None else None,
            continue_matching=getattr(self, "continue"),
        )


class MaintenanceConfig(Section):
    """A window of `duration` on a cron schedule in which alerts that match are not sent."""

    cron: str
    duration: Span
    timezone: Zone | None = None
    match: Match = ()

    def check(self) -> None:
        self.window("UTC")

    def window(self, timezone: str) -> MaintenanceWindow:
        return MaintenanceWindow(self.cron, self.duration, self.timezone or timezone, matchers_of(self.match))


class AlertRulesSection(Section):
    """Timing of the alerts of each rule, under its name with _ for -."""

    def timings(self) -> AlertTimings:
        fields = type(self).model_fields
        return AlertTimings(rules={name.replace("_", "-"): _timing(getattr(self, name)) for name in fields})


def _timing(section: Any) -> AlertTiming:
    return AlertTiming(wait=getattr(section, "for"), keep=section.resolve_after)


if TYPE_CHECKING:  # the created models also have a field for each rule, and fields whose names are keywords
    RouteConfig = RouteSection
    AlertRulesConfig = AlertRulesSection
else:
    RouteConfig = create_model("RouteConfig", __base__=RouteSection, **{"continue": (bool, False)})
    RuleTiming = create_model(
        "RuleTiming", __base__=Section, **{"for": (Duration, DEFAULT.wait), "resolve_after": (Duration, DEFAULT.keep)}
    )
    AlertRulesConfig = create_model(
        "AlertRulesConfig",
        __base__=AlertRulesSection,
        **{
            name.replace("-", "_"): (RuleTiming, RuleTiming())
            for name in (*(rule.rule for rule in RULES), *META_RULE_NAMES)
        },
    )
