"""Files that only their owner may read, whatever the umask: state, journals and locks."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress

FILE_MODE_BITS = 0o600
DIRECTORY_MODE_BITS = 0o700
ASIDE = re.compile(r".+\.(damaged|unread)-\d{8}T\d{6}Z(-\d+)?", re.ASCII)
MAX_ASIDE_COPIES = 10  # unusable files are never deleted; after this many, a file is no longer moved aside


def make_private_directory(path: str) -> None:
    """Create a directory that only its owner may enter; an existing one keeps its mode. Raise OSError."""
    os.makedirs(path, mode=DIRECTORY_MODE_BITS, exist_ok=True)


def open_private(path: str, flags: int) -> int:
    """Descriptor of a file, created if missing, that only its owner may read. Raise OSError."""
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE_MODE_BITS)
    with suppress(OSError):  # an older version may have created it with another mode
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != FILE_MODE_BITS:
            os.fchmod(descriptor, FILE_MODE_BITS)
    return descriptor


def create_file(path: str, content: bytes) -> None:
    """Create a file atomically: it is complete, and on disk, when it appears. Raise OSError if there is one."""
    temporary = f"{path}.new-{os.getpid()}"
    try:
        with open(open_private(temporary, os.O_WRONLY | os.O_EXCL), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def replace_file(path: str, content: bytes) -> None:
    """Replace a file atomically; the content is on disk before this returns. Raise OSError."""
    temporary = f"{path}.new"
    with open(open_private(temporary, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def set_aside(path: str, kind: str, suffixes: tuple[str, ...] = ("",)) -> str:
    """Move an unusable file to a new name beside it and return that name. Raise OSError.

    `suffixes` are those of the files that belong to it; the file itself is the last one.
    """
    directory, name = os.path.split(path)
    copies = [copy for copy in aside_copies(directory or ".") if copy.startswith(f"{name}.{kind}-")]
    if len(copies) >= MAX_ASIDE_COPIES:
        raise OSError(f"there are already {MAX_ASIDE_COPIES} copies {path}.{kind}-*; move them elsewhere")
    first = aside = f"{path}.{kind}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    number = 1
    while os.path.lexists(aside):
        aside, number = f"{first}-{number}", number + 1
    for suffix in suffixes:
        with suppress(FileNotFoundError):
            os.rename(path + suffix, aside + suffix)
    return aside


def aside_copies(directory: str) -> list[str]:
    """Names of the files in a directory that were moved aside, oldest first; none if it cannot be read."""
    try:
        return sorted(filter(ASIDE.fullmatch, os.listdir(directory)))
    except OSError:
        return []
