"""Settings of the owners of jobs: how to reach them, which messages they want, and when.

daemon:
  alerts:
    owner_defaults: {quiet_hours: 22:00-08:00, digest: "18:00"}
    owners_file: /etc/gpuwarden/owners.yml
    owners:
      zhang: {wecom: ZhangSan, opt_out: [idle]}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from monitor.alert.owner_preferences import OwnerCategory, OwnerPreferences
from monitor.alert.receivers.base import OwnerContact
from monitor.alert.windows import time_of_day
from monitor.base.text import unknown
from monitor.base.units import quoted
from monitor.config import messages, yaml_text
from monitor.config.derive import DerivedSection, build
from monitor.config.receivers import ReceiverConfig, Secret
from monitor.config.routes import QuietConfig, parse_hours
from monitor.config.types import Names, Section, check_with

MAX_FILE_BYTES = 1024 * 1024
MAX_WEBHOOKS = 100  # each has a thread that sends

Hours = Annotated[QuietConfig, BeforeValidator(parse_hours)]
ClockTime = Annotated[str, check_with(time_of_day)]


def _check_category(name: str) -> None:
    if name not in set(OwnerCategory):
        raise ValueError(f"{quoted(name)}: {unknown('category', name, OwnerCategory)}")


Categories = Annotated[Names, check_with(lambda names: [_check_category(name) for name in names])]


class OwnerDefaultsConfig(Section):
    """What owners without settings of their own want: no messages in `quiet_hours`, and a digest at this time of day.

    `opt_out` are categories that they get no messages about.
    """

    quiet_hours: Hours | None = None
    digest: ClockTime | None = None
    opt_out: Categories = ()


class OwnerConfig(DerivedSection, settings=OwnerContact):
    """Contact details of a cluster user, and what they want. `webhook`: a robot or address of their own."""

    webhook: Secret | None = None
    quiet_hours: Hours | None = None
    digest: ClockTime | None = None
    opt_out: Categories | None = None

    def check(self) -> None:
        if self.webhook is not None:
            self.receiver()

    def receiver(self) -> ReceiverConfig:
        """Receiver of the webhook."""
        return ReceiverConfig(url=self.webhook)

    def preferences(self, defaults: OwnerDefaultsConfig, timezone: str) -> OwnerPreferences:
        """What this owner wants; what is not set is as in the defaults."""
        quiet = self.quiet_hours or defaults.quiet_hours
        return OwnerPreferences(
            quiet=quiet.hours(timezone) if quiet is not None else None,
            digest=self.digest or defaults.digest,
            opt_out=frozenset(map(OwnerCategory, defaults.opt_out if self.opt_out is None else self.opt_out)),
            timezone=timezone,
        )


class OwnerLabelsConfig(DerivedSection, settings=OwnerContact):
    """Names of labels or annotations of pods that say how to reach their user."""

    def keys(self) -> OwnerContact:
        return build(OwnerContact, self)


_OWNERS = TypeAdapter(dict[str, OwnerConfig])


def read_owners(path: str) -> Mapping[str, OwnerConfig]:
    """Owners of a file in YAML or JSON. Raise ValueError that names the line."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"cannot read {quoted(path)}: {error.strerror or os.strerror(error.errno or 0)}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{quoted(path)} is not UTF-8 text") from None
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"{quoted(path)} is larger than 1 MiB")
    document = yaml_text.read(text)
    problems = [f"{path}:{flaw.line}: {flaw.message}" for flaw in document.flaws]
    if problems:
        raise ValueError("; ".join(problems))
    try:
        return _OWNERS.validate_python({} if document.value is None else document.value)
    except ValidationError as invalid:
        raise ValueError("; ".join(_problems(path, document, invalid))) from None


def _problems(path: str, document: yaml_text.Document, invalid: ValidationError) -> list[str]:
    problems = []
    for error in invalid.errors(include_url=False):
        location = error["loc"]
        line = next(
            (document.lines[location[:end]] for end in range(len(location), 0, -1) if location[:end] in document.lines),
            document.lines.get((), 1),
        )
        inside = error | {"loc": location[1:]}
        text = messages.explain(inside, OwnerConfig) if len(location) > 1 else "write 'user: {wecom: ...}' lines"
        name = f"{yaml_text.describe_key(location)}: " if location else ""
        problems.append(f"{path}:{line}: {name}{text}")
    return problems
