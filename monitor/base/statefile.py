"""A value persisted as one JSON file in the state directory, replaced atomically."""

from __future__ import annotations

import logging
import os
from typing import Generic, TypeVar

import msgspec

from monitor.base.private_files import make_private_directory, replace_file, set_aside
from monitor.base.state_problems import NOTE_SUFFIX, StateProblem, StateProblemKind

log = logging.getLogger(__name__)
T = TypeVar("T", bound=msgspec.Struct)
FIRST_VERSION = 1  # also of files without a version


class FileVersion(msgspec.Struct, frozen=True):
    """The field `version` that every file has; older files have none."""

    version: int = FIRST_VERSION


class StateFile(Generic[T]):
    """A struct in a JSON file. `what` names its content in log messages.

    `version` grows with every change that older programs would misread. `problem` says why the file is not written: it
    is None while it is. A file of a newer version is neither read nor replaced.
    """

    def __init__(self, directory: str, name: str, form: type[T], what: str, version: int = FIRST_VERSION) -> None:
        self._directory = directory
        self._path = os.path.join(directory, name)
        self._form = form
        self._what = what
        self._version = version
        self._keep_file = False  # a newer version wrote it, or it is damaged and could not be moved aside
        self.problem: StateProblem | None = None

    def load(self) -> T:
        """The saved value; an empty one if there is none or it cannot be decoded."""
        try:
            with open(self._path, "rb") as file:
                content = file.read()
            version = msgspec.json.decode(content, type=FileVersion).version
            if version <= self._version:
                return msgspec.json.decode(content, type=self._form)
            why = f"its version is {version}; this version knows versions up to {self._version}"
            self._keep_file = True
            self._report(StateProblemKind.NEWER, why)
        except FileNotFoundError:
            pass
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            self._set_aside(error)
        return self._form()

    def save(self, value: T) -> None:
        """Replace the file. A failure is logged once and otherwise ignored."""
        if self._keep_file and os.path.exists(self._path):
            return
        try:
            make_private_directory(self._directory)
            replace_file(self._path, versioned(value, self._version))
            self.problem = None
        except OSError as error:
            self._report(StateProblemKind.UNWRITABLE, error.strerror or str(error))

    def _set_aside(self, error: Exception) -> None:
        log.warning("%s cannot be read, %s is lost: %s", self._path, self._what, error)
        try:
            aside = set_aside(self._path, "damaged")
            replace_file(aside + NOTE_SUFFIX, f"{error}; {self._what} is lost\n".encode())
        except OSError as another:
            self._keep_file = True
            self._report(StateProblemKind.UNWRITABLE, another.strerror or str(another))

    def _report(self, kind: StateProblemKind, why: str) -> None:
        if self.problem is None:
            log.warning("%s cannot be written, %s will not survive a restart: %s", self._path, self._what, why)
        self.problem = StateProblem(kind, self._path, why)


def versioned(value: msgspec.Struct, version: int) -> bytes:
    """JSON of a struct with the field `version` in front."""
    fields = msgspec.json.encode(value).removeprefix(b"{")
    return b'{"version":%d%s%s' % (version, b"" if fields == b"}" else b",", fields)
