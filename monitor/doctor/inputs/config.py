"""The configuration file, and the files that it names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from pydantic import BaseModel, SecretStr

from monitor.doctor.checks.config import ConfigFacts, FilesFacts, NamedFile
from monitor.doctor.context import Visit

FILE = "_file"
SECRETS = ("token_file", "url_file", "secret_file", "password_file", "key_file")


def config(visit: Visit) -> ConfigFacts:
    """Return how reading the configuration went."""
    return ConfigFacts(visit.request.path, visit.request.problems)


def files(visit: Visit) -> FilesFacts:
    """Look at every file that the configuration names, and for secrets that stand in it."""
    path = visit.request.path
    values = list(_values(visit.config, ""))
    return FilesFacts(
        files=tuple(
            _look(setting, str(value)) for setting, value in values if isinstance(value, str) and setting.endswith(FILE)
        ),
        inline=tuple(setting for setting, value in values if isinstance(value, SecretStr)),
        config=_look("--config", path) if path is not None else None,
        in_pod="KUBERNETES_SERVICE_HOST" in visit.environ,
    )


def _values(value: object, setting: str) -> Iterator[tuple[str, object]]:
    """Given a section, yield each setting below it that is given, with its value."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _values(getattr(value, name), f"{setting}.{name}" if setting else name)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _values(each, f"{setting}.{key}")
    elif isinstance(value, (tuple, list)):
        for number, each in enumerate(value):
            yield from _values(each, f"{setting}[{number}]")
    elif value is not None:
        yield setting, value


def _look(setting: str, path: str) -> NamedFile:
    secret = setting.endswith(SECRETS)
    try:
        with open(path, "rb") as file:
            return NamedFile(setting, path, secret, stat.S_IMODE(os.fstat(file.fileno()).st_mode))
    except OSError as error:
        return NamedFile(setting, path, secret, why=error.strerror or str(error))
