"""A value persisted as one JSON file in the state directory, replaced atomically."""

from __future__ import annotations

import logging
import os
from typing import Generic, TypeVar

import msgspec

log = logging.getLogger(__name__)
T = TypeVar("T", bound=msgspec.Struct)


class StateFile(Generic[T]):
    """A struct in a JSON file. `what` names its content in log messages."""

    def __init__(self, directory: str, name: str, form: type[T], what: str) -> None:
        self._directory = directory
        self._path = os.path.join(directory, name)
        self._form = form
        self._what = what
        self._complained = False

    def load(self) -> T:
        """The saved value; an empty one if there is none or it cannot be decoded."""
        try:
            with open(self._path, "rb") as file:
                return msgspec.json.decode(file.read(), type=self._form)
        except FileNotFoundError:
            return self._form()
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            log.warning("%s cannot be read, %s is lost: %s", self._path, self._what, error)
            return self._form()

    def save(self, value: T) -> None:
        """Replace the file. A failure is logged once and otherwise ignored."""
        temporary = f"{self._path}.new"
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(msgspec.json.encode(value))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)
            self._complained = False
        except OSError as error:
            if not self._complained:
                log.warning("%s cannot be written, %s will not survive a restart: %s", self._path, self._what, error)
            self._complained = True
