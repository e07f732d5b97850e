"""The token of commands on the daemon's machine: a file that only the daemon's user can read.

The daemon creates a new token at every start, so that one that leaked while no daemon was running is worthless.
"""

from __future__ import annotations

import logging
import os
import secrets
from contextlib import suppress

log = logging.getLogger(__name__)
FILE = "cli.token"
TOKEN_BYTES = 32
MAX_FILE_BYTES = 1024
CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe in its place must not block


def token_path(state: str) -> str:
    """Path of the token file in a state directory."""
    return os.path.join(state, FILE)


def create_local_token(state: str) -> str:
    """Create a token and replace the file in the state directory; without a file, no command can use the token."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        _replace(token_path(state), token)
    except OSError as error:
        log.error("commands that change something need a configured token: %s cannot be written: %s", FILE, error)
    return token


def read_local_token(state: str) -> str:
    """The token in a state directory. Raise OSError if it cannot be read, ValueError if it is not a token."""
    with open(os.open(token_path(state), READ_FLAGS), "rb") as file:
        token = file.read(MAX_FILE_BYTES).decode("ascii").strip()
    if not token or not token.isprintable() or " " in token:
        raise ValueError("not a token")
    return token


def _replace(path: str, token: str) -> None:
    """Put the token into a new file and move it into place, so that neither step follows a link."""
    temporary = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    with open(os.open(temporary, CREATE_FLAGS, 0o600), "w", encoding="ascii") as file:
        file.write(f"{token}\n")
    os.replace(temporary, path)
