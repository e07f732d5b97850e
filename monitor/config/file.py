"""Loads the configuration file and GPUWARDEN_ variables. All problems are reported at once, each with its line."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from monitor.base.text import unknown
from monitor.config import messages, yaml_text
from monitor.config.root import Config
from monitor.config.yaml_text import Path, describe_key

PREFIX = "GPUWARDEN_"
PATH_VARIABLE = "GPUWARDEN_CONFIG"
DEFAULT_PATH = "/etc/gpuwarden/gpuwarden.yml"
MAX_BYTES = 1024 * 1024
# Kubernetes sets such variables in every pod of a namespace with a Service named gpuwarden or gpuwarden-agent.
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
    """A problem. `source` is the file or "environment"; `path` is the setting or the variable."""

    source: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        return ": ".join(part for part in (where, self.path, self.message) if part)


class ConfigError(Exception):
    """The configuration is invalid."""

    def __init__(self, problems: tuple[ConfigProblem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def default_path(environ: Mapping[str, str]) -> str | None:
    """Default file: $GPUWARDEN_CONFIG, else the system's file if it exists."""
    return environ.get(PATH_VARIABLE) or (DEFAULT_PATH if os.path.exists(DEFAULT_PATH) else None)


def load(path: str | None, environ: Mapping[str, str]) -> Config:
    """Configuration from a file, or from the defaults if `path` is None, and the environment. Raise ConfigError."""
    loader = _ConfigLoader(path or "defaults")
    if path is not None:
        loader.read_file(path)
    loader.read_environment(environ)
    config = loader.validate()
    if config is None or loader.problems:
        raise ConfigError(loader.ordered_problems())
    return config


@dataclass(frozen=True)
class _Origin:
    """Origin of a value. `name` is the variable that stands for the first `depth` parts of its path."""

    source: str
    line: int | None = None
    name: str = ""
    depth: int = 0


class _ConfigLoader:
    """Merges values, with the origin of each, and collects problems."""

    def __init__(self, source: str) -> None:
        self.problems: list[ConfigProblem] = []
        self._values: Any = {}
        self._origins: dict[Path, _Origin] = {(): _Origin(source)}

    def read_file(self, path: str) -> None:
        try:
            document = yaml_text.read(read_text(path))
        except ConfigError as error:
            self.problems.extend(error.problems)
            return
        first_line = document.lines.pop((), 1)
        self._origins |= {key: _Origin(path, line) for key, line in document.lines.items()}
        for flaw in document.flaws:
            self._report(flaw.path, flaw.message, _Origin(path, flaw.line))
        if isinstance(document.value, dict):
            self._values = document.value
        elif document.value is not None:  # an empty file means the defaults
            content = "a list" if isinstance(document.value, list) else "a single value"  # which may be a secret
            message = f"a configuration is made of 'key: value' lines; this file holds {content}"
            self.problems.append(ConfigProblem(path, first_line, "", message))

    def read_environment(self, environ: Mapping[str, str]) -> None:
        """Replace values by those of GPUWARDEN_ variables; an empty variable counts as unset."""
        for name in sorted(environ):  # GPUWARDEN_AGENT before GPUWARDEN_AGENT__LISTEN
            if name.startswith(PREFIX) and name != PATH_VARIABLE and environ[name]:
                self._read_variable(name, environ[name])

    def _read_variable(self, name: str, text: str) -> None:
        setting = name.removeprefix(PREFIX)
        path: Path = tuple(setting.lower().split("__"))
        origin = _Origin("environment", name=name, depth=len(path))
        if messages.field_at(Config, path) is None:
            if len(path) > 1 or not _SERVICE_LINK.fullmatch(setting):
                self._report(path, unknown("setting", setting, variables(), PREFIX), origin)
        elif messages.is_text(Config, path):
            self._replace(path, text, origin)
        else:
            document = yaml_text.read(text)
            for flaw in document.flaws:
                self._report((*path, *flaw.path), flaw.message, origin)
            self._replace(path, document.value, origin)

    def _replace(self, path: Path, value: object, origin: _Origin) -> None:
        section = self._values
        for depth, key in enumerate(path[:-1], 1):
            if section.get(key) is None:
                section[key] = {}
            section = section[key]
            if not isinstance(section, dict):
                self._report(path, f"{describe_key(path[:depth])} is given as a whole; change it there", origin)
                return
        section[path[-1]] = value
        others = {key: other for key, other in self._origins.items() if key[: len(path)] != path}
        self._origins = others | {path: origin}

    def validate(self) -> Config | None:
        """The configuration, or None if it is invalid."""
        try:
            return Config.model_validate(self._values)
        except ValidationError as invalid:
            for error in invalid.errors(include_url=False):
                self._report(error["loc"], messages.explain(error, Config), self._origin_of(error["loc"]))
        return None

    def ordered_problems(self) -> tuple[ConfigProblem, ...]:
        """Each problem once, by line; those of the environment last."""
        return tuple(sorted(dict.fromkeys(self.problems), key=lambda p: (p.source == "environment", p.line or 0)))

    def _origin_of(self, path: Path) -> _Origin:
        """Origin of a value or, if it is missing, of the innermost section around it."""
        return next(self._origins[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self._origins)

    def _report(self, path: Path, message: str, origin: _Origin) -> None:
        if messages.is_secret(Config, path[:-1]):  # keys below a secret are part of it
            path = next(path[:end] for end in range(len(path)) if messages.is_secret(Config, path[:end]))
            message = "the value is not text; put it in quotes"
        rest = describe_key(path[origin.depth :])
        separator = "." if origin.name and rest and not rest.startswith("[") else ""
        self.problems.append(ConfigProblem(origin.source, origin.line, f"{origin.name}{separator}{rest}", message))


def variables(section: type[BaseModel] = Config, prefix: str = "") -> Iterator[str]:
    """Names of all variables, without the prefix GPUWARDEN_."""
    for key, field in section.model_fields.items():
        yield prefix + key.upper()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from variables(field.annotation, f"{prefix}{key.upper()}__")


def read_text(path: str) -> str:
    """Text of a file. Raise ConfigError if it is unreadable."""
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
