"""The configuration file, and the files that its settings name."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from pydantic import BaseModel, SecretStr

from monitor.doctor.context import DoctorContext, DoctorRequest
from monitor.doctor.model import Check, Verdicts, not_checked, ok, problem, warning

SECRET_SETTINGS = ("token_file", "url_file", "secret_file", "password_file", "key_file")


@dataclass(frozen=True)
class NamedFile:
    """A file that a setting names: its mode, or why it cannot be read."""

    setting: str
    path: str
    secret: bool
    mode: int | None = None
    why: str | None = None

    @property
    def world_readable(self) -> bool:
        return self.mode is not None and bool(self.mode & stat.S_IROTH)


@dataclass(frozen=True)
class FilesFacts:
    """The files that the configuration names, and the settings (`inline`) that contain a secret themselves.

    File modes do not matter in a pod, which has no other users.
    """

    files: tuple[NamedFile, ...] = ()
    inline: tuple[str, ...] = ()
    config: NamedFile | None = None
    in_pod: bool = False


def judge(request: DoctorRequest) -> Verdicts:
    """Errors of the configuration."""
    if request.problems:
        return tuple(problem("config.wrong", where=error) for error in request.problems)
    return (ok("config.read", path=request.path) if request.path else ok("config.defaults"),)


def judge_files(facts: FilesFacts) -> Verdicts:
    """Files that cannot be read, and secrets that other users can read."""
    verdicts = [
        problem("config.no-file", setting=file.setting, path=file.path, why=file.why)
        for file in facts.files
        if file.why is not None
    ]
    if not facts.in_pod:
        verdicts += [
            warning("config.open-secret", setting=file.setting, path=file.path, mode=f"{file.mode:04o}")
            for file in facts.files
            if file.secret and file.world_readable
        ]
        if (config := facts.config) is not None and facts.inline and config.world_readable:
            settings = ", ".join(facts.inline)
            verdicts.append(warning("config.open", path=config.path, mode=f"{config.mode:04o}", settings=settings))
    if verdicts:
        return tuple(verdicts)
    return (ok("config.files", count=len(facts.files)) if facts.files else not_checked("config.no-files"),)


def read_files(context: DoctorContext) -> FilesFacts:
    """Files and secrets of all settings."""
    path = context.request.path
    values = list(_values(context.config, ""))
    return FilesFacts(
        files=tuple(
            read_file(setting, value)
            for setting, value in values
            if isinstance(value, str) and setting.endswith("_file")
        ),
        inline=tuple(setting for setting, value in values if isinstance(value, SecretStr)),
        config=read_file("--config", path) if path is not None else None,
        in_pod=context.in_pod,
    )


def _values(value: object, setting: str) -> Iterator[tuple[str, object]]:
    """Path and value of each setting in a section that is not None."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _values(getattr(value, name), f"{setting}.{name}" if setting else name)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _values(item, f"{setting}.{key}")
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _values(item, f"{setting}[{index}]")
    elif value is not None:
        yield setting, value


def read_file(setting: str, path: str) -> NamedFile:
    """Mode of the file that a setting names, or why it cannot be read."""
    secret = setting.endswith(SECRET_SETTINGS) and not setting.endswith("public_key_file")
    try:
        with open(path, "rb") as file:
            return NamedFile(setting, path, secret, stat.S_IMODE(os.fstat(file.fileno()).st_mode))
    except OSError as error:
        return NamedFile(setting, path, secret, why=error.strerror or str(error))


CHECKS = (Check("config.file", attrgetter("request"), judge), Check("config.files", read_files, judge_files))
