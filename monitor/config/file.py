"""The configuration file and GPUWARDEN_ variables -> `Config`, or every problem at once, each with its place."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from monitor.base.text import unknown
from monitor.config import messages as words
from monitor.config import yaml_text
from monitor.config.root import Config
from monitor.config.yaml_text import Path, describe_key

PREFIX = "GPUWARDEN_"
PATH_VARIABLE = "GPUWARDEN_CONFIG"
DEFAULT_PATH = "/etc/gpuwarden/gpuwarden.yml"
MAX_BYTES = 1024 * 1024
# Kubernetes tells every pod of its namespace about a Service named gpuwarden or gpuwarden-agent by such variables.
_SERVICE_LINK = re.compile(
    r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)", re.ASCII
)
_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.EISDIR: "is a directory; name the file in it",
    errno.EACCES: "cannot be read: permission denied; run as a user who may read it, or change its mode",
}


@dataclass(frozen=True)
class ConfigProblem:
    """One thing that is wrong. `source` is the file, or "environment"; `path` the setting, or the variable."""

    source: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        return ": ".join(part for part in (where, self.path, self.message) if part)


class ConfigError(Exception):
    """The configuration cannot be used, for all of these reasons."""

    def __init__(self, problems: tuple[ConfigProblem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def default_path(environ: Mapping[str, str]) -> str | None:
    """Return the file to read when none is named: $GPUWARDEN_CONFIG, else the system's if it exists, else none."""
    return environ.get(PATH_VARIABLE) or (DEFAULT_PATH if os.path.exists(DEFAULT_PATH) else None)


def load(path: str | None, environ: Mapping[str, str]) -> Config:
    """Given a file, or None for the defaults, and the environment, return the settings. Raise ConfigError."""
    draft = _Draft(path or "defaults")
    if path is not None:
        draft.read_file(path)
    draft.read_environment(environ)
    config = draft.validate()
    if config is None or draft.problems:
        raise ConfigError(draft.ordered_problems())
    return config


def summary(config: Config) -> str:
    """Given settings, return a line that says what they amount to."""
    agent = config.agent
    schedules = [getattr(agent.collectors, name) for name in type(agent.collectors).model_fields]
    running = sum(schedule.enabled for schedule in schedules)
    return (
        f"agent {agent.node_name} on {agent.listen} with{'' if agent.read_token() else 'out'} a token, "
        f"{running} of {len(schedules)} collectors, mounts {len(agent.mounts)}, registries {len(agent.registries)}; "
        f"page on {config.daemon.listen}; log level {config.log_level}"
    )


@dataclass(frozen=True)
class _Place:
    """Where a value was given. Of its path, the first `depth` parts are named by `name` already."""

    source: str
    line: int | None = None
    name: str = ""
    depth: int = 0


class _Draft:
    """Values on the way to become a `Config`, with the place of each, and the problems met so far."""

    def __init__(self, source: str) -> None:
        self.problems: list[ConfigProblem] = []
        self._values: Any = {}
        self._places: dict[Path, _Place] = {(): _Place(source)}

    def read_file(self, path: str) -> None:
        """Take the values of a YAML file."""
        try:
            document = yaml_text.read(read_text(path))
        except ConfigError as error:
            self.problems.extend(error.problems)
            return
        first_line = document.lines.pop((), 1)
        self._places |= {key: _Place(path, line) for key, line in document.lines.items()}
        for flaw in document.flaws:
            self._note(flaw.path, flaw.message, _Place(path, flaw.line))
        if isinstance(document.value, dict):
            self._values = document.value
        elif document.value is not None:  # an empty file means the defaults
            found = "a list" if isinstance(document.value, list) else "a single value"  # which may be a secret
            message = f"a configuration is made of 'key: value' lines; this file holds {found}"
            self.problems.append(ConfigProblem(path, first_line, "", message))

    def read_environment(self, environ: Mapping[str, str]) -> None:
        """Let GPUWARDEN_ variables replace values. One that is set to nothing counts as not set."""
        for name in sorted(environ):  # GPUWARDEN_AGENT before GPUWARDEN_AGENT__LISTEN
            if name.startswith(PREFIX) and name != PATH_VARIABLE and environ[name]:
                self._read_variable(name, environ[name])

    def _read_variable(self, name: str, text: str) -> None:
        setting = name.removeprefix(PREFIX)
        path: Path = tuple(setting.lower().split("__"))
        place = _Place("environment", name=name, depth=len(path))
        if words.field_at(Config, path) is None:
            if len(path) > 1 or not _SERVICE_LINK.fullmatch(setting):
                self._note(path, unknown("setting", setting, variables(), PREFIX), place)
        elif words.is_text(Config, path):
            self._replace(path, text, place)
        else:
            document = yaml_text.read(text)
            for flaw in document.flaws:
                self._note((*path, *flaw.path), flaw.message, place)
            self._replace(path, document.value, place)

    def _replace(self, path: Path, value: object, place: _Place) -> None:
        inner = self._values
        for depth, key in enumerate(path[:-1], 1):
            if inner.get(key) is None:
                inner[key] = {}
            inner = inner[key]
            if not isinstance(inner, dict):
                self._note(path, f"{describe_key(path[:depth])} is given as a whole; change it there", place)
                return
        inner[path[-1]] = value
        self._places = {key: at for key, at in self._places.items() if key[: len(path)] != path} | {path: place}

    def validate(self) -> Config | None:
        """Return the settings, or None after noting what is wrong with them."""
        try:
            return Config.model_validate(self._values)
        except ValidationError as invalid:
            for error in invalid.errors(include_url=False):
                self._note(error["loc"], words.explain(error, Config), self._place_of(error["loc"]))
        return None

    def ordered_problems(self) -> tuple[ConfigProblem, ...]:
        """Return each problem once, in the order of the lines, those of the environment last."""
        return tuple(sorted(dict.fromkeys(self.problems), key=lambda p: (p.source == "environment", p.line or 0)))

    def _place_of(self, path: Path) -> _Place:
        """Return where the value was given or, if it was not, the nearest section around it."""
        nearest = next(end for end in range(len(path), -1, -1) if path[:end] in self._places)
        return self._places[path[:nearest]]

    def _note(self, path: Path, message: str, place: _Place) -> None:
        if words.is_secret(Config, path[:-1]):  # below a secret even the keys are part of it
            path = next(path[:end] for end in range(len(path)) if words.is_secret(Config, path[:end]))
            message = "the value is not text; put it in quotes"
        rest = describe_key(path[place.depth :])
        separator = "." if place.name and rest and not rest.startswith("[") else ""
        self.problems.append(ConfigProblem(place.source, place.line, f"{place.name}{separator}{rest}", message))


def variables(section: type[BaseModel] = Config, prefix: str = "") -> Iterator[str]:
    """Return the name of every variable that is understood, without the GPUWARDEN_ that all begin with."""
    for key, field in section.model_fields.items():
        yield prefix + key.upper()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from variables(field.annotation, f"{prefix}{key.upper()}__")


def read_text(path: str) -> str:
    """Given a file, return its text. Raise ConfigError that says why it cannot be read."""
    line = None
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) <= MAX_BYTES:
            return content.decode("utf-8-sig")
        reason = "is larger than 1 MiB; is this a configuration file?"
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reason = "is not UTF-8 text; save the file with the encoding UTF-8"
    raise ConfigError((ConfigProblem(path, line, "", reason),))
